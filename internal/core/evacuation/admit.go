package evacuation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/skew"
)

// Call is a call of the eviction API by another client. Pod and Evacuation are nil if they do not
// exist.
type Call struct {
	Snapshot
	// Only is which pod the call is about.
	Only PodVersion
	// Meant is the earlier pod of that name that the caller waits for; empty if there is none.
	Meant types.UID
	// Budgets are the PodDisruptionBudgets of the namespace that bear a lock.
	Budgets []*policyv1.PodDisruptionBudget
	// LongestLock limits the time of a lock of a budget; see budget.LockOf.
	LongestLock time.Duration
	// NodeGoes is true if the node goes with its Machine, so that its own drain's locks do not
	// count.
	NodeGoes bool
	// Responding is the active responder, As the responder that the caller claims to be; empty if
	// none.
	Responding Responding
	As         string
}

// CallerPatience is the longest pause between calls of one caller about the same pod.
const CallerPatience = 30 * time.Second

// PodVersion identifies one of the pods that share a name over time; empty fields match any.
type PodVersion struct {
	UID             types.UID
	ResourceVersion string
}

// Of reports whether the pod is the one that is meant.
func (v PodVersion) Of(pod *corev1.Pod) bool {
	return (v.UID == "" || v.UID == pod.UID) && (v.ResourceVersion == "" || v.ResourceVersion == pod.ResourceVersion)
}

// Verdict holds the answer to a call of the eviction API. A caller that has to wait leaves an
// Evacuation in its name behind.
type Verdict struct {
	// Admitted is true if the call may reach the pod.
	Admitted bool
	// Gone is true if the caller's pod is gone and another pod has its name.
	Gone    bool
	Message string
	// Create is the Evacuation to be created; nil if there is one.
	Create *v1alpha1.Evacuation
	// Attempt is the new value of v1alpha1.EvictionAttemptAnnotation; empty if the last one
	// suffices.
	Attempt string
	// Join is true if the finalizer v1alpha1.EvictionInstigator has to be added after Attempt.
	Join bool
}

// Asks reports whether the caller's request has to be stored before it is answered.
func (v Verdict) Asks() bool { return v.Create != nil || v.Join }

// Admit decides about a call of the eviction API. The caller waits while a budget of the pod is
// locked, while a responder moves the pod, or while an evacuator can, which is requested in its
// name.
func Admit(c Call) Verdict {
	if leavesAnyway(c) {
		return Verdict{Admitted: true}
	}
	if c.Meant != "" && c.Meant != c.Pod.UID && c.Only == (PodVersion{}) {
		return Verdict{Gone: true, Message: fmt.Sprintf("pod %s with UID %s is gone; the pod of this name on node %s has come after it",
			c.Pod.Name, c.Meant, c.Pod.Spec.NodeName)}
	}
	if b, hold := budget.FirstLocked(c.barring(), skew.Earliest(c.Now, c.ClockSkewed), c.LongestLock); b != nil {
		// A caller who has asked before goes on asking.
		return Verdict{Message: hold.Describe(b) + "; try again when it is free", Attempt: c.dueAttempt()}
	}
	if words := c.responding(); words != "" {
		// One engine for a pod: nobody else is asked to move it.
		return Verdict{Message: words, Attempt: c.dueAttempt()}
	}
	s := joined(c)
	d := Decide(s)
	status := &s.Evacuation.Status
	if d.Status != nil {
		status = d.Status
	}
	switch {
	case d.State != StateEvacuating, onlyForMaintenances(s.Evacuation, status.ActiveEvacuatorClass):
		// A caller whom a budget holds back next goes on asking.
		return Verdict{Admitted: true, Attempt: c.dueAttempt()}
	case c.Evacuation == nil:
		return Verdict{
			Message: fmt.Sprintf("%s is asked to move pod %s; %s", inProgress(status), c.Pod.Name, tryAgain),
			Create:  s.Evacuation,
		}
	case c.Evacuation.DeletionTimestamp != nil && !asks(c.Evacuation):
		return Verdict{Message: ending(c.Evacuation)}
	case !asks(c.Evacuation):
		return Verdict{Message: progress(s.Evacuation, status), Attempt: c.attempt(), Join: true}
	default:
		return Verdict{Message: progress(s.Evacuation, status), Attempt: c.dueAttempt()}
	}
}

