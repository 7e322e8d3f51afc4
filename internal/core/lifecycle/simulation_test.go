package lifecycle_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/test/tier"
)

const (
	// worlds live, or in the second tier manyWorlds.
	worlds, manyWorlds = 40, 120

	wild = 250
	calm = 120
)

// TestSimulation lives random lives in which reads fail, hooks come and go, pods
// arrive late and the manager is killed anywhere, and checks at every step what
// always holds. Every life ends when nobody disturbs it any more.
func TestSimulation(t *testing.T) {
	t.Parallel()
	simulate(t, worlds)
}

func TestLongSimulation(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	simulate(t, manyWorlds)
}

func simulate(t *testing.T, worlds uint64) {
	t.Helper()
	seen := map[lifecycle.Step]int{}
	for seed := range worlds {
		w := newWorld(seed)
		for i := 0; !w.gone; i++ {
			w.calm = i >= wild
			if i >= wild+calm {
				t.Fatalf("seed %d: the life does not end: %s", seed, told(w.truth.Machine.Status, deletingCondition))
			}
			s := w.observe()
			d := lifecycle.Decide(s)
			seen[d.Step]++
			if fault := fault(t, s, d); fault != "" {
				t.Fatalf("seed %d, step %d: %s: %s", seed, i, does(d), fault)
			}
			w.apply(t, d)
			w.live()
		}
	}
	for _, step := range []lifecycle.Step{
		lifecycle.StepPaused, lifecycle.StepUnknown, lifecycle.StepCreatable, lifecycle.StepBootstrap, lifecycle.StepInfrastructure,
		lifecycle.StepNode, lifecycle.StepRunning, lifecycle.StepRecord, lifecycle.StepPreDrainHook, lifecycle.StepDrain,
		lifecycle.StepVolumeDetach, lifecycle.StepPreTerminateHook, lifecycle.StepDeleteInfrastructure, lifecycle.StepDeleteBootstrap,
		lifecycle.StepDeleteNode, lifecycle.StepDone,
	} {
		if seen[step] == 0 {
			t.Errorf("no life came to step %s", step)
		}
	}
}

func fault(t *testing.T, s lifecycle.Snapshot, d lifecycle.Decision) string {
	t.Helper()
	for _, check := range []func(lifecycle.Snapshot, lifecycle.Decision) string{
		faultOfHistory, faultOfConditions, faultOfCreation, faultOfDrain, faultOfDrained, faultOfDetached, faultOfCleanUp, faultOfMessages,
	} {
		if fault := check(s, d); fault != "" {
			return fault
		}
	}
	if again := lifecycle.Decide(s); !reflect.DeepEqual(d, again) {
		return "the same is decided otherwise: " + does(again)
	}
	return faultOfRest(t, s, d)
}

// faultOfRest: once the status is written there is nothing more to tell, until
// time or the world changes something.
func faultOfRest(t *testing.T, s lifecycle.Snapshot, d lifecycle.Decision) string {
	t.Helper()
	if d.Record || d.AddFinalizer {
		return ""
	}
	s.Machine = s.Machine.DeepCopy()
	s.Machine.Status = stored(t, d.Status)
	rest := s.Machine.Status
	again := lifecycle.Decide(s)
	if !equality.Semantic.DeepEqual(rest, again.Status) || len(again.Events) > 0 || does(again) != does(d) {
		return "it is not at rest: " + does(again) + cmp.Diff(rest, again.Status)
	}
	wait := d.RequeueAfter / 2
	if d.RequeueAfter == 0 {
		wait = 1000 * time.Hour
	}
	s.Now = s.Now.Add(wait)
	later := lifecycle.Decide(s)
	later.RequeueAfter = d.RequeueAfter
	if !equality.Semantic.DeepEqual(rest, later.Status) || does(later) != does(d) {
		return "time alone changes it unexpectedly: " + does(later) + cmp.Diff(rest, later.Status)
	}
	return ""
}

