package blocker_test

import (
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

var now = time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC)

// What blocks in these tests, in the words of the references of a status.
var (
	pod        = v1alpha1.BlockerObject{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web-0", UID: "0f1e"}
	replicaSet = v1alpha1.BlockerObject{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "shop", Name: "web", UID: "2a3b"}
	seenBudget = v1alpha1.BlockerObject{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Namespace: "shop", Name: "web", UID: "4c5d"}
	goneBudget = v1alpha1.BlockerObject{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Namespace: "shop", Name: "web"}
	namespace  = v1alpha1.BlockerObject{APIVersion: "v1", Kind: "Namespace", Name: "shop"}
	node       = v1alpha1.BlockerObject{APIVersion: "v1", Kind: "Node", Name: "node-one", UID: "6e7f"}
	rule       = v1alpha1.BlockerObject{APIVersion: "ebbtide.dev/v1alpha1", Kind: "MachineDrainRule", Namespace: "ebbtide-system", Name: "batch", UID: "8a9b"}
	webhook    = v1alpha1.BlockerObject{Kind: "Webhook", Name: "guard.example.com"}
	mover      = v1alpha1.BlockerObject{Kind: "Evacuator", Name: "mover.example.com"}
)

func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }

// known are facts whose budgets are not compiled yet.
type known struct {
	blocker.Facts
	budgets []*policyv1.PodDisruptionBudget
}

// facts are those of a pod of a ReplicaSet on a healthy node, older than the drain.
func facts(changes ...func(*known)) *blocker.Facts {
	controller := true
	f := known{Facts: blocker.Facts{
		Now: now,
		Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web-0", UID: "0f1e", CreationTimestamp: *ago(time.Hour),
				Labels:          map[string]string{"app": "web"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "2a3b", Controller: &controller}},
			},
			Spec: corev1.PodSpec{NodeName: "node-one"},
		},
		Node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node-one", UID: "6e7f"},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		},
		DrainStarted: now.Add(-30 * time.Minute),
	}}
	for _, change := range changes {
		change(&f)
	}
	f.Budgets = budget.Compile(f.budgets)
	return &f.Facts
}

func refused(kind v1alpha1.BlockerType, answer string) func(*known) {
	return func(f *known) {
		f.Evacuation = &v1alpha1.Evacuation{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "0f1e-web-0"},
			Status: v1alpha1.EvacuationStatus{Conditions: []metav1.Condition{{
				Type: v1alpha1.ConditionEvictionRefused, Status: metav1.ConditionTrue,
				Reason: string(kind), Message: answer, LastTransitionTime: *ago(time.Minute),
			}}},
		}
	}
}

// by tells which budget refused.
func by(budget string, refused func(*known)) func(*known) {
	return func(f *known) {
		refused(f)
		f.Evacuation.Status.RefusingBudgetName = budget
	}
}

func budgetNamed(name string, change func(*policyv1.PodDisruptionBudget)) func(*known) {
	return func(f *known) {
		b := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "4c5d", Generation: 1},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 3},
		}
		change(b)
		f.budgets = append(f.budgets, b)
	}
}

func maxUnavailable(n int32) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) {
		limit := intstr.FromInt32(n)
		b.Spec.MaxUnavailable = &limit
	}
}

func minAvailable(n int32) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) {
		floor := intstr.FromInt32(n)
		b.Spec.MinAvailable = &floor
	}
}

func countsNobody(b *policyv1.PodDisruptionBudget) {
	maxUnavailable(1)(b)
	b.Status.ExpectedPods, b.Status.CurrentHealthy = 0, 1
}

func terminatingSince(deadline *metav1.Time, grace int64, finalizers ...string) func(*known) {
	return func(f *known) {
		f.Pod.DeletionTimestamp, f.Pod.DeletionGracePeriodSeconds, f.Pod.Finalizers = deadline, &grace, finalizers
	}
}

func unreachable(f *known) {
	f.Node.Status.Conditions[0] = corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: *ago(5 * time.Minute),
	}
}

func evacuator(f *known) {
	f.Evacuation = &v1alpha1.Evacuation{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "0f1e-web-0", CreationTimestamp: *ago(time.Minute)},
		Status:     v1alpha1.EvacuationStatus{ActiveEvacuatorClass: "mover.example.com", Message: "2 of 5 shards moved"},
	}
}

func evacuatorDone(f *known) {
	evacuator(f)
	f.Evacuation.Status.ActiveEvacuatorCompleted = true
}

func cameBack(f *known) { f.Pod.CreationTimestamp = *ago(time.Minute) }

func tolerant(f *known) {
	f.Pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

func waited(f *known) {
	f.Treatment = drainrule.Treatment{Behavior: v1alpha1.DrainBehaviorWaitCompleted, Reason: "label " + v1alpha1.DrainLabel}
}

func waitedByRule(f *known) {
	f.Treatment = drainrule.Treatment{
		Behavior: v1alpha1.DrainBehaviorWaitCompleted, Reason: "MachineDrainRule batch", Object: rule,
	}
}

func unclear(f *known) {
	f.Treatment = drainrule.Treatment{Cause: "MachineDrainRule batch is a riddle.", Object: rule}
}

func ownerless(f *known) { f.Pod.OwnerReferences = nil }

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

// blocks is a blocker of one pod, for so long; testdata/messages.txt has its words.
func blocks(by v1alpha1.BlockerType, object v1alpha1.BlockerObject, since time.Duration) v1alpha1.Blocker {
	return v1alpha1.Blocker{Type: by, Object: object, PodCount: 1, SinceTime: ago(since)}
}

type story struct {
	facts *blocker.Facts
	want  v1alpha1.Blocker
}

func check(t *testing.T, tests map[string]story) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, blocked := blocker.Of(tc.facts)
			if blocked {
				golden.Message(t, string(got.Type), got.Message)
				golden.Message(t, got.Suggestion)
				got.Message, got.Suggestion = "", ""
			}
			difference.None(t, "blocker", tc.want, got)
			if blocked != (tc.want.Type != "") {
				t.Errorf("blocked = %t, want %t", blocked, tc.want.Type != "")
			}
		})
	}
}

