package scenario

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
)

// chronicle notes what happens to a Machine, in the order in which the API server
// made it happen, over all kinds: their versions are counted together.
type chronicle struct {
	w    *world
	name string

	mu      sync.Mutex
	entries []chronicled
	step    string
	cordon  bool
}

type chronicled struct {
	version uint64
	what    string
}

// chronicle begins to watch a Machine and what belongs to it.
func (w *world) chronicle(name string) *chronicle {
	w.t.Helper()
	c := &chronicle{w: w, name: name}
	for _, list := range []client.ObjectList{
		&v1alpha1.MachineList{}, &api.SandboxMachineList{}, &api.SandboxConfigList{}, &corev1.PodList{},
	} {
		c.follow(list, client.InNamespace(w.ns))
	}
	c.follow(&corev1.NodeList{})
	c.follow(&storagev1.VolumeAttachmentList{})
	return c
}

func (c *chronicle) follow(list client.ObjectList, options ...client.ListOption) {
	c.w.t.Helper()
	c.w.must("list", c.w.client.List(c.w.ctx, list, options...))
	c.w.cluster.Follow(c.w.t, list, c.see, options...)
}

func (c *chronicle) see(kind watch.EventType, object client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gone := kind == watch.Deleted
	switch o := object.(type) {
	case *v1alpha1.Machine:
		c.seeStep(o)
		c.noteIf(gone && o.Name == c.name, o, "Machine gone")
	case *corev1.Node:
		c.noteIf(o.Name == c.name && o.Spec.Unschedulable && !c.cordon, o, "Node cordoned")
		c.cordon = c.cordon || o.Name == c.name && o.Spec.Unschedulable
		c.noteIf(gone && o.Name == c.name, o, "Node gone")
	case *corev1.Pod:
		c.noteIf(gone, o, "pod "+o.Name+" gone")
	case *storagev1.VolumeAttachment:
		c.noteIf(gone && o.Spec.NodeName == c.name, o, "volume detached")
	case *api.SandboxMachine:
		c.noteIf(gone && o.Name == c.name, o, "infrastructure gone")
	case *api.SandboxConfig:
		c.noteIf(gone && o.Name == c.name, o, "bootstrap config gone")
	}
}

func (c *chronicle) seeStep(m *v1alpha1.Machine) {
	deleting := apimeta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDeleting)
	if m.Name == c.name && deleting != nil && deleting.Reason != c.step {
		c.step = deleting.Reason
		c.noteIf(true, m, "step "+deleting.Reason)
	}
}

func (c *chronicle) noteIf(happened bool, object client.Object, what string) {
	if !happened {
		return
	}
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		what += ": " + err.Error()
	}
	c.entries = append(c.entries, chronicled{version, what})
}

// story is what has happened, in order.
func (c *chronicle) story() (story []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ordered := slices.SortedStableFunc(slices.Values(c.entries), func(a, b chronicled) int {
		return int(a.version) - int(b.version)
	})
	for _, entry := range ordered {
		story = append(story, entry.what)
	}
	return story
}

// await waits until so much has happened, and compares it with what should have.
func (c *chronicle) await(want ...string) {
	c.w.t.Helper()
	c.w.eventually("the end of "+c.name, func() (bool, any) {
		story := c.story()
		return len(story) >= len(want), strings.Join(story, ", ")
	})
	if diff := cmp.Diff(want, c.story()); diff != "" {
		c.w.t.Errorf("what happened to %s (-want +got):\n%s", c.name, diff)
	}
}
