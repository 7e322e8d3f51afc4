package lifecycle_test

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
	"ebbtide.dev/ebbtide/internal/core/volume"
	"ebbtide.dev/ebbtide/test/golden"
)

var start = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

const machineUID = types.UID("machine-uid")

func newborn() lifecycle.Snapshot {
	machine := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: "worker-1", Namespace: "prod", UID: machineUID, Generation: 1,
			Finalizers: []string{v1alpha1.MachineFinalizer},
		},
		Spec: v1alpha1.MachineSpec{
			ClusterName:       "east",
			InfrastructureRef: v1alpha1.ObjectReference{Kind: "DockerMachine", Name: "worker-1"},
			Bootstrap:         v1alpha1.MachineBootstrap{ConfigRef: &v1alpha1.ObjectReference{Kind: "KubeadmConfig", Name: "worker-1"}},
		},
	}
	return lifecycle.Snapshot{
		Now:            start,
		Machine:        machine,
		Cluster:        read(v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", Namespace: "prod"}}),
		Infrastructure: read(lifecycle.External{Kind: "DockerMachine", Name: "worker-1"}),
		Bootstrap:      new(read(lifecycle.External{Kind: "KubeadmConfig", Name: "worker-1"})),
	}
}

func running() lifecycle.Snapshot {
	s := newborn()
	own(s.Bootstrap.Object)
	own(s.Infrastructure.Object)
	s.Bootstrap.Object.Ready, s.Bootstrap.Object.DataSecretName = true, "worker-1"
	s.Infrastructure.Object.Ready, s.Infrastructure.Object.ProviderID = true, "docker://worker-1"
	s.Machine.Spec.ProviderID = "docker://worker-1"
	s.Machine.Status.NodeRef = &v1alpha1.MachineNodeReference{Name: "node-1", UID: "node-uid"}
	s.Nodes = []*corev1.Node{{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "node-uid"},
		Spec:       corev1.NodeSpec{ProviderID: "docker://worker-1"},
	}}
	return s
}

func deleted() lifecycle.Snapshot {
	s := running()
	s.Machine.DeletionTimestamp = &metav1.Time{Time: start}
	s.Machine.Status.Deletion = &v1alpha1.MachineDeletionStatus{}
	s.Drain = nodedrain.Snapshot{Rules: drainrule.ForMachine(nil, nil, nil), Facts: drainrule.Facts{Namespaces: map[string]map[string]string{"app": {}}}}
	s.Volumes = volume.Snapshot{}
	return s
}

func draining() lifecycle.Snapshot {
	s := deleted()
	s.Machine.Status.Deletion.NodeDrainStartTime = &metav1.Time{Time: start}
	s.Nodes[0].Spec.Unschedulable = true
	return s
}

func detaching() lifecycle.Snapshot {
	s := draining()
	s.Machine.Status.Deletion.WaitForNodeVolumeDetachStartTime = &metav1.Time{Time: start}
	return s
}

func terminating() lifecycle.Snapshot {
	s := detaching()
	s.Machine.Status.Deletion.InfrastructureDeletionStartTime = &metav1.Time{Time: start}
	return s
}

func leaving() lifecycle.Snapshot {
	s := terminating()
	s.Machine.Status.Deletion.BootstrapDeletionStartTime = &metav1.Time{Time: start}
	s.Machine.Status.Deletion.NodeDeletionStartTime = &metav1.Time{Time: start}
	s.Infrastructure = lifecycle.Reading[lifecycle.External]{}
	s.Bootstrap = &lifecycle.Reading[lifecycle.External]{}
	for _, condition := range []string{v1alpha1.ConditionInfrastructureReady, v1alpha1.ConditionBootstrapReady} {
		meta.SetStatusCondition(&s.Machine.Status.Conditions, metav1.Condition{
			Type: condition, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotFound, LastTransitionTime: *at(0),
		})
	}
	return s
}

func read[T any](object T) lifecycle.Reading[T] { return lifecycle.Reading[T]{Object: &object} }

func own(e *lifecycle.External) {
	e.Controller, e.Owned = &metav1.OwnerReference{Kind: "Machine", Name: "worker-1", UID: machineUID}, true
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: name, UID: types.UID("uid-" + name)}}
}

