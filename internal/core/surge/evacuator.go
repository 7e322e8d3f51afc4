package surge

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Mode says which Deployments surge when a pod of theirs is evacuated.
type Mode string

const (
	// Annotated surges pods with our annotation on them or their Deployment; the default.
	Annotated Mode = "annotated"
	// Auto surges every eligible Deployment besides.
	Auto Mode = "auto"
	// Off surges nothing: the annotation of our class is left out.
	Off Mode = "off"
)

// ParseMode reads a Mode; the error names the values that there are.
func ParseMode(text string) (Mode, error) {
	switch mode := Mode(text); mode {
	case Annotated, Auto, Off:
		return mode, nil
	default:
		return "", fmt.Errorf("surge mode %q: must be %s, %s or %s", text, Annotated, Auto, Off)
	}
}

const annotation = v1alpha1.EvacuatorAnnotationPrefix + v1alpha1.DeploymentEvacuatorClass

// Named reports whether a pod names our responder, by which it registers our class, too.
func Named(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.EvictionResponders, func(one corev1.EvictionResponder) bool {
		return one.Name == v1alpha1.DeploymentSurgeResponder
	})
}

// Unable returns why a pod or its Deployment, if known, prevents surging; empty if neither does.
func Unable(pod *corev1.Pod, deployment *appsv1.Deployment, mode Mode) string {
	owner := podclass.Owner(pod)
	switch {
	case mode == Off && !Detached(pod):
		return fmt.Sprintf("Pod %s is not replaced: %s.", pod.Name, switchedOff)
	case Detached(pod):
		return ""
	case owner == nil || owner.Kind != "ReplicaSet":
		return ofNobody(pod.Name)
	case deployment == nil:
		// Who it belongs to may not be known yet.
		return ""
	}
	if why := Ineligible(deployment); why != "" {
		return cannot(deployment.Name, why)
	}
	return ""
}

func ofNobody(pod string) string {
	return fmt.Sprintf("Pod %s belongs to no Deployment that could surge.", pod)
}

func cannot(deployment, why string) string {
	return fmt.Sprintf("Deployment %s cannot surge: %s.", deployment, why)
}

// Evacuators returns those of podclass.Evacuators, and ours if its Deployment, if any, its
// responders or the mode register it.
func Evacuators(pod *corev1.Pod, deployment *appsv1.Deployment, mode Mode) ([]v1alpha1.Evacuator, []podclass.Problem) {
	_, onPod := pod.Annotations[annotation]
	switch {
	case mode == Off && onPod:
		return off(pod)
	case onPod, mode == Off:
		return podclass.Evacuators(pod)
	}
	value, registered := registration(pod, deployment, mode)
	if !registered {
		return podclass.Evacuators(pod)
	}
	return podclass.Evacuators(with(pod, func(annotations map[string]string) { annotations[annotation] = value }))
}

// registration returns the value of our annotation for a pod. A detached pod always has one.
func registration(pod *corev1.Pod, deployment *appsv1.Deployment, mode Mode) (value string, registered bool) {
	ours := fmt.Sprintf("%d/%s", v1alpha1.ControllerEvacuatorPriority, v1alpha1.ControllerEvacuatorRole)
	if Detached(pod) {
		return ours, true
	}
	if deployment == nil {
		return "", false
	}
	if value, registered = deployment.Annotations[annotation]; registered {
		return value, true
	}
	return ours, (mode == Auto || Named(pod)) && Ineligible(deployment) == ""
}

// off leaves our class out and says so.
func off(pod *corev1.Pod) ([]v1alpha1.Evacuator, []podclass.Problem) {
	evacuators, problems := podclass.Evacuators(with(pod, func(annotations map[string]string) { delete(annotations, annotation) }))
	return evacuators, append(problems, podclass.Problem{
		Key:     annotation,
		Message: fmt.Sprintf("annotation %s is ignored: surging is switched off", annotation),
	})
}

func with(pod *corev1.Pod, change func(map[string]string)) *corev1.Pod {
	changed := *pod
	changed.Annotations = maps.Clone(pod.Annotations)
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	change(changed.Annotations)
	return &changed
}
