package lifecycle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
)

// world is one Machine, all that belongs to it, and an API server that fails
// now and then. truth is a snapshot without problems.
type world struct {
	random *rand.Rand
	truth  lifecycle.Snapshot
	// registers is the Node that appears when the infrastructure is there.
	registers *corev1.Node
	// calm worlds have no failures any more, and nobody holds anything.
	calm bool
	// gone is true when the Machine is.
	gone  bool
	named int
}

func (w *world) one(in int) bool { return w.random.IntN(in) == 0 }

func (w *world) trouble(in int) bool { return !w.calm && w.one(in) }

func newWorld(seed uint64) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 1)), truth: newborn()}
	s, m := &w.truth, w.truth.Machine
	m.Finalizers = nil
	m.Status.Conditions = []metav1.Condition{foreignCondition}
	for _, limit := range []**int32{&m.Spec.Deletion.NodeDrainTimeoutSeconds, &m.Spec.Deletion.NodeVolumeDetachTimeoutSeconds, &m.Spec.Deletion.NodeDeletionTimeoutSeconds} {
		if w.one(2) {
			*limit = new(int32(w.random.IntN(3) * 120))
		}
	}
	hooks := &m.Spec.LifecycleHooks
	for _, list := range []*[]v1alpha1.LifecycleHook{&hooks.PreCreate, &hooks.PreDrain, &hooks.PreTerminate} {
		if w.one(2) {
			*list = append(hook("One"), hook("Other")...)
		}
	}
	if w.one(4) {
		s.Bootstrap, m.Spec.Bootstrap.ConfigRef = nil, nil
	}
	if w.one(8) {
		foreignInfrastructure(s)
	}
	if w.one(3) {
		ownedByKubeadm(s)
		annotate(s, v1alpha1.ControlPlaneHookAnnotation)
	}
	if w.one(3) {
		s.ControlPlane = new(read(lifecycle.External{Kind: "KubeadmControlPlane", Name: "east"}))
	}
	if w.one(2) {
		s.Siblings = []*v1alpha1.Machine{controlPlane(nil), controlPlane(nil)}
	}
	if !w.one(6) {
		w.registers = running().Nodes[0]
	}
	return w
}

var foreignCondition = metav1.Condition{Type: "PreDrainOneSucceeded", Status: metav1.ConditionFalse, Reason: "Busy", Message: "later", LastTransitionTime: *at(-3)}

func (w *world) observe() lifecycle.Snapshot {
	s := w.truth
	s.Machine = s.Machine.DeepCopy()
	if w.trouble(30) {
		s.Cluster = lifecycle.Reading[v1alpha1.Cluster]{Problem: "cluster unread"}
	}
	if w.trouble(10) {
		s.Infrastructure = unread("infrastructure unread")
	}
	if s.Bootstrap != nil && w.trouble(10) {
		s.Bootstrap = new(unread("bootstrap unread"))
	}
	if s.ControlPlane != nil && w.trouble(10) {
		s.ControlPlane = new(unread("control plane unread"))
	}
	ref, id := s.Machine.Status.NodeRef, s.Machine.Spec.ProviderID
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(node *corev1.Node) bool {
		return ref != nil && node.Name != ref.Name || ref == nil && (id == "" || node.Spec.ProviderID != id)
	})
	if w.trouble(10) {
		s.Nodes, s.NodesProblem = nil, "nodes unread"
	}
	if s.NodesProblem != "" || w.trouble(10) {
		s.Drain.Pods, s.DrainProblem = nil, "pods unread"
	}
	if s.NodesProblem != "" || w.trouble(10) {
		s.Volumes.Attachments, s.VolumesProblem = nil, "volumes unread"
	}
	return s
}

// apply carries a decision out as the controller does, and may stop anywhere.
func (w *world) apply(t *testing.T, d lifecycle.Decision) {
	t.Helper()
	s, m := &w.truth, w.truth.Machine
	if d.AddFinalizer {
		m.Finalizers = append(m.Finalizers, v1alpha1.MachineFinalizer)
		return
	}
	if d.Record {
		if d.ProviderID != "" {
			m.Spec.ProviderID = d.ProviderID
		}
		if !w.trouble(8) {
			m.Status = stored(t, d.Status)
		}
		return
	}
	for _, act := range w.acts(d) {
		if w.trouble(8) {
			return
		}
		act()
	}
	if !w.trouble(8) {
		m.Status = stored(t, d.Status)
	}
	if d.DropFinalizer && !w.trouble(3) {
		m.Finalizers = nil
		w.gone = true
	}
	s.Machine = m
}

