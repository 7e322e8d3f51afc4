package nodedrain

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

var now = time.Date(2026, 8, 30, 13, 36, 27, 0, time.UTC)

// pod is an ordinary one of namespace ns that runs.
func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{},
			CreationTimestamp: metav1.Time{Time: now.Add(-time.Hour)},
		},
		Spec:   corev1.PodSpec{NodeName: "node"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func in(namespace string, p *corev1.Pod) *corev1.Pod {
	p.Namespace = namespace
	return p
}

func aged(age time.Duration, p *corev1.Pod) *corev1.Pod {
	p.CreationTimestamp = metav1.Time{Time: now.Add(-age)}
	return p
}

func labelled(key, value string, p *corev1.Pod) *corev1.Pod {
	p.Labels[key] = value
	return p
}

// ordered has the order that its label names, by one of the rules of orders.
func ordered(order int32, p *corev1.Pod) *corev1.Pod {
	return labelled("order", fmt.Sprintf("is%d", order), p)
}

func waitCompleted(p *corev1.Pod) *corev1.Pod {
	return labelled(v1alpha1.DrainLabel, "wait-completed", p)
}

func skipped(p *corev1.Pod) *corev1.Pod { return labelled(v1alpha1.DrainLabel, "skip", p) }

// unjudged has a rule that nobody understands.
func unjudged(p *corev1.Pod) *corev1.Pod { return labelled("odd", "", p) }

func phase(phase corev1.PodPhase, p *corev1.Pod) *corev1.Pod {
	p.Status.Phase = phase
	return p
}

// terminating has a grace period that ends this long after now.
func terminating(grace time.Duration, p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = &metav1.Time{Time: now.Add(grace)}
	return p
}

// ofDaemonSet belongs to the DaemonSet agent with this UID; the one that exists
// has UID alive.
func ofDaemonSet(uid types.UID, p *corev1.Pod) *corev1.Pod {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: uid, Controller: ptr.To(true)}}
	return p
}

func mirror(p *corev1.Pod) *corev1.Pod {
	podclass.MakeMirror(p, "node")
	return p
}

func node(ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node"},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
	}
}

func rule(name string, drain v1alpha1.MachineDrainRuleDrain, selector metav1.LabelSelector) *v1alpha1.MachineDrainRule {
	return &v1alpha1.MachineDrainRule{
		ObjectMeta: metav1.ObjectMeta{Namespace: "machines", Name: name},
		Spec: v1alpha1.MachineDrainRuleSpec{
			Drain: drain,
			Pods:  []v1alpha1.MachineDrainRulePodSelector{{Selector: &selector}},
		},
	}
}

func isSet(key string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpExists}}}
}

// orders are those that rules know.
var orders = []int32{-10, -1, 0, 1, 10, 100}

// known are the rules of the tests.
var known = rules()

func rules() drainrule.Rules {
	all := []*v1alpha1.MachineDrainRule{
		rule("monitoring", v1alpha1.MachineDrainRuleDrain{Behavior: v1alpha1.DrainBehaviorSkip}, isSet("monitoring")),
		rule("batch", v1alpha1.MachineDrainRuleDrain{Behavior: v1alpha1.DrainBehaviorWaitCompleted}, isSet("batch")),
		rule("plain", v1alpha1.MachineDrainRuleDrain{Behavior: v1alpha1.DrainBehaviorDrain}, isSet("plain")),
		rule("odd", v1alpha1.MachineDrainRuleDrain{Behavior: "Explode"}, isSet("odd")),
	}
	for _, order := range orders {
		all = append(all, rule(fmt.Sprintf("order%d", order), v1alpha1.MachineDrainRuleDrain{
			Behavior: v1alpha1.DrainBehaviorDrain, Order: &order,
		}, metav1.LabelSelector{MatchLabels: map[string]string{"order": fmt.Sprintf("is%d", order)}}))
	}
	return drainrule.ForMachine(all, nil, nil)
}

func snapshot(pods ...*corev1.Pod) Snapshot {
	return Snapshot{
		Now: now, Node: node(corev1.ConditionTrue), Pods: pods, Rules: known,
		Facts: drainrule.Facts{
			Namespaces: map[string]map[string]string{"ns": {}},
			DaemonSets: map[types.NamespacedName]types.UID{{Namespace: "ns", Name: "agent"}: "alive"},
		},
		Answers: map[types.UID]evacuation.Outcome{},
	}
}

// unreachable is the same, of a node that does not answer.
func unreachable(s Snapshot) Snapshot {
	s.Node = node(corev1.ConditionUnknown)
	return s
}

// answered is the same, with the API server's answer about all pods.
func answered(answer evacuation.Outcome, s Snapshot) Snapshot {
	for _, p := range s.Pods {
		s.Answers[p.UID] = answer
	}
	return s
}

// answers of the API server.
var (
	budgeted = evacuation.Classify(metav1.Status{
		Status: metav1.StatusFailure, Code: 429, Reason: metav1.StatusReasonTooManyRequests,
		Message: "Cannot evict pod as it would violate the pod's disruption budget.",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
			Type:    policyv1.DisruptionBudgetCause,
			Message: "The disruption budget nginx needs 10 healthy pods and has 10 currently",
		}}},
	})
	throttled = evacuation.Outcome{Result: evacuation.Throttled, Type: v1alpha1.BlockerEvictionError, Message: "too many requests"}
	contended = evacuation.Outcome{Result: evacuation.Contended, Type: v1alpha1.BlockerEvictionError, Message: "the object has been modified"}
	several   = evacuation.Outcome{Result: evacuation.Refused, Type: v1alpha1.BlockerMultiplePDBs, Message: "This pod has more than one PodDisruptionBudget"}
	ending    = evacuation.Outcome{
		Result: evacuation.Refused, Type: v1alpha1.BlockerNamespaceTerminating,
		Message: "unable to create new content in namespace ns because it is being terminated",
	}
	silent = evacuation.Outcome{Result: evacuation.Refused, Type: v1alpha1.BlockerEvictionError, Message: "The API server did not answer: dial tcp: connection refused"}
)
