package evacuation

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// maxTurn is how long a Turn is, written down, at the most.
const maxTurn = 1024

// Turn is whose turn of which Eviction of lifecycle.k8s.io an Evacuation is for.
type Turn struct {
	// Name and UID are those of the Eviction, which is in the same namespace.
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// Responder is who asks in its turn.
	Responder string `json:"responder"`
}

// TurnOf returns the turn that an Evacuation is for; empty if it is for none, or if what is
// written down cannot be one.
func TurnOf(e *v1alpha1.Evacuation) Turn {
	var turn Turn
	text := e.Annotations[v1alpha1.EvictionTurnAnnotation]
	if len(text) > maxTurn || json.Unmarshal([]byte(text), &turn) != nil {
		return Turn{}
	}
	return turn
}

// ForTurn reports whether a responder of ours asks for the evacuation.
func ForTurn(e *v1alpha1.Evacuation) bool {
	return slices.Contains(e.Finalizers, v1alpha1.LifecycleInstigator)
}

// InTurn returns the Evacuation as it is when it is asked for in a turn.
func InTurn(e *v1alpha1.Evacuation, turn Turn) *v1alpha1.Evacuation {
	asked := e.DeepCopy()
	if !ForTurn(asked) {
		asked.Finalizers = append(asked.Finalizers, v1alpha1.LifecycleInstigator)
	}
	// A struct of strings is always written.
	text, _ := json.Marshal(turn)
	metav1.SetMetaDataAnnotation(&asked.ObjectMeta, v1alpha1.EvictionTurnAnnotation, string(text))
	return asked
}

// handedOver reports whether a pod that could be evicted now is not, and why: in this turn
// it is to be replaced first, and nothing replaces it. It is for the responders that come
// next. Callers of the eviction API wait for these, too; others who ask for the evacuation do not.
func handedOver(s Snapshot, why string) (words string, over bool) {
	e := s.Evacuation
	others := slices.ContainsFunc(Instigators(e), func(one string) bool {
		return one != v1alpha1.LifecycleInstigator && one != v1alpha1.EvictionInstigator
	})
	if others || !ForTurn(e) || TurnOf(e).Responder != v1alpha1.DeploymentSurgeResponder {
		return "", false
	}
	told := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionSurged)
	_, detached := s.Pod.Annotations[v1alpha1.SurgeAnnotation]
	silent := e.Status.ActiveEvacuatorClass == v1alpha1.DeploymentEvacuatorClass && !e.Status.ActiveEvacuatorCompleted
	switch {
	case told != nil && told.Status == metav1.ConditionFalse:
		return told.Message, true
	case detached && !silent:
		return "", false
	}
	return fmt.Sprintf("Pod %s is not replaced: %s.", s.Pod.Name, why), true
}
