package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/view"
)

// never is a budget that can never allow a disruption of its three pods.
func never() *policyv1.PodDisruptionBudget {
	none := intstr.FromInt32(0)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{}},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 3, CurrentHealthy: 3, DesiredHealthy: 3},
	}
}

// web is a pod in shop that runs and is ready.
func web(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

const (
	neverAllows = "PodDisruptionBudget web can never allow a disruption: maxUnavailable is 0: no pod may ever be disrupted. (PDBUnsatisfiable)"
	loosenIt    = `What helps: Let one pod be unavailable: kubectl -n shop patch poddisruptionbudget web --type=merge -p '{"spec":{"maxUnavailable":1}}'`
	unowned     = "No controller owns it: nobody replaces it when it has left."
	notAsked    = "Nobody asks it to leave: no NodeMaintenance holds its node."
)

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
	endIt := "What helps: The owner of a finalizer removes it. Find the owner: kubectl -n shop get pod db-0 -o yaml --show-managed-fields. If the owner no longer exists, remove its finalizer and leave the others: kubectl -n shop edit pod db-0"
	finalizer := "The pod terminates and is kept by its finalizers: example.com/keep. (TerminatingFinalizer)"
	for name, test := range map[string]struct {
		facts view.PodFacts
		want  []string
	}{
		"nothing would hold it":       {of(around()), []string{isThere, notAsked, unowned}},
		"a budget would":              {of(around(never())), []string{isThere, notAsked, "If somebody drained its node now, it would not leave:", neverAllows, loosenIt, unowned}},
		"a finalizer keeps it":        {of(around(), kept), []string{"shop/db-0 terminates on node node-7.", notAsked, finalizer, endIt}},
		"it stays on purpose":         {of(held, labelled), []string{isThere, holds, "It stays on purpose (DrainLabel): The pod stays, as its label cluster.x-k8s.io/drain asks.", "To have it leave: kubectl -n shop label pod db-0 cluster.x-k8s.io/drain-"}},
		"its node is only cordoned":   {of(held, idle), []string{isThere, strings.Replace(holds, "Drain", "Cordon", 1), "Nobody asks it to leave: no NodeMaintenance of its node is in stage Drain."}},
		"it stays, but is asked, too": {of(held, labelled, asked(v1alpha1.EvacuationStatus{})), []string{isThere, holds, "It has been asked to leave."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.facts.Pod != nil {
				test.facts.Pod.Namespace, test.facts.Pod.Name = "shop", "db-0"
			}
			if diff := cmp.Diff(test.want, test.facts.Why()); diff != "" {
				t.Errorf("why (-want +got):\n%s", diff)
			}
		})
	}
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
	first := "PodDisruptionBudget shop/web allows 0 disruptions now: it has 3 pods of 3 healthy, and needs 3."
	for name, test := range map[string]struct {
		facts view.BudgetFacts
		want  []string
	}{
		"it allows one":            {view.BudgetFacts{Budget: allows(1)}, []string{strings.Replace(first, "0 disruptions", "1 disruption", 1), "Nobody waits for it."}},
		"it never allows any":      {view.BudgetFacts{Budget: never(), Pods: []*corev1.Pod{web("web-1")}, Evacuations: waits(2)}, []string{first, neverAllows, loosenIt, "2 pods wait for it: web-0 (node node-7), web-1 (node node-7)."}},
		"many wait":                {view.BudgetFacts{Budget: allows(1), Evacuations: waits(9)}, []string{strings.Replace(first, "0 disruptions", "1 disruption", 1), "9 pods wait for it: web-0 (node node-7), web-1 (node node-7), web-2 (node node-7), web-3 (node node-7), web-4 (node node-7) and 4 more."}},
		"it has no pods":           {view.BudgetFacts{Budget: never()}, []string{first, "No pod is under it.", "Nobody waits for it."}},
		"nobody may see who waits": {view.BudgetFacts{Budget: never(), Unknown: true}, []string{first, "Who waits for it is unknown."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.facts.Now = noon
			if diff := cmp.Diff(test.want, test.facts.Why()); diff != "" {
				t.Errorf("why (-want +got):\n%s", diff)
			}
		})
	}
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
	free := "Node node-7 takes pods: it is not cordoned, and no NodeMaintenance holds it."
	empty := "It has 0 pods, and nothing is known that would hold a drain up. All that would happen: kubectl ebbtide plan node-7"
	uncordon := "Node node-7 is cordoned, and not by a NodeMaintenance. To have it take pods again: kubectl uncordon node-7"
	removed := seven(true, `"kernel"`)
	removed.Spec.Taints = []corev1.Taint{{Key: v1alpha1.ToBeDeletedTaint, Effect: corev1.TaintEffectNoSchedule}}
	theirs := "The cluster-autoscaler drains node node-7 to remove it (taint ToBeDeletedByClusterAutoscaler). It takes the taint away if it gives up. " +
		"If the cluster-autoscaler does not run any more: kubectl taint node node-7 ToBeDeletedByClusterAutoscaler:NoSchedule-"
	leaving := node("node-7", 2)
	leaving.Blockers = []v1alpha1.Blocker{held1(v1alpha1.BlockerForeignDrain, "node-7", 0)}
	both := kernel(leaving)
	drained := kernel(node("node-7", 0))
	forwarded := kernel(waiting("node-7", 2, "node-1"))
	forwarded.Status.NodeStatuses[0].FastForwardedBy = "older"
	for name, test := range map[string]struct {
		facts view.NodeFacts
		want  []string
	}{
		"nobody wants anything":    {view.NodeFacts{Node: seven(false, "")}, []string{free, empty}},
		"a person has cordoned it": {view.NodeFacts{Node: seven(true, "")}, []string{uncordon, empty}},
		"what holds it is unknown": {view.NodeFacts{Node: seven(true, `"gone"`), Unknown: true}, []string{"Node node-7 is cordoned, and names NodeMaintenances that are not known: gone."}},
		"it does not answer": {view.NodeFacts{Node: silent}, []string{
			uncordon, "The kubelet of node node-7 does not answer, so nobody confirms that its terminating pods have stopped. (NodeUnreachable)",
			"What helps: Bring the node back. If the machine is certainly off: kubectl taint nodes node-7 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", empty,
		}},
		"a drain would meet a budget": {view.NodeFacts{Node: seven(false, ""), Pods: []*corev1.Pod{web("web-1"), web("web-2")}, Budgets: []*policyv1.PodDisruptionBudget{never()}}, []string{
			free, "It has 2 pods. A drain would meet this:",
			"2 pods would not leave: PodDisruptionBudget/shop/web (PDBUnsatisfiable): " + strings.TrimSuffix(neverAllows, " (PDBUnsatisfiable)") + " " + loosenIt,
			"2 pods have no controller, and nobody would replace them.", "All that would happen: kubectl ebbtide plan node-7",
		}},
		"it is drained": {view.NodeFacts{Node: seven(true, `"kernel"`), Maintenances: []*v1alpha1.NodeMaintenance{drained}}, []string{
			"Node node-7 is cordoned.", "NodeMaintenance kernel (stage Drain) holds it: what the controller says", "  0 pods left. Drained.", "  It is given back when kernel is complete: kubectl ebbtide complete kernel",
		}},
		"somebody else drains it, too": {view.NodeFacts{Node: removed, Maintenances: []*v1alpha1.NodeMaintenance{both}}, []string{
			"Node node-7 is cordoned.", theirs, "NodeMaintenance kernel (stage Drain) holds it: what the controller says", "  2 pods left. Evacuating",
		}},
		"it waits for its turn": {view.NodeFacts{Node: seven(true, `"kernel"`), Maintenances: []*v1alpha1.NodeMaintenance{forwarded}}, []string{
			"Node node-7 is cordoned.", "NodeMaintenance kernel (stage Drain) holds it: what the controller says", "  2 pods left. Waiting for node-1.", "  An older maintenance had come further: older.",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.facts.Now = noon
			if diff := cmp.Diff(test.want, test.facts.Why()); diff != "" {
				t.Errorf("why (-want +got):\n%s", diff)
			}
		})
	}
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
	deleted := "Machine shop/m-1 is being deleted since 2026-03-01T11:00:00Z, node node-7."
	for name, test := range map[string]struct {
		machine *v1alpha1.Machine
		want    []string
	}{
		"it lives": {machine("", "", func(m *v1alpha1.Machine) {
			m.DeletionTimestamp, m.Status.Phase = nil, v1alpha1.MachineRunning
			m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionNodeReady, Status: metav1.ConditionFalse, Reason: "NotReady", Message: "The Node is not ready."}}
		}), []string{"Machine shop/m-1 is not being deleted. It is Running, node node-7.", "NodeReady is false (NotReady): The Node is not ready."}},
		"a hook holds it": {machine(v1alpha1.ReasonWaitingForPreDrainHook, "Waiting for hooks.", hooked), []string{
			deleted, "Its step is WaitingForPreDrainHook, since 2026-03-01T11:59:00Z: Waiting for hooks.", "Hook MigrateApp (preDrain) holds it; who removes it: the app team",
			"What helps: ask the owner of the hook. It never ends by itself. All hooks: kubectl -n shop get machine.ebbtide.dev m-1 -o yaml",
		}},
		"pods are left": {machine(v1alpha1.ReasonDrainingNode, "Drain not completed yet.", func(m *v1alpha1.Machine) {
			hooked(m)
			m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDrainingSucceeded, Message: "db-0: the budget db is used up."})
		}), []string{
			deleted, "Its step is DrainingNode, since 2026-03-01T11:59:00Z: Drain not completed yet.", "db-0: the budget db is used up.",
			"What helps: what is said of its pods; of one of them: kubectl ebbtide why pod/NAME -n NAMESPACE",
		}},
		"volumes are left": {machine(v1alpha1.ReasonWaitingForVolumeDetach, "vol-1.", as), []string{deleted, "Its step is WaitingForVolumeDetach, since 2026-03-01T11:59:00Z: vol-1.", "What helps: see what is attached to the node: kubectl get volumeattachments | grep node-7"}},
		"nobody has begun": {machine("", "", func(m *v1alpha1.Machine) { m.Status.Conditions = nil }), []string{deleted, "Nobody has begun with it. Does the manager run with Machines enabled? kubectl -n ebbtide-system get pods"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, view.MachineWhy(test.machine)); diff != "" {
				t.Errorf("why (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhyOfAMaintenance(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		object *v1alpha1.NodeMaintenance
		want   []string
	}{
		"it is held up": {with(kernel(node("node-1", 2, exhausted("web", 2))), "Blocked", "PDBExhausted"), []string{
			"NodeMaintenance kernel: stage Drain, blocked, 0 of 1 node drained, 2 pods left, 2 blocked.", "How long it takes is unknown: 2 pods are held up.",
			"2 pods blocked by PodDisruptionBudget/shop/web (PDBExhausted): web is used up. What helps: Wait for web.",
		}},
		"it is planned": {staged(kernel(), v1alpha1.StageIdle), []string{"NodeMaintenance kernel: stage Idle, planned, 0 nodes.", "It is only planned and touches nothing. To begin: kubectl ebbtide drain nodemaintenance/kernel"}},
		"it is drained": {with(kernel(node("node-1", 0)), "Drained", "Drained"), []string{"NodeMaintenance kernel: stage Drain, drained, 1 of 1 node drained.", "Its nodes are empty. When the work on them is done: kubectl ebbtide complete kernel"}},
		"it is over":    {over(kernel()), []string{"NodeMaintenance kernel: stage Complete, complete.", "It is over: its nodes were given back."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := status(test.object)
			if diff := cmp.Diff(test.want, view.MaintenanceWhy(&s)); diff != "" {
				t.Errorf("why (-want +got):\n%s", diff)
			}
		})
	}
}
