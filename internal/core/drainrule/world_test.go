package drainrule_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// aRule skips all pods of all Machines, until it is changed.
func aRule(name string, changes ...func(*v1alpha1.MachineDrainRule)) *v1alpha1.MachineDrainRule {
	rule := &v1alpha1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, UID: types.UID("uid-" + name)}}
	rule.Spec.Drain.Behavior = v1alpha1.DrainBehaviorSkip
	for _, change := range changes {
		change(rule)
	}
	return rule
}

func ruleObject(name string) v1alpha1.BlockerObject {
	return v1alpha1.BlockerObject{APIVersion: "ebbtide.dev/v1alpha1", Kind: "MachineDrainRule", Namespace: "fleet", Name: name, UID: types.UID("uid-" + name)}
}

func behaves(behavior v1alpha1.DrainBehavior) func(*v1alpha1.MachineDrainRule) {
	return func(r *v1alpha1.MachineDrainRule) { r.Spec.Drain.Behavior = behavior }
}

// ordered drains.
func ordered(order int32) func(*v1alpha1.MachineDrainRule) {
	return func(r *v1alpha1.MachineDrainRule) {
		r.Spec.Drain = v1alpha1.MachineDrainRuleDrain{Behavior: v1alpha1.DrainBehaviorDrain, Order: &order}
	}
}

// machines, pods and nodes add an entry.
func machines(selector, cluster *metav1.LabelSelector) func(*v1alpha1.MachineDrainRule) {
	return func(r *v1alpha1.MachineDrainRule) {
		r.Spec.Machines = append(r.Spec.Machines, v1alpha1.MachineDrainRuleMachineSelector{Selector: selector, ClusterSelector: cluster})
	}
}

func pods(selector, namespace *metav1.LabelSelector) func(*v1alpha1.MachineDrainRule) {
	return func(r *v1alpha1.MachineDrainRule) {
		r.Spec.Pods = append(r.Spec.Pods, v1alpha1.MachineDrainRulePodSelector{Selector: selector, NamespaceSelector: namespace})
	}
}

func nodes(selector *metav1.LabelSelector) func(*v1alpha1.MachineDrainRule) {
	return func(r *v1alpha1.MachineDrainRule) {
		r.Spec.Nodes = append(r.Spec.Nodes, v1alpha1.MachineDrainRuleNodeSelector{Selector: selector})
	}
}

// is selects by one label.
func is(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func expression(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

var (
	everything = &metav1.LabelSelector{}
	// bad is what only a missing webhook lets in.
	bad = expression("app", "Near", "web")
)

func badBut(key, value string) *metav1.LabelSelector {
	selector := bad.DeepCopy()
	selector.MatchLabels = map[string]string{key: value}
	return selector
}

func aPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{"app": "web"}}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func in(namespace string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Namespace = namespace }
}

func labelled(value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels[v1alpha1.DrainLabel] = value }
}

func static(pod *corev1.Pod) {
	podclass.MakeMirror(pod, "node")
}

func ofDaemonSet(uid types.UID) func(*corev1.Pod) {
	controller := true
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "proxy", UID: uid, Controller: &controller}}
	}
}

func finished(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }

// facts know of namespaces shop and lab, and of DaemonSet shop/proxy with the
// UID "one".
func facts() drainrule.Facts {
	return drainrule.Facts{
		Namespaces: map[string]map[string]string{"shop": {"team": "sales"}, "lab": {"team": "science"}},
		DaemonSets: map[types.NamespacedName]types.UID{{Namespace: "shop", Name: "proxy"}: "one"},
	}
}

func blind() drainrule.Facts {
	return drainrule.Facts{
		NamespaceErrors: map[string]string{"shop": "the server is busy"},
		DaemonSetErrors: map[types.NamespacedName]string{{Namespace: "shop", Name: "proxy"}: "the server is busy"},
	}
}
