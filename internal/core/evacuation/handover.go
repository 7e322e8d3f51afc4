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

const maxCause = 1024

// Cause identifies the Eviction and its active responder for which an Evacuation is requested.
type Cause struct {
	// Name and UID identify the Eviction, which is in the same namespace.
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	Responder string    `json:"responder"`
}

// CauseOf returns the Cause of an Evacuation; empty if it has none that is valid.
func CauseOf(e *v1alpha1.Evacuation) Cause {
	var cause Cause
	text := e.Annotations[v1alpha1.EvictionTurnAnnotation]
	if len(text) > maxCause || json.Unmarshal([]byte(text), &cause) != nil {
		return Cause{}
	}
	return cause
}

// IsForResponder reports whether a responder of ours requests the evacuation.
func IsForResponder(e *v1alpha1.Evacuation) bool {
	return slices.Contains(e.Finalizers, v1alpha1.LifecycleInstigator)
}

// ForResponder returns the Evacuation as a responder requests it.
func ForResponder(e *v1alpha1.Evacuation, cause Cause) *v1alpha1.Evacuation {
	requested := e.DeepCopy()
	if !IsForResponder(requested) {
		requested.Finalizers = append(requested.Finalizers, v1alpha1.LifecycleInstigator)
	}
	// A struct of strings is always written.
	text, _ := json.Marshal(cause)
	metav1.SetMetaDataAnnotation(&requested.ObjectMeta, v1alpha1.EvictionTurnAnnotation, string(text))
	return requested
}

// handedOver reports whether a pod is left to the next responders, because the active one should
// have replaced it and cannot. Other instigators than callers of the eviction API do not wait.
func handedOver(s Snapshot, why string) (message string, over bool) {
	e := s.Evacuation
	others := slices.ContainsFunc(Instigators(e), func(one string) bool {
		return one != v1alpha1.LifecycleInstigator && one != v1alpha1.EvictionInstigator
	})
	if others || !IsForResponder(e) || CauseOf(e).Responder != v1alpha1.DeploymentSurgeResponder {
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