// faultOfHistory: what was recorded stays, and is recorded before anything is done.
func faultOfHistory(s lifecycle.Snapshot, d lifecycle.Decision) string {
	before, after := s.Machine.Status, d.Status
	if before.ControlPlaneHookSeen && !after.ControlPlaneHookSeen || before.NodeRef != nil && (after.NodeRef == nil || before.NodeRef.Name != after.NodeRef.Name) {
		return "a record is lost"
	}
	if (d.Record || d.AddFinalizer) && acts(d) {
		return "something is done before it is recorded"
	}
	return faultOfStarts(starts(before), starts(after), d.Record)
}

// faultOfStarts: one step begins at a time, and it has begun once for all.
func faultOfStarts(was, is []*metav1.Time, recorded bool) string {
	begun := 0
	for i := range was {
		switch {
		case was[i] == nil && is[i] != nil:
			begun++
		case was[i] != nil && !was[i].Equal(is[i]):
			return "a start time changed"
		}
	}
	if begun > 1 || begun == 1 && !recorded {
		return "a step begins and is not recorded first"
	}
	return ""
}

// faultOfConditions: those of others stay, and times tell of what they should.
func faultOfConditions(s lifecycle.Snapshot, d lifecycle.Decision) string {
	if kept := meta.FindStatusCondition(d.Status.Conditions, foreignCondition.Type); kept == nil || !equality.Semantic.DeepEqual(*kept, foreignCondition) {
		return "somebody else's condition changed"
	}
	for _, c := range s.Machine.Status.Conditions {
		now := meta.FindStatusCondition(d.Status.Conditions, c.Type)
		if now != nil && now.Status == c.Status && !now.LastTransitionTime.Equal(&c.LastTransitionTime) {
			return "the transition time of " + c.Type + " changed without its status"
		}
	}
	return ""
}

func starts(status v1alpha1.MachineStatus) []*metav1.Time {
	d := status.Deletion
	if d == nil {
		d = &v1alpha1.MachineDeletionStatus{}
	}
	return []*metav1.Time{
		d.PreDrainHookWaitStartTime, d.NodeDrainStartTime, d.WaitForNodeVolumeDetachStartTime, d.PreTerminateHookWaitStartTime,
		d.InfrastructureDeletionStartTime, d.BootstrapDeletionStartTime, d.NodeDeletionStartTime,
	}
}

func acts(d lifecycle.Decision) bool {
	return d.AdoptBootstrap || d.AdoptInfrastructure || d.Cordon != nil || d.Drain != nil || d.DeleteInfrastructure ||
		d.DeleteBootstrap || d.DeleteNode != nil || d.DropFinalizer
}

// faultOfCreation: nothing is made for a Machine that is held, and nothing is
// done at all while the Cluster is paused or unread.
func faultOfCreation(s lifecycle.Snapshot, d lifecycle.Decision) string {
	stopped := s.Cluster.Problem != "" || s.Cluster.Object != nil && s.Cluster.Object.Spec.Paused
	adopts := d.AdoptBootstrap || d.AdoptInfrastructure
	made := s.Machine.Status.NodeRef != nil || s.Infrastructure.Object != nil && s.Infrastructure.Object.Owned ||
		s.Bootstrap != nil && s.Bootstrap.Object != nil && s.Bootstrap.Object.Owned
	switch {
	case stopped && (acts(d) || d.Record || d.AddFinalizer):
		return "something is done although the Cluster is paused or unread"
	case adopts && len(s.Machine.Finalizers) == 0:
		return "something is made for a Machine that nothing holds"
	case adopts && len(s.Machine.Spec.LifecycleHooks.PreCreate) > 0 && !made:
		return "something is made in spite of hooks"
	case d.AdoptInfrastructure && s.Infrastructure.Object.Controller != nil:
		return "somebody else's infrastructure is adopted"
	}
	return ""
}

