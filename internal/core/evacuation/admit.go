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

// Call is a call of the eviction API by another client. In its snapshot, the pod
// is nil if there is none of that name, and the Evacuation if the pod has none.
type Call struct {
	Snapshot
	// Only is which pod the call is about.
	Only PodVersion
	// Meant is the pod of that name that the caller has been waiting for until
	// now; empty if it has not.
	Meant types.UID
	// Budgets are the PodDisruptionBudgets of the namespace that bear a lock.
	Budgets []*policyv1.PodDisruptionBudget
	// LongestLock limits the time of a lock of a budget; see budget.LockOf.
	LongestLock time.Duration
	// NodeGoes is true if the caller empties the node for its Machine, which goes for
	// good: what the drain of the node has locked does not bar its own pods then.
	NodeGoes bool
	// Responding names the responder that moves the pod for an EvictionRequest. As names the
	// responder that the caller claims to be; empty if it claims nothing.
	Responding Responding
	As         string
}

// CallerPatience limits the time between two calls of the eviction API by name from one caller that
// are about the same pod. Drainers call more often.
const CallerPatience = 30 * time.Second

// PodVersion is which of the pods that bear a name one after the other is meant,
// and in which version; empty fields mean any.
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
	// Gone is true if the pod that the caller has been waiting for is gone, and
	// the one that bears its name now is none of the caller's business.
	Gone    bool
	Message string
	// Create is the Evacuation to be created; nil if there is one.
	Create *v1alpha1.Evacuation
	// Attempt is to be noted in the annotation v1alpha1.EvictionAttemptAnnotation
	// of the Evacuation that there is; empty if the last note will do.
	Attempt string
	// Join is true if the finalizer v1alpha1.EvictionInstigator is to be added to
	// it, after Attempt.
	Join bool
}

// Asks reports whether the caller's request is not known yet: nobody may be told
// to wait for what could not be asked for.
func (v Verdict) Asks() bool { return v.Create != nil || v.Join }

// Admit decides about a call of the eviction API. While a budget of the pod is
// locked, or a responder to an Eviction of the pod has its turn, the caller has to wait and
// nobody is asked to move the pod. While an evacuator can still move it, the caller has to
// wait, too, and the pod's evacuators are asked in the caller's name.
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

// onlyForMaintenances is true if from this turn on nobody is left but our evacuators
// of DaemonSet and static pods, which do nothing but for a maintenance.
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
