package lint

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/surge"
)

const maxWords = 63

func ofApps(kind string, object metav1.Object) v1alpha1.BlockerObject {
	return v1alpha1.BlockerObject{APIVersion: "apps/v1", Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// deployment checks whether a Deployment has a single pod that goes down before it is replaced.
func (l *linter) deployment(d *appsv1.Deployment) {
	evacuators, _ := surge.Evacuators(podOf(&d.Spec.Template), d, surge.Annotated)
	why := surge.Ineligible(d)
	if d.Spec.Replicas != nil && *d.Spec.Replicas != 1 {
		if why != "" || len(evacuators) == 0 {
			l.unprotected(ofApps("Deployment", d), &d.Spec.Template, d.Spec.Selector, *d.Spec.Replicas)
		}
		return
	}
	f := Finding{Check: SingleReplica, Object: ofApps("Deployment", d)}
	switch {
	case why != "":
		f.Message = fmt.Sprintf("Its only pod is down while it moves because it cannot be replaced first: %s.", why)
		f.Suggestion = command.Of("Run at least 2 replicas: kubectl -n %s scale deployment %s --replicas 2. To replace pods first, see docs/applications.md", d.Namespace, d.Name)
	case len(evacuators) == 0:
		f.Message = "Its only pod is down while it moves because surging is not enabled."
		f.Suggestion = command.Of("Enable surging: kubectl -n %s annotate deployment %s %s=%d/%s", d.Namespace, d.Name,
			v1alpha1.EvacuatorAnnotationPrefix+v1alpha1.DeploymentEvacuatorClass, v1alpha1.ControllerEvacuatorPriority, v1alpha1.ControllerEvacuatorRole)
	default:
		return
	}
	l.add(f, 1)
}

func podOf(template *corev1.PodTemplateSpec) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
}

// statefulSet checks whether a StatefulSet has a single pod, which is replaced late.
func (l *linter) statefulSet(set *appsv1.StatefulSet) {
	evacuators, _ := podclass.Evacuators(podOf(&set.Spec.Template))
	switch {
	case len(evacuators) > 0:
		return
	case set.Spec.Replicas != nil && *set.Spec.Replicas != 1:
		l.unprotected(ofApps("StatefulSet", set), &set.Spec.Template, set.Spec.Selector, *set.Spec.Replicas)
		return
	}
	l.add(Finding{
		Check: SingleReplica, Object: ofApps("StatefulSet", set),
		Message:    "Its only pod is down while it moves because a StatefulSet recreates it afterwards.",
		Suggestion: "Run more replicas, or keep the pod on its node during reboots: docs/in-place.md",
	}, 1)
}

// unprotected checks whether several pods may all leave at the same time.
func (l *linter) unprotected(object v1alpha1.BlockerObject, template *corev1.PodTemplateSpec, selector *metav1.LabelSelector, replicas int32) {
	pod := podOf(template)
	pod.Namespace = object.Namespace
	if replicas < 2 || len(l.budgets[object.Namespace].Applying(pod)) > 0 {
		return
	}
	labels := command.Quote("LABELS")
	if selector != nil && len(selector.MatchExpressions) == 0 && len(selector.MatchLabels) > 0 {
		labels = command.Quote(metav1.FormatLabelSelector(selector))
	}
	l.add(Finding{
		Check: NoBudget, Object: object,
		Message:    "No PodDisruptionBudget selects its pods, so a drain may evict all of them at once.",
		Suggestion: command.Of("Allow one disruption at a time: kubectl -n %s create poddisruptionbudget %s --selector %s --max-unavailable 1", object.Namespace, object.Name, labels),
	}, int(replicas))
}

// daemonSet checks whether the pods of a DaemonSet tolerate every taint.
func (l *linter) daemonSet(set *appsv1.DaemonSet) {
	if !podclass.Tolerates(podOf(&set.Spec.Template), v1alpha1.DaemonSetTaint) {
		return
	}
	l.add(Finding{
		Check: ToleratesEverything, Object: ofApps("DaemonSet", set),
		Message:    "Its pods tolerate every taint, so its rollout waits for nodes under maintenance.",
		Suggestion: command.Of("Narrow the tolerations, or complete maintenances before rollouts: kubectl -n %s edit daemonset %s", set.Namespace, set.Name),
	}, int(set.Status.CurrentNumberScheduled))
}

func (l *linter) ownerOf(pod *corev1.Pod) {
	if podclass.Owner(pod) != nil {
		return
	}
	f := l.add(Finding{
		Check: BarePod, Object: v1alpha1.BlockerObject{APIVersion: "v1", Kind: "Namespace", Name: pod.Namespace},
		Message:    "Pods without a controller are not recreated when they leave their node: %s.",
		Suggestion: "Use a Deployment or a Job, or keep them on their node with label " + v1alpha1.DrainLabel + "=skip.",
	}, 1)
	f.names[pod.Name] = true
}

func (l *linter) dataOf(pod *corev1.Pod) {
	names := l.localVolumes(pod)
	if len(names) == 0 {
		return
	}
	f := l.add(Finding{
		Check: LocalData, Object: l.application(pod),
		Message:    "Data in these volumes is left behind or lost when the pods leave their node: %s.",
		Suggestion: "If the data matters, use network volumes, or keep the pods on their node during reboots: docs/in-place.md",
	}, 1)
	for _, name := range names {
		f.names[excerpt.Line(name, maxWords)] = true
	}
}

func (l *linter) localVolumes(pod *corev1.Pod) (names []string) {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		claim := v.PersistentVolumeClaim
		switch {
		case podclass.Temporary(v) != "",
			claim != nil && l.local[types.NamespacedName{Namespace: pod.Namespace, Name: claim.ClaimName}]:
			names = append(names, v.Name)
		}
	}
	return slices.Clip(names)
}

func (l *linter) application(pod *corev1.Pod) v1alpha1.BlockerObject {
	owner := podclass.Owner(pod)
	if owner == nil {
		return v1alpha1.BlockerObject{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}
	}
	if d := l.deployments[owner.UID]; d != nil {
		return ofApps("Deployment", d)
	}
	return v1alpha1.BlockerObject{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: pod.Namespace, Name: owner.Name}
}