func TestPodThatMayLeaveIsNotBlocked(t *testing.T) {
	check(t, map[string]story{
		"a pod that nobody asked for yet":        {facts(), v1alpha1.Blocker{}},
		"an unreachable node alone":              {facts(unreachable), v1alpha1.Blocker{}},
		"a pod on its way out in time":           {facts(terminatingSince(ago(5*time.Second), 30)), v1alpha1.Blocker{}},
		"a finalizer while containers still run": {facts(terminatingSince(ago(-time.Minute), 90, "example.com/keep")), v1alpha1.Blocker{}},
		"an evacuator that is done":              {facts(evacuatorDone), v1alpha1.Blocker{}},
		"a bare pod created during the drain":    {facts(cameBack, ownerless), v1alpha1.Blocker{}},
		"a young pod of an unknown drain":        {facts(cameBack, func(f *known) { f.DrainStarted = time.Time{} }), v1alpha1.Blocker{}},
	})
}

func TestEvictionRefusedByOthersBlocks(t *testing.T) {
	const denial = `admission webhook "guard.example.com" denied the request: not on a Friday`
	check(t, map[string]story{
		"a webhook":               {facts(refused(v1alpha1.BlockerWebhookDenied, denial)), blocks(v1alpha1.BlockerWebhookDenied, webhook, time.Minute)},
		"a terminating namespace": {facts(refused(v1alpha1.BlockerNamespaceTerminating, "it is being terminated")), blocks(v1alpha1.BlockerNamespaceTerminating, namespace, time.Minute)},
		"anything else":           {facts(refused(v1alpha1.BlockerEvictionError, "etcdserver: request timed out")), blocks(v1alpha1.BlockerEvictionError, pod, time.Minute)},
	})
}

func TestTerminatingPodThatStaysBlocks(t *testing.T) {
	check(t, map[string]story{
		"a finalizer keeps it":         {facts(terminatingSince(ago(5*time.Second), 0, "example.com/keep", "example.com/too")), blocks(v1alpha1.BlockerTerminatingFinalizer, pod, 5*time.Second)},
		"it outlived its grace period": {facts(terminatingSince(ago(11*time.Second), 30)), blocks(v1alpha1.BlockerTerminatingGrace, pod, 11*time.Second)},
		"its node does not answer":     {facts(unreachable, terminatingSince(ago(-time.Minute), 90, "example.com/keep")), blocks(v1alpha1.BlockerNodeUnreachable, node, 5*time.Minute)},
	})
}

// unplaced has the replacement of a surging pod fit nowhere; by another class that is old news.
func unplaced(class string) func(*known) {
	return func(f *known) {
		evacuator(f)
		f.Evacuation.Status.ActiveEvacuatorClass = class
		f.Evacuation.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionReplacementUnschedulable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUnschedulable,
			Message: "0/3 nodes are available: 3 Insufficient cpu.", LastTransitionTime: *ago(2 * time.Second),
		}}
	}
}

func TestUnschedulableReplacementBlocks(t *testing.T) {
	check(t, map[string]story{
		"an evacuator whose replacement fits nowhere":             {facts(unplaced(v1alpha1.DeploymentEvacuatorClass)), blocks(v1alpha1.BlockerReplacementUnschedulable, pod, 2*time.Second)},
		"an evacuator after one whose replacement fitted nowhere": {facts(unplaced("mover.example.com")), blocks(v1alpha1.BlockerEvacuatorRunning, mover, time.Minute)},
	})
}

func TestWorkInProgressBlocks(t *testing.T) {
	check(t, map[string]story{
		"an evacuator":                                       {facts(evacuator), blocks(v1alpha1.BlockerEvacuatorRunning, mover, time.Minute)},
		"the pod itself":                                     {facts(waited), blocks(v1alpha1.BlockerWaitingForCompletion, replicaSet, 30*time.Minute)},
		"the pod itself, by a rule":                          {facts(waitedByRule), blocks(v1alpha1.BlockerWaitingForCompletion, replicaSet, 30*time.Minute)},
		"nobody, because a rule is unclear":                  {facts(unclear), blocks(v1alpha1.BlockerDrainRuleUnclear, rule, 30*time.Minute)},
		"an evacuator, whatever rules say":                   {facts(evacuator, unclear), blocks(v1alpha1.BlockerEvacuatorRunning, mover, time.Minute)},
		"an owner who puts it back by tolerating everything": {facts(cameBack, tolerant), blocks(v1alpha1.BlockerRecreated, replicaSet, time.Minute)},
		"an owner who pins it":                               {facts(cameBack), blocks(v1alpha1.BlockerRecreated, replicaSet, time.Minute)},
	})
}