func (w *world) acts(d lifecycle.Decision) (acts []func()) {
	s := &w.truth
	add := func(wanted bool, act func()) {
		if wanted {
			acts = append(acts, act)
		}
	}
	add(d.AdoptBootstrap, func() { own(s.Bootstrap.Object) })
	add(d.AdoptInfrastructure, func() { own(s.Infrastructure.Object) })
	add(d.Cordon != nil, func() { d.Cordon.Spec.Unschedulable = true })
	if d.Drain != nil {
		for _, pod := range d.Drain.Evict {
			add(w.one(2), func() { pod.DeletionTimestamp = &metav1.Time{Time: s.Now} })
		}
	}
	add(d.DeleteInfrastructure, func() { s.Infrastructure.Object.Deleting = true })
	add(d.DeleteBootstrap, func() { s.Bootstrap.Object.Deleting = true })
	add(d.DeleteNode != nil, func() {
		s.Nodes = slices.DeleteFunc(s.Nodes, func(node *corev1.Node) bool { return node == d.DeleteNode && w.one(2) })
	})
	return acts
}

func (w *world) live() {
	s, m := &w.truth, w.truth.Machine
	s.Now = s.Now.Add(time.Duration(w.random.IntN(30_000)) * time.Millisecond)
	hooks := &m.Spec.LifecycleHooks
	for _, list := range []*[]v1alpha1.LifecycleHook{&hooks.PreCreate, &hooks.PreDrain, &hooks.PreTerminate} {
		switch {
		case len(*list) > 0 && (w.calm || w.one(8)):
			*list = (*list)[1:]
		case w.trouble(80):
			*list = hook("Late")
		}
	}
	if w.calm || w.one(40) {
		delete(m.Annotations, v1alpha1.ControlPlaneHookAnnotation)
	}
	if w.calm || w.one(60) {
		m.DeletionTimestamp = &metav1.Time{Time: s.Now}
		w.gone = w.gone || len(m.Finalizers) == 0
	}
	if w.trouble(300) {
		annotate(s, v1alpha1.ExcludeNodeDrainingAnnotation)
	}
	if w.calm && has(m.Annotations, v1alpha1.ExcludeNodeDrainingAnnotation) {
		annotate(s, v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation)
	}
	w.liveObjects()
	w.liveNode()
	w.liveCluster()
}

// liveObjects runs the controllers of the provider.
func (w *world) liveObjects() {
	s := &w.truth
	for _, r := range []*lifecycle.Reading[lifecycle.External]{s.Bootstrap, &s.Infrastructure} {
		if r == nil || r.Object == nil || !w.calm && w.one(2) {
			continue
		}
		e := *r.Object
		if e.Owned && !e.Ready {
			e.Ready, e.DataSecretName, e.ProviderID = true, "worker-1", "docker://worker-1"
		}
		r.Object = &e
		if e.Deleting {
			r.Object = nil
		}
	}
	infra := s.Infrastructure.Object
	if w.registers != nil && infra != nil && infra.Owned && infra.Ready && !infra.Deleting && w.one(3) {
		s.Nodes, w.registers = append(s.Nodes, w.registers), nil
	}
}

// liveNode runs what is on the Node.
func (w *world) liveNode() {
	s := &w.truth
	s.Drain.Pods = slices.DeleteFunc(slices.Clone(s.Drain.Pods), func(pod *corev1.Pod) bool {
		return len(s.Nodes) == 0 || pod.DeletionTimestamp != nil && (w.calm || w.one(2))
	})
	s.Volumes.Attachments = slices.DeleteFunc(slices.Clone(s.Volumes.Attachments), func(attachment *storagev1.VolumeAttachment) bool {
		return len(s.Nodes) == 0 || !used(s.Drain.Pods, attachment) && (w.calm || w.one(3))
	})
	if len(s.Nodes) == 0 {
		return
	}
	node := *s.Nodes[0]
	s.Nodes = []*corev1.Node{&node}
	switch {
	case w.calm:
		node.Status.Conditions = nil
	case w.one(40):
		unreachable(s)
	case w.one(10):
		node.Status.Conditions = nil
	case w.one(40):
		node.Spec.Unschedulable = false
	case w.one(200):
		s.Nodes = nil
		return
	}
	if len(s.Drain.Pods) < 4 && (!node.Spec.Unschedulable && w.one(2) || w.trouble(30)) {
		w.named++
		mount(s, pod(fmt.Sprintf("pod-%d", w.named)))
	}
}

func used(pods []*corev1.Pod, attachment *storagev1.VolumeAttachment) bool {
	return slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Name == *attachment.Spec.Source.PersistentVolumeName })
}

func (w *world) liveCluster() {
	s := &w.truth
	cluster := s.Cluster.Object
	switch {
	case w.calm && cluster != nil:
		cluster.Spec.Paused = false
	case cluster == nil && (w.calm || w.one(5)):
		s.Cluster = read(v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", Namespace: "prod"}})
	case cluster == nil:
	case w.one(20):
		cluster.Spec.Paused = !cluster.Spec.Paused
	case w.one(300):
		cluster.DeletionTimestamp = at(0)
	case w.one(300):
		s.Cluster.Object = nil
	case w.one(100) && len(s.Siblings) > 0:
		s.Siblings[w.random.IntN(2)] = controlPlane(at(0))
	case w.one(100) && s.ControlPlane != nil:
		s.ControlPlane = new(read(lifecycle.External{Kind: "KubeadmControlPlane", Name: "east", Deleting: true}))
	}
}