func (c Call) barring() []*policyv1.PodDisruptionBudget {
	applying := budget.Applying(c.Pod, c.Budgets)
	if c.NodeGoes {
		return budget.Besides(c.Pod.Spec.NodeName, applying)
	}
	return applying
}

// leavesAnyway is true if the call is about no pod that could be moved.
func leavesAnyway(c Call) bool {
	return c.Pod == nil || !c.Only.Of(c.Pod) ||
		c.Pod.DeletionTimestamp != nil || podclass.Terminal(c.Pod)
}

// onlyForMaintenances reports whether only our DaemonSet and static evacuators are left, which act
// for maintenances.
func onlyForMaintenances(e *v1alpha1.Evacuation, turn string) bool {
	left, now := inTurn(e, turn)
	return !slices.ContainsFunc(left[max(now, 0):], func(evacuator v1alpha1.Evacuator) bool {
		return evacuator.EvacuatorClass != v1alpha1.DaemonSetEvacuatorClass && evacuator.EvacuatorClass != v1alpha1.KubeletEvacuatorClass
	})
}

func joined(c Call) Snapshot {
	s := c.Snapshot
	if c.Evacuation == nil {
		s.Evacuation = New(c.Pod, v1alpha1.EvictionInstigator, c.Evacuators)
	} else {
		s.Evacuation = c.Evacuation.DeepCopy()
	}
	if unresolved(s.Evacuation) {
		s.Evacuation.Spec.Evacuators = c.Evacuators
	}
	if !asks(s.Evacuation) {
		s.Evacuation.Finalizers = append(s.Evacuation.Finalizers, v1alpha1.EvictionInstigator)
	}
	metav1.SetMetaDataAnnotation(&s.Evacuation.ObjectMeta, v1alpha1.EvictionAttemptAnnotation, c.attempt())
	return s
}

// asks reports whether callers of the eviction API request the evacuation.
func asks(e *v1alpha1.Evacuation) bool {
	return slices.Contains(e.Finalizers, v1alpha1.EvictionInstigator)
}

func (c Call) attempt() string { return c.Now.UTC().Format(time.RFC3339) }

func (c Call) dueAttempt() string {
	if c.Evacuation == nil || !asks(c.Evacuation) {
		return ""
	}
	noted, err := time.Parse(time.RFC3339, c.Evacuation.Annotations[v1alpha1.EvictionAttemptAnnotation])
	if err == nil && c.Now.Sub(noted).Abs() < AttemptInterval {
		return ""
	}
	return c.attempt()
}

const tryAgain = "try again until the pod is gone"

func inProgress(status *v1alpha1.EvacuationStatus) string {
	return "evacuation in progress: " + status.ActiveEvacuatorClass
}

// progress returns how far the evacuator has come whose turn it is now.
func progress(e *v1alpha1.Evacuation, status *v1alpha1.EvacuationStatus) string {
	facts := []string{"asked for at " + stamp(&e.CreationTimestamp)}
	if at := status.EvacuationProgressTimestamp; at != nil {
		facts = append(facts, "last progress at "+stamp(at))
	}
	if at := status.ExpectedEvacuationFinishTime; at != nil {
		facts = append(facts, "expected to end at "+stamp(at))
	}
	return fmt.Sprintf("%s moves pod %s (%s); %s",
		inProgress(status), e.Spec.PodRef.Name, strings.Join(facts, ", "), tryAgain)
}

func stamp(at *metav1.Time) string { return at.UTC().Format(time.RFC3339) }

// ending reports an Evacuation that takes no further requests.
func ending(e *v1alpha1.Evacuation) string {
	held := ""
	if len(e.Finalizers) > 0 {
		held = fmt.Sprintf(" and held by %s", strings.Join(e.Finalizers, ", "))
	}
	return fmt.Sprintf("an earlier evacuation of pod %s is being deleted%s; try again when it is gone", e.Spec.PodRef.Name, held)
}
