package blocker

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

func evacuating(f *Facts) (v1alpha1.Blocker, bool) {
	if f.Evacuation == nil {
		return v1alpha1.Blocker{}, false
	}
	status := &f.Evacuation.Status
	if status.ActiveEvacuatorClass == "" || status.ActiveEvacuatorCompleted {
		return v1alpha1.Blocker{}, false
	}
	b := one(v1alpha1.BlockerEvacuatorRunning, v1alpha1.BlockerObject{Kind: "Evacuator", Name: status.ActiveEvacuatorClass}, f.Evacuation.CreationTimestamp.Time)
	b.Message = fmt.Sprintf("Evacuator %s moves the pod.", status.ActiveEvacuatorClass)
	if status.Message != "" {
		b.Message += " It says: " + status.Message
	}
	b.Suggestion = command.Of("Wait: if it is silent for too long, the next one takes over. Its reports: kubectl -n %s describe evacuation %s",
		f.Pod.Namespace, f.Evacuation.Name)
	if told := Unplaced(f.Evacuation); told != nil {
		b.Type, b.Object, b.SinceTime = v1alpha1.BlockerReplacementUnschedulable, ofPod(f.Pod), &told.LastTransitionTime
		b.Message = "No node has room for the replacement of the pod: " + told.Message
		b.Suggestion = command.Of("Make room, or give cordoned nodes back: kubectl ebbtide status. Without room the pod is evicted when progressDeadlineSeconds of its Deployment are over")
	}
	return b, true
}

// Unplaced returns the condition that no node has room for the pod's replacement; nil if there is
// none.
func Unplaced(e *v1alpha1.Evacuation) *metav1.Condition {
	told := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReplacementUnschedulable)
	ours := e.Status.ActiveEvacuatorClass == v1alpha1.DeploymentEvacuatorClass && !e.Status.ActiveEvacuatorCompleted
	if !ours || told == nil || told.Status != metav1.ConditionTrue {
		return nil
	}
	return told
}

// recreated explains a pod that its owner created during the drain despite the cordon. Mirror pods
// are exempt.
func recreated(f *Facts) (v1alpha1.Blocker, bool) {
	owner := metav1.GetControllerOf(f.Pod)
	if owner == nil || podclass.Type(f.Pod) == v1alpha1.PodTypeStatic || f.DrainStarted.IsZero() || !f.Pod.CreationTimestamp.After(f.DrainStarted) {
		return v1alpha1.Blocker{}, false
	}
	b := one(v1alpha1.BlockerRecreated, ofOwner(f.Pod), f.Pod.CreationTimestamp.Time)
	b.Message = fmt.Sprintf("%s %s puts pods back on node %s although it is cordoned.", owner.Kind, owner.Name, f.Pod.Spec.NodeName)
	b.Suggestion = command.Of("Take spec.nodeName or the pin to this node out of its pod template: kubectl -n %s get pod %s -o yaml",
		f.Pod.Namespace, f.Pod.Name)
	if podclass.Tolerates(f.Pod, corev1.TaintNodeUnschedulable) {
		b.Suggestion = fmt.Sprintf("Take the toleration of %s out of the pod template of %s %s.",
			corev1.TaintNodeUnschedulable, owner.Kind, owner.Name)
	}
	return b, true
}
