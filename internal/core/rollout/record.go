package rollout

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/handover"
)

// maxNodeInName bounds the part of a node's name in that of its NodeMaintenance.
const maxNodeInName = 40

// record is the NodeMaintenance of an attempt.
type record struct {
	Attempt
	object *v1alpha1.NodeMaintenance
	node   string
}

// readRecord returns the attempt that a NodeMaintenance records; false if it is none.
func readRecord(m *v1alpha1.NodeMaintenance) (*record, bool) {
	r := &record{object: m}
	if m.Labels[v1alpha1.RolloutLabel] == "" || json.Unmarshal([]byte(m.Annotations[v1alpha1.RolloutAttemptAnnotation]), &r.Attempt) != nil {
		return nil, false
	}
	r.node = onlyNode(m.Spec.NodeSelector)
	return r, r.node != "" && r.UID != ""
}

// onlyNode returns the name of the node that a selector made by maintenance.SelectNode selects; empty if it is
// another.
func onlyNode(selector *corev1.NodeSelector) string {
	if selector == nil || len(selector.NodeSelectorTerms) != 1 || len(selector.NodeSelectorTerms[0].MatchFields) != 1 {
		return ""
	}
	if values := selector.NodeSelectorTerms[0].MatchFields[0].Values; len(values) == 1 {
		return values[0]
	}
	return ""
}

// live returns true until the node is given back.
func (r *record) live() bool { return !maintenance.Finished(r.object) }

// ends returns true from Complete on.
func (r *record) ends() bool { return maintenance.Stage(r.object) == v1alpha1.StageComplete }

// drained returns since when the node is drained; false if it is not.
func (r *record) drained() (since time.Time, drained bool) {
	condition := meta.FindStatusCondition(r.object.Status.Conditions, v1alpha1.ConditionDrained)
	if condition == nil || condition.Status != metav1.ConditionTrue || r.ends() {
		return time.Time{}, false
	}
	return condition.LastTransitionTime.Time, true
}

// succeeded returns how the attempt ended. One that was completed before its drain was seen has not
// succeeded.
func (r *record) succeeded() metav1.Condition {
	condition := meta.FindStatusCondition(r.object.Status.Conditions, v1alpha1.ConditionSucceeded)
	if condition != nil && condition.Reason != v1alpha1.ReasonNotDraining {
		return *condition
	}
	return metav1.Condition{Status: metav1.ConditionFalse}
}

func (r *record) returned() bool {
	return meta.IsStatusConditionTrue(r.object.Status.Conditions, v1alpha1.ConditionReturned)
}

// name returns the name of the NodeMaintenance of an attempt.
func (a *Attempt) name(rollout, node string) string {
	short := strings.TrimRight(node[:min(len(node), maxNodeInName)], "-.")
	return fmt.Sprintf("%s-%s-%s", rollout, short, hashOf(a.UID, node, a.NodeUID, a.Attempt))
}

// create returns the NodeMaintenance of an attempt that has to be drained by a deadline; zero is
// none.
func (a *Attempt) create(owner *v1alpha1.NodeRollout, node *corev1.Node, deadline time.Time) *v1alpha1.NodeMaintenance {
	of := owner.Spec.Maintenance.DeepCopy()
	m := &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{
			Name:        a.name(owner.Name, node.Name),
			Labels:      map[string]string{v1alpha1.RolloutLabel: owner.Name},
			Annotations: map[string]string{},
			Finalizers:  []string{v1alpha1.RolloutFinalizer},
		},
		Spec: v1alpha1.NodeMaintenanceSpec{
			NodeSelector: maintenance.SelectNode(node.Name), Stage: v1alpha1.StageDrain,
			DrainPlan: of.DrainPlan, DrainDepth: of.DrainDepth, InPlace: of.InPlace, Reason: of.Reason,
		},
	}
	if m.Spec.Reason == "" {
		m.Spec.Reason = "NodeRollout " + owner.Name
	}
	a.mark(m, &owner.Spec)
	if !deadline.IsZero() {
		m.Spec.Deadline = &v1alpha1.Deadline{Time: metav1.NewTime(deadline.UTC().Truncate(time.Second)), OnDeadline: v1alpha1.DeadlineGiveBack}
	}
	if by := owner.Annotations[v1alpha1.RequestedByAnnotation]; by != "" {
		m.Annotations[v1alpha1.RequestedByAnnotation] = by
	}
	return m
}

// complete gives back the node of a record.
func (r *record) complete() Change {
	after := r.object.DeepCopy()
	after.Spec.Stage = v1alpha1.StageComplete
	return Change{Before: r.object, After: after}
}

// release ends the record: the NodeMaintenance stays, or goes if its node is given back. One that goes
// keeps its marks, without which a policy refuses the deletion, and nobody would repeat it.
func (r *record) release() Change {
	after := r.object.DeepCopy()
	after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == v1alpha1.RolloutFinalizer })
	if r.live() {
		delete(after.Labels, v1alpha1.RolloutLabel)
		delete(after.Annotations, v1alpha1.RolloutAttemptAnnotation)
	}
	return Change{Before: r.object, After: after, Delete: !r.live() && r.object.DeletionTimestamp == nil}
}

// retarget has the work on a node measured by a changed target. A changed job runs again.
func (r *record) retarget(owner *v1alpha1.NodeRollout, target string) Change {
	attempt := r.Attempt
	attempt.Target = target
	if job := jobOf(&owner.Spec); job != attempt.CronJob {
		attempt.Job = handover.Job{CronJob: job}
	}
	return r.become(attempt, owner)
}

// become records another state of the attempt.
func (r *record) become(attempt Attempt, owner *v1alpha1.NodeRollout) Change {
	after := r.object.DeepCopy()
	delete(after.Annotations, v1alpha1.RebootAnnotation)
	attempt.mark(after, &owner.Spec)
	return Change{Before: r.object, After: after}
}

// mark records the attempt in its NodeMaintenance, with what the node waits for. It reboots only
// after its Job has succeeded.
func (a *Attempt) mark(m *v1alpha1.NodeMaintenance, spec *v1alpha1.NodeRolloutSpec) {
	a.write(m)
	m.Spec.CompleteWhen = completeWhen(spec)
	if spec.Reboot && !a.Awaited() {
		m.Annotations[v1alpha1.RebootAnnotation] = "true"
	}
}

// write records the attempt in its NodeMaintenance.
func (a *Attempt) write(m *v1alpha1.NodeMaintenance) {
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // Strings, numbers and times.
	}
	m.Annotations[v1alpha1.RolloutAttemptAnnotation] = string(text)
}
