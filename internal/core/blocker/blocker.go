// Package blocker says why a pod that has to leave its node does not, in words
// that an administrator can act on.
//
// It reads facts and never decides what happens next. The time of a blocker
// comes from the objects, never from the clock, so that it does not flap.
package blocker

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
)

// Facts holds what is known of one pod that has to leave.
type Facts struct {
	Now  time.Time
	Pod  *corev1.Pod
	Node *corev1.Node
	// DrainStarted is the start of the node's drain; pods created later came back. Zero if unknown.
	DrainStarted time.Time
	// Evacuation is the pod's Evacuation, nil if there is none yet.
	Evacuation *v1alpha1.Evacuation
	// Request is our EvictionRequest for the pod, Eviction the current Eviction; nil if there is
	// none.
	Request  *lifecyclev1alpha1.EvictionRequest
	Eviction *lifecyclev1alpha1.Eviction
	// Waits is the reason why the pod waits to be asked by an EvictionRequest; empty if it does not.
	Waits     string
	Treatment drainrule.Treatment
	// Budgets are the PodDisruptionBudgets of the pod's namespace.
	Budgets budget.Compiled
}

// Of returns what holds the pod back, if anything does.
func Of(f *Facts) (v1alpha1.Blocker, bool) {
	if f.Pod.DeletionTimestamp != nil {
		return terminating(f)
	}
	for _, explain := range []func(*Facts) (v1alpha1.Blocker, bool){failedRequest, refused, unclear, waitedFor, pendingRequest, responding, evacuating, recreated} {
		if b, found := explain(f); found {
			return b, true
		}
	}
	return v1alpha1.Blocker{}, false
}

func one(kind v1alpha1.BlockerType, object v1alpha1.BlockerObject, since time.Time) v1alpha1.Blocker {
	b := v1alpha1.Blocker{Type: kind, Object: object, PodCount: 1}
	if !since.IsZero() {
		b.SinceTime = &metav1.Time{Time: since}
	}
	return b
}

// AtWork returns true of a blocker that is nothing but somebody at work.
func AtWork(kind v1alpha1.BlockerType) bool {
	return kind == v1alpha1.BlockerEvacuatorRunning || kind == v1alpha1.BlockerForeignDrain
}
