package validate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// EvacuationFacts holds what the validation of an Evacuation depends on.
type EvacuationFacts struct {
	Object *v1alpha1.Evacuation
	// Pod has the name in podRef, with any UID; nil if it does not exist.
	Pod        *corev1.Pod
	Evacuators []v1alpha1.Evacuator
}

var (
	podRefPath     = field.NewPath("spec", "podRef")
	completePath   = field.NewPath("metadata", "labels").Key(v1alpha1.CompleteLabel)
	evacuatorsPath = field.NewPath("spec", "evacuators")
	policyPath     = field.NewPath("status", "evacuationCancellationPolicy")
	progressPath   = field.NewPath("status", "evacuationProgressTimestamp")
)

// CreateEvacuation refuses a missing pod and evacuators that the pod does not have.
func CreateEvacuation(e EvacuationFacts) field.ErrorList {
	ref := e.Object.Spec.PodRef
	if e.Pod == nil {
		return field.ErrorList{field.Invalid(podRefPath.Child("name"), ref.Name,
			fmt.Sprintf("there is no pod of this name in namespace %s; an Evacuation lives in the namespace of its pod", e.Object.Namespace))}
	}
	if e.Pod.UID != ref.UID {
		return field.ErrorList{field.Invalid(podRefPath.Child("uid"), ref.UID,
			fmt.Sprintf("pod %s has the UID %s, so that this is another pod of the same name; read the pod again", ref.Name, e.Pod.UID))}
	}
	return evacuatorsOf(e)
}

// UpdateEvacuation refuses evacuators that the pod does not have, and the label by which the
// controller deletes an Evacuation. The CRD refuses changes of immutable fields.
func UpdateEvacuation(e EvacuationFacts, old *v1alpha1.Evacuation) field.ErrorList {
	if e.Object.Labels[v1alpha1.CompleteLabel] != old.Labels[v1alpha1.CompleteLabel] {
		return field.ErrorList{field.Forbidden(completePath,
			"only the evacuation controller sets it, when the pod is gone; leave it as it is, and drop your finalizer if you no longer ask for the evacuation")}
	}
	if sameEvacuators(e.Object.Spec.Evacuators, old.Spec.Evacuators) {
		return nil
	}
	return evacuatorsOf(e)
}

// DeleteEvacuation refuses a cancellation that an evacuator has forbidden.
func DeleteEvacuation(e EvacuationFacts) field.ErrorList {
	status, ref := &e.Object.Status, e.Object.Spec.PodRef
	if status.EvacuationCancellationPolicy != v1alpha1.CancellationForbid || e.Pod == nil || e.Pod.UID != ref.UID {
		return nil
	}
	return field.ErrorList{field.Forbidden(policyPath,
		fmt.Sprintf("evacuator %s has forbidden to cancel the evacuation of pod %s; it ends when the pod is gone", status.ActiveEvacuatorClass, ref.Name))}
}

// UpdateEvacuationStatus refuses a new progress report from the future.
func UpdateEvacuationStatus(status, old v1alpha1.EvacuationStatus, now time.Time) field.ErrorList {
	progress := status.EvacuationProgressTimestamp
	latest := now.Add(evacuation.MaxClockSkew)
	if progress == nil || progress.Equal(old.EvacuationProgressTimestamp) || !progress.After(latest) {
		return nil
	}
	return field.ErrorList{field.Invalid(progressPath, phrase.Time(progress.Time),
		fmt.Sprintf("must not be later than %s, a minute from now; check the clock of the evacuator", phrase.Time(latest)))}
}

// EvacuationWarnings reports ignored registrations and replaced evacuators.
func EvacuationWarnings(given []v1alpha1.Evacuator, e EvacuationFacts, problems []podclass.Problem) []string {
	var warnings []string
	if len(given) > 0 && !sameEvacuators(given, e.Evacuators) {
		warnings = append(warnings, fmt.Sprintf("%s: replaced by those that are registered on pod %s", evacuatorsPath, e.Pod.Name))
	}
	for _, problem := range problems {
		warnings = append(warnings, fmt.Sprintf("pod %s: %s", e.Pod.Name, problem.Message))
	}
	return warnings
}

// InstigatorWarnings warns that an Evacuation in the name of NodeMaintenances is withdrawn.
func InstigatorWarnings(e *v1alpha1.Evacuation) []string {
	if !slices.Contains(e.Finalizers, v1alpha1.NodeMaintenanceInstigator) {
		return nil
	}
	return []string{fmt.Sprintf("metadata.finalizers: %s belongs to the NodeMaintenance controller, which removes it within seconds unless a NodeMaintenance drains pod %s; "+
		"the Evacuation is deleted then. To ask for it yourself, use a finalizer of your own: %sexample.com",
		v1alpha1.NodeMaintenanceInstigator, e.Spec.PodRef.Name, v1alpha1.InstigatorFinalizerPrefix)}
}

func evacuatorsOf(e EvacuationFacts) field.ErrorList {
	if sameEvacuators(e.Object.Spec.Evacuators, e.Evacuators) {
		return nil
	}
	return field.ErrorList{field.Forbidden(evacuatorsPath,
		fmt.Sprintf("evacuators are those that are registered on pod %s and no others; leave them out, or try again if they have just changed", e.Object.Spec.PodRef.Name))}
}

// sameEvacuators compares lists without their order.
func sameEvacuators(a, b []v1alpha1.Evacuator) bool {
	return slices.Equal(byClass(a), byClass(b))
}

func byClass(evacuators []v1alpha1.Evacuator) []v1alpha1.Evacuator {
	return slices.SortedFunc(slices.Values(evacuators), func(a, b v1alpha1.Evacuator) int {
		return cmp.Compare(a.EvacuatorClass, b.EvacuatorClass)
	})
}

// EvacuationRefusal refuses a user who may not delete the pod.
func EvacuationRefusal(user string, e *v1alpha1.Evacuation, why string) string {
	if why != "" {
		why = " (" + why + ")"
	}
	return fmt.Sprintf("user %q may not delete pod %s in namespace %s%s, and only who may delete a pod may have it evacuated or end that: "+
		`ask for the verb "delete" on pods in this namespace`, user, e.Spec.PodRef.Name, e.Namespace, why)
}