func mount(s *lifecycle.Snapshot, user *corev1.Pod) {
	name := user.Name
	user.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}}
	s.Drain.Pods = append(s.Drain.Pods, user)
	s.Volumes.Attachments = append(s.Volumes.Attachments, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-" + name},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: true},
	})
	if s.Volumes.Claims == nil {
		s.Volumes.Claims, s.Volumes.Volumes = map[types.NamespacedName]*corev1.PersistentVolumeClaim{}, map[string]*corev1.PersistentVolume{}
	}
	claim := metav1.ObjectMeta{Namespace: user.Namespace, Name: name, UID: types.UID("claim-" + name)}
	s.Volumes.Claims[types.NamespacedName{Namespace: claim.Namespace, Name: name}] = &corev1.PersistentVolumeClaim{
		ObjectMeta: claim, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: name},
	}
	s.Volumes.Volumes[name] = &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: claim.Namespace, Name: name, UID: claim.UID}},
	}
}

func after(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func at(seconds int) *metav1.Time { return &metav1.Time{Time: after(seconds)} }

func told(status v1alpha1.MachineStatus, condition string) string {
	c := meta.FindStatusCondition(status.Conditions, condition)
	if c == nil {
		return ""
	}
	return string(c.Status) + "/" + c.Reason + ": " + c.Message
}

func reasons(d lifecycle.Decision) []string {
	var all []string
	for _, e := range d.Events {
		all = append(all, e.Reason)
	}
	return all
}

func stored(t *testing.T, status v1alpha1.MachineStatus) v1alpha1.MachineStatus {
	t.Helper()
	raw, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	var back v1alpha1.MachineStatus
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

type story struct {
	of     func() lifecycle.Snapshot
	change func(*lifecycle.Snapshot)
	// does is the step and the acts.
	does string
	// says lists conditions as Type=Status/Reason, or Type=absent.
	says string
	// events are the reasons of the events.
	events string
}

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

// run checks stories by name.
func run(t *testing.T, stories map[string]story) {
	t.Helper()
	for name, c := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

func (c story) check(t *testing.T) {
	t.Helper()
	s := c.of()
	if c.change != nil {
		c.change(&s)
	}
	d := lifecycle.Decide(s)
	did := does(d)
	if s.Machine.Status.Deletion != nil && d.Status.Deletion == nil {
		did += ", forget the deletion"
	}
	if did != c.does {
		t.Errorf("acts are %s, want %s", did, c.does)
	}
	for _, says := range strings.Fields(c.says) {
		condition, want, _ := strings.Cut(says, "=")
		text := told(d.Status, condition)
		if got, _, _ := strings.Cut(text, ": "); cmp.Or(got, "absent") != want {
			t.Errorf("condition %s is %s, want %s", condition, text, want)
		}
		golden.Message(t, condition, text)
	}
	if got := strings.Join(reasons(d), " "); got != c.events {
		t.Errorf("events are %s, want %s", got, c.events)
	}
}

func does(d lifecycle.Decision) string {
	words := []string{string(d.Step)}
	for act, yes := range map[string]bool{
		"record": d.Record, "add finalizer": d.AddFinalizer, "drop finalizer": d.DropFinalizer,
		"adopt bootstrap": d.AdoptBootstrap, "adopt infrastructure": d.AdoptInfrastructure,
		"delete infrastructure": d.DeleteInfrastructure, "delete bootstrap": d.DeleteBootstrap,
		"set providerID " + d.ProviderID: d.ProviderID != "", "drain": d.Drain != nil && len(d.Drain.Evict) == 0,
		"cordon": d.Cordon != nil, "delete node": d.DeleteNode != nil,
	} {
		if yes {
			words = append(words, act)
		}
	}
	if d.Drain != nil && len(d.Drain.Evict) > 0 {
		words = append(words, "evict "+nodedrain.Names(d.Drain.Evict, 5))
	}
	if d.RequeueAfter != 0 {
		words = append(words, "look again in "+d.RequeueAfter.String())
	}
	slices.Sort(words[1:])
	return strings.Join(words, ", ")
}