// faultOfDrain: pods are evicted when it is their turn and everything is known.
func faultOfDrain(s lifecycle.Snapshot, d lifecycle.Decision) string {
	if d.Drain == nil {
		return ""
	}
	began, cluster := s.Machine.Status.Deletion, s.Cluster.Object
	switch {
	case began.NodeDrainStartTime == nil || began.InfrastructureDeletionStartTime != nil:
		return "pods are evicted at the wrong time"
	case len(s.Machine.Spec.LifecycleHooks.PreDrain) > 0:
		return "pods are evicted in spite of hooks"
	case s.NodesProblem != "" || s.DrainProblem != "" || cluster == nil || s.ControlPlane != nil && s.ControlPlane.Problem != "":
		return "pods are evicted although not everything is known"
	case cluster.DeletionTimestamp != nil || s.ControlPlane != nil && s.ControlPlane.Object.Deleting:
		return "pods are evicted from a node that must not be touched"
	case !s.Nodes[0].Spec.Unschedulable && d.Cordon == nil:
		return "pods are evicted from a node that takes new ones"
	}
	return ""
}

// faultOfDrained: the drain is left out, given up or done only for what is known.
func faultOfDrained(s lifecycle.Snapshot, d lifecycle.Decision) string {
	why := news(s, d, drainingCondition)
	empty := !slices.ContainsFunc(s.Drain.Pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil })
	switch {
	case why == v1alpha1.ReasonSkipped && !leftOut(s, v1alpha1.ExcludeNodeDrainingAnnotation):
		return "the drain is skipped for no known reason"
	case why == v1alpha1.ReasonTimedOut && !over(s.Now, began(s).NodeDrainStartTime, s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds):
		return "the drain is given up before its time"
	case why == v1alpha1.ReasonDrained && (len(s.Nodes) == 0 || s.DrainProblem != "" || !empty || !s.Nodes[0].Spec.Unschedulable):
		return "the drain is done although pods are left"
	}
	return ""
}

// faultOfDetached: the same of the wait for volumes.
func faultOfDetached(s lifecycle.Snapshot, d lifecycle.Decision) string {
	why := news(s, d, volumesCondition)
	limits := s.Machine.Spec.Deletion
	unreachable := len(s.Nodes) > 0 && len(s.Nodes[0].Status.Conditions) > 0
	givenUp := over(s.Now, began(s).NodeDrainStartTime, limits.NodeDrainTimeoutSeconds) && s.DrainProblem == ""
	matters := slices.ContainsFunc(s.Volumes.Attachments, func(a *storagev1.VolumeAttachment) bool { return !givenUp || !used(s.Drain.Pods, a) })
	switch {
	case why == v1alpha1.ReasonSkipped && !leftOut(s, v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation) && !unreachable:
		return "volumes are not waited for, for no known reason"
	case why == v1alpha1.ReasonTimedOut && !over(s.Now, began(s).WaitForNodeVolumeDetachStartTime, limits.NodeVolumeDetachTimeoutSeconds):
		return "the wait for volumes is given up before its time"
	case why == v1alpha1.ReasonVolumesDetached && (len(s.Nodes) == 0 || s.VolumesProblem != "" || matters):
		return "volumes are detached although some are left"
	}
	return ""
}

func began(s lifecycle.Snapshot) v1alpha1.MachineDeletionStatus {
	if s.Machine.Status.Deletion == nil {
		return v1alpha1.MachineDeletionStatus{}
	}
	return *s.Machine.Status.Deletion
}

