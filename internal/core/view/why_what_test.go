package view_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/view"
)

func never() *policyv1.PodDisruptionBudget {
	none := intstr.FromInt32(0)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{}},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 3, CurrentHealthy: 3, DesiredHealthy: 3},
	}
}

func web(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func TestWhyOfAPodInAnyCluster(t *testing.T) {
	t.Parallel()
	around := func(budgets ...*policyv1.PodDisruptionBudget) func(*view.PodFacts) {
		return func(f *view.PodFacts) {
			f.Around = &view.Surroundings{Now: noon, Budgets: budget.Compile(budgets)}
			f.Pod.Namespace, f.Pod.Status.Phase = "shop", corev1.PodRunning
		}
	}
	kept := func(f *view.PodFacts) {
		f.Pod.DeletionTimestamp, f.Pod.Finalizers = ago(time.Hour), []string{"example.com/keep"}
	}
	labelled := func(f *view.PodFacts) { f.Pod.Labels = map[string]string{v1alpha1.DrainLabel: "skip"} }
	idle := func(f *view.PodFacts) { f.Maintenances[0].Spec.Stage = v1alpha1.StageCordon }
	tell(t, map[string]view.PodFacts{
		"nothing would hold it":       of(around()),
		"a budget would":              of(around(never())),
		"a finalizer keeps it":        of(around(), kept),
		"it stays on purpose":         of(held, labelled),
		"its node is only cordoned":   of(held, idle),
		"it stays, but is asked, too": of(held, labelled, asked(v1alpha1.EvacuationStatus{})),
	}, func(f view.PodFacts) []string {
		f.Pod.Namespace, f.Pod.Name = "shop", "db-0"
		return f.Why()
	})
}

func TestWhyOfABudget(t *testing.T) {
	t.Parallel()
	waits := func(n int) []*v1alpha1.Evacuation {
		var all []*v1alpha1.Evacuation
		for i := range n {
			all = append(all, &v1alpha1.Evacuation{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Annotations: map[string]string{v1alpha1.NodeAnnotation: "node-7"}},
				Spec:       v1alpha1.EvacuationSpec{PodRef: v1alpha1.LocalPodReference{Name: fmt.Sprintf("web-%d", i)}}, Status: refusal("web", metav1.ConditionTrue),
			})
		}
		return append(all, &v1alpha1.Evacuation{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Status: refusal("db", metav1.ConditionTrue)})
	}
	allows := func(n int32) *policyv1.PodDisruptionBudget {
		b := never()
		b.Status.DisruptionsAllowed = n
		return b
	}
	tell(t, map[string]view.BudgetFacts{
		"it allows one":            {Budget: allows(1)},
		"it never allows any":      {Budget: never(), Pods: []*corev1.Pod{web("web-1")}, Evacuations: waits(2)},
		"many wait":                {Budget: allows(1), Evacuations: waits(9)},
		"it has no pods":           {Budget: never()},
		"nobody may see who waits": {Budget: never(), Unknown: true},
	}, func(f view.BudgetFacts) []string {
		f.Now = noon
		return f.Why()
	})
}

func TestWhyOfANode(t *testing.T) {
	t.Parallel()
	seven := func(cordoned bool, holders string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-7"}, Spec: corev1.NodeSpec{Unschedulable: cordoned}}
		if holders != "" {
			n.Annotations = map[string]string{v1alpha1.CordonAnnotation: `{"wasUnschedulable":false,"holders":[` + holders + `]}`}
		}
		return n
	}
	silent := seven(true, "")
	silent.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	removed := seven(true, `"kernel"`)
	removed.Spec.Taints = []corev1.Taint{{Key: v1alpha1.ToBeDeletedTaint, Effect: corev1.TaintEffectNoSchedule}}
	leaving := node("node-7", 2)
	leaving.Blockers = []v1alpha1.Blocker{held1(v1alpha1.BlockerForeignDrain, "node-7", 0)}
	both := kernel(leaving)
	drained := kernel(node("node-7", 0))
	forwarded := kernel(waiting("node-7", 2, "node-1"))
	forwarded.Status.NodeStatuses[0].FastForwardedBy = "older"
	tell(t, map[string]view.NodeFacts{
		"nobody wants anything":        {Node: seven(false, "")},
		"a person has cordoned it":     {Node: seven(true, "")},
		"what holds it is unknown":     {Node: seven(true, `"gone"`), Unknown: true},
		"it does not answer":           {Node: silent},
		"a drain would meet a budget":  {Node: seven(false, ""), Pods: []*corev1.Pod{web("web-1"), web("web-2")}, Budgets: []*policyv1.PodDisruptionBudget{never()}},
		"it is drained":                {Node: seven(true, `"kernel"`), Maintenances: []*v1alpha1.NodeMaintenance{drained}},
		"somebody else drains it, too": {Node: removed, Maintenances: []*v1alpha1.NodeMaintenance{both}},
		"it waits for its turn":        {Node: seven(true, `"kernel"`), Maintenances: []*v1alpha1.NodeMaintenance{forwarded}},
	}, func(f view.NodeFacts) []string {
		f.Now = noon
		return f.Why()
	})
}

func TestWhyOfAMachine(t *testing.T) {
	t.Parallel()
	machine := func(step, message string, change func(*v1alpha1.Machine)) *v1alpha1.Machine {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "m-1", DeletionTimestamp: ago(time.Hour)}}
		m.Status.NodeRef = &v1alpha1.MachineNodeReference{Name: "node-7"}
		m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDeleting, Status: metav1.ConditionTrue, Reason: step, Message: message, LastTransitionTime: *ago(time.Minute)}}
		change(m)
		return m
	}
	as := func(*v1alpha1.Machine) {}
	hooked := func(m *v1alpha1.Machine) {
		m.Spec.LifecycleHooks.PreDrain = []v1alpha1.LifecycleHook{{Name: "MigrateApp", Owner: "the app team"}}
	}
	tell(t, map[string]*v1alpha1.Machine{
		"it lives": machine("", "", func(m *v1alpha1.Machine) {
			m.DeletionTimestamp, m.Status.Phase = nil, v1alpha1.MachineRunning
			m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionNodeReady, Status: metav1.ConditionFalse, Reason: "NotReady", Message: "The Node is not ready."}}
		}),
		"a hook holds it": machine(v1alpha1.ReasonWaitingForPreDrainHook, "Waiting for hooks.", hooked),
		"pods are left": machine(v1alpha1.ReasonDrainingNode, "Drain not completed yet.", func(m *v1alpha1.Machine) {
			hooked(m)
			m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDrainingSucceeded, Message: "db-0: the budget db is used up."})
		}),
		"volumes are left": machine(v1alpha1.ReasonWaitingForVolumeDetach, "vol-1.", as),
		"nobody has begun": machine("", "", func(m *v1alpha1.Machine) { m.Status.Conditions = nil }),
	}, view.MachineWhy)
}

func TestWhyOfAMaintenance(t *testing.T) {
	t.Parallel()
	tell(t, map[string]*v1alpha1.NodeMaintenance{
		"it is held up": with(kernel(node("node-1", 2, exhausted("web", 2))), "Blocked", "PDBExhausted"),
		"it is planned": staged(kernel(), v1alpha1.StageIdle),
		"it is drained": with(kernel(node("node-1", 0)), "Drained", "Drained"),
		"it is over":    over(kernel()),
	}, func(m *v1alpha1.NodeMaintenance) []string {
		s := status(m)
		return view.MaintenanceWhy(&s)
	})
}
