package rollout_test

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func created(change ...func(*v1alpha1.NodeRolloutSpec)) func(w *world) {
	return func(w *world) { w.start("patch", change...) }
}

// started creates the rollout, which starts node a.
func started(change ...func(*v1alpha1.NodeRolloutSpec)) func(w *world) {
	return func(w *world) {
		w.start("patch", change...)
		w.decide()
	}
}

// begun also has the NodeMaintenance of node a accepted.
func begun(change ...func(*v1alpha1.NodeRolloutSpec)) func(w *world) {
	return then(started(change...), onA((*world).accept))
}

// recreated replaces node a by another of its name.
func recreated(w *world) {
	w.deleteNode("a")
	w.join("a")
}

func (w *world) comeBackAndFinish(name string) {
	w.comeBack(name, newKernel)
	w.finish(name)
}

func then(steps ...func(w *world)) func(w *world) {
	return func(w *world) {
		for _, step := range steps {
			step(w)
		}
	}
}

// onA does something to the NodeMaintenance of node a.
func onA(do func(w *world, name string)) func(w *world) {
	return func(w *world) { do(w, w.of("a").Name) }
}

func (w *world) completeAndFinish(name string) {
	w.complete(name)
	w.finish(name)
}

func (w *world) deleteAndFinish(name string) {
	w.deleteMaintenance(name)
	w.finish(name)
}

func passes(d time.Duration) func(w *world) { return func(w *world) { w.now = w.now.Add(d) } }

func settled(w *world) { w.settle() }

func spec(change ...func(*v1alpha1.NodeRolloutSpec)) func(w *world) {
	return func(w *world) {
		for _, c := range change {
			w.editSpec("patch", c)
		}
	}
}

func withoutTarget(s *v1alpha1.NodeRolloutSpec) { s.Target = nil }
func stayDrained(s *v1alpha1.NodeRolloutSpec)   { s.After = v1alpha1.AfterStayDrained }
func paused(s *v1alpha1.NodeRolloutSpec)        { s.State = v1alpha1.RolloutPaused }
func aborted(s *v1alpha1.NodeRolloutSpec)       { s.State = v1alpha1.RolloutAborted }
func twoMayFail(s *v1alpha1.NodeRolloutSpec)    { s.Failure.MaxFailures = new(intstr.FromInt32(2)) }
func noRetry(s *v1alpha1.NodeRolloutSpec)       { s.Failure.RetryCount = new(int32(0)) }

func unavailable(n string) func(*v1alpha1.NodeRolloutSpec) {
	return func(s *v1alpha1.NodeRolloutSpec) { s.MaxUnavailable = new(intstr.Parse(n)) }
}

func forgiven(node string, attempts int32) func(*v1alpha1.NodeRolloutSpec) {
	return func(s *v1alpha1.NodeRolloutSpec) {
		s.Nodes = append(slices.Clone(s.Nodes), v1alpha1.RolloutNodeSpec{Name: node, ForgivenAttemptCount: attempts})
	}
}

func skipping(node string) func(*v1alpha1.NodeRolloutSpec) {
	return func(s *v1alpha1.NodeRolloutSpec) {
		s.Nodes = append(slices.Clone(s.Nodes), v1alpha1.RolloutNodeSpec{Name: node, Skip: true})
	}
}

func toKernel(version string) func(*v1alpha1.NodeRolloutSpec) {
	return func(s *v1alpha1.NodeRolloutSpec) { s.Target = &v1alpha1.CompleteWhen{KernelVersion: version} }
}

func unschedulable(node *corev1.Node) { node.Spec.Unschedulable = true }
func notReady(node *corev1.Node)      { setReady(node, false) }
func controlPlane(node *corev1.Node)  { node.Labels[controlPlaneLabel] = "" }

func node(name string, change func(*corev1.Node)) func(w *world) {
	return func(w *world) { w.editNode(name, change) }
}

// stopAfter stops after so many writes.
func stopAfter(writes int) func() bool {
	return func() bool {
		writes--
		return writes < 0
	}
}

func hasTarget(n *corev1.Node) { n.Status.NodeInfo.KernelVersion = newKernel }

// succeedAccepted takes an accepted NodeMaintenance to its end.
func (w *world) succeedAccepted(node string) {
	name := w.of(node).Name
	w.drain(name)
	w.comeBack(name, newKernel)
	w.finish(name)
}

// finishAll finishes what is in stage Complete.
func (w *world) finishAll() {
	for _, m := range slices.Clone(w.maintenances) {
		if isAccepted(m) && (m.Spec.Stage == v1alpha1.StageComplete || m.DeletionTimestamp != nil) {
			w.finish(m.Name)
		}
	}
}