// leftOut is, in its simplest words, whether drain or volumes are left out.
func leftOut(s lifecycle.Snapshot, annotation string) bool {
	m, cluster := s.Machine, s.Cluster.Object
	nodeless := m.Status.NodeRef == nil && m.Spec.ProviderID == "" && s.Infrastructure.Problem == ""
	missing := cluster != nil && s.NodesProblem == "" && len(s.Nodes) == 0 && (m.Spec.ProviderID != "" || m.Status.NodeRef != nil)
	lost := len(s.Siblings) > 0 && !slices.ContainsFunc(s.Siblings, func(m *v1alpha1.Machine) bool { return m.DeletionTimestamp == nil })
	deleting := cluster != nil && (cluster.DeletionTimestamp != nil || s.ControlPlane != nil && s.ControlPlane.Object != nil && s.ControlPlane.Object.Deleting)
	kubeadm := len(m.OwnerReferences) > 0 && m.Status.ControlPlaneHookSeen && !has(m.Annotations, v1alpha1.ControlPlaneHookAnnotation)
	return nodeless || missing || cluster != nil && lost || deleting || kubeadm || has(m.Annotations, annotation)
}

func has(annotations map[string]string, key string) bool {
	_, present := annotations[key]
	return present
}

func over(now time.Time, began *metav1.Time, limit *int32) bool {
	return began != nil && limit != nil && *limit > 0 && now.Sub(began.Time) >= time.Duration(*limit)*time.Second
}

func news(s lifecycle.Snapshot, d lifecycle.Decision, condition string) string {
	is, was := meta.FindStatusCondition(d.Status.Conditions, condition), meta.FindStatusCondition(s.Machine.Status.Conditions, condition)
	if is == nil || was != nil && was.Reason == is.Reason {
		return ""
	}
	return is.Reason
}

// faultOfCleanUp: nothing is deleted before its turn.
func faultOfCleanUp(s lifecycle.Snapshot, d lifecycle.Decision) string {
	began := began(s)
	held := len(s.Machine.Spec.LifecycleHooks.PreTerminate) > 0 || has(s.Machine.Annotations, v1alpha1.ControlPlaneHookAnnotation)
	settled := news(s, d, drainingCondition) == "" && told(d.Status, drainingCondition) != "" && told(d.Status, volumesCondition) != ""
	switch {
	case d.DeleteInfrastructure && (held || !settled || began.InfrastructureDeletionStartTime == nil):
		return "the infrastructure is deleted too early"
	case d.DeleteBootstrap && began.BootstrapDeletionStartTime == nil:
		return "the bootstrap config is deleted too early"
	case d.DeleteNode != nil && (began.NodeDeletionStartTime == nil || ours(s.Bootstrap) && s.Bootstrap.Problem == ""):
		return "the Node is deleted too early"
	case d.DropFinalizer && began.NodeDeletionStartTime == nil && (ours(s.Bootstrap) || began.BootstrapDeletionStartTime == nil && ours(&s.Infrastructure)):
		return "the Machine is let go too early"
	}
	return faultOfOwner(s, d)
}

func ours(r *lifecycle.Reading[lifecycle.External]) bool {
	return r != nil && (r.Problem != "" || r.Object != nil && (r.Object.Controller == nil || r.Object.Owned))
}

// faultOfOwner: what is somebody else's is not deleted.
func faultOfOwner(s lifecycle.Snapshot, d lifecycle.Decision) string {
	if d.DeleteInfrastructure && !ours(&s.Infrastructure) || d.DeleteBootstrap && !ours(s.Bootstrap) {
		return "somebody else's object is deleted"
	}
	return ""
}

// faultOfMessages: everything that is told has a reason and fits.
func faultOfMessages(_ lifecycle.Snapshot, d lifecycle.Decision) string {
	for _, c := range d.Status.Conditions {
		if c.Reason == "" || c.Message == "" || len(c.Message) > 32_768 || c.LastTransitionTime.IsZero() {
			return "condition " + c.Type + " says nothing: " + c.Reason
		}
	}
	for _, e := range d.Events {
		if e.Reason == "" || e.Message == "" || e.Regarding.UID != machineUID {
			return "an event says nothing: " + e.Reason
		}
	}
	return ""
}
