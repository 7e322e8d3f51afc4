package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/view"
)

func noonLess(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

// maintenanceOf is one in Drain for six minutes.
func maintenanceOf(name, reason string, nodes ...v1alpha1.NodeMaintenanceNodeStatus) *v1alpha1.NodeMaintenance {
	start := noonLess(6 * time.Minute)
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: noonLess(time.Hour), Finalizers: []string{v1alpha1.MaintenanceCompletionFinalizer}},
		Spec:       v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageDrain, Reason: reason},
		Status: v1alpha1.NodeMaintenanceStatus{
			NodeCount: int32(len(nodes)), NodeStatuses: nodes, Summary: "2/5 nodes drained, 12 pods left, 3 blocked",
			StageStatuses: []v1alpha1.StageStatus{{Name: v1alpha1.StageDrain, StartTimestamp: &start}},
		},
	}
}

func blockedBy(kind v1alpha1.BlockerType, name string, pods int32, message, suggestion string) v1alpha1.Blocker {
	since := noonLess(3 * time.Minute)
	return v1alpha1.Blocker{
		Type: kind, PodCount: pods, SinceTime: &since, Message: message, Suggestion: suggestion,
		Object: v1alpha1.BlockerObject{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Namespace: "shop", Name: name},
	}
}

// kernelUpdate is a maintenance of five nodes: one is held up, one waits, one has pods that stay.
func kernelUpdate() *v1alpha1.NodeMaintenance {
	node := func(name string, evacuating, pending, retained int32, state v1alpha1.NodeState, message string, blockers ...v1alpha1.Blocker) v1alpha1.NodeMaintenanceNodeStatus {
		return v1alpha1.NodeMaintenanceNodeStatus{
			NodeRef: v1alpha1.NodeReference{Name: name}, PodsEvacuating: evacuating, PodsPendingEvacuation: pending, PodsRetained: retained, State: state, DrainMessage: message, Blockers: blockers,
		}
	}
	m := maintenanceOf(
		"kernel-update", "New kernel",
		node("node-1", 7, 0, 0, v1alpha1.NodeStateDraining, "Evacuating", blockedBy(v1alpha1.BlockerPDBExhausted, "web", 2, "The budget web needs 11 healthy pods and has 11.", "kubectl -n shop get pods -l app=web"),
			blockedBy(v1alpha1.BlockerPDBLocked, "db", 1, "PodDisruptionBudget shop/db is locked by user/anna.", "Ask anna.")),
		node("node-2", 0, 4, 0, v1alpha1.NodeStateWaitingForNodes, "Waiting for node node-1."),
		node("node-3", 0, 0, 0, v1alpha1.NodeStateDrained, "Drained."), node("node-4", 0, 0, 0, v1alpha1.NodeStateDrained, "Drained."),
		node("node-5", 1, 0, 1, v1alpha1.NodeStateDraining, "Evacuating"),
	)
	m.Status.NodeStatuses[4].Retained = []v1alpha1.Blocker{{
		Type: v1alpha1.RetainedNoEvacuator, PodCount: 1, Message: "The pod is of type Static, and no component prevents its return.", Object: v1alpha1.BlockerObject{Kind: "Pod", Namespace: "kube-system", Name: "proxy-node-5"},
	}}
	m.Annotations = map[string]string{v1alpha1.RequestedByAnnotation: "anna"}
	m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBlocked, Status: metav1.ConditionTrue, Reason: "PDBExhausted"}}
	return m
}

func kernelSnapshot() *view.Snapshot {
	drained := func(d time.Duration) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: v1alpha1.NodeDrained, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonNodeMaintenance, LastTransitionTime: noonLess(d),
		}}}}
	}
	leaving := func(name string, status v1alpha1.EvacuationStatus) view.Leaving {
		return view.Leaving{
			Pod:        &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}},
			Evacuation: &v1alpha1.Evacuation{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: noonLess(5 * time.Minute)}, Status: status},
		}
	}
	going := leaving("web-3", v1alpha1.EvacuationStatus{})
	until := noonLess(-10 * time.Second)
	going.Pod.DeletionTimestamp, going.Pod.DeletionGracePeriodSeconds = &until, new(int64(30))
	refused := v1alpha1.EvacuationStatus{Conditions: []metav1.Condition{{
		Type: v1alpha1.ConditionEvictionRefused, Status: metav1.ConditionTrue, Reason: "PDBExhausted", Message: "The budget web needs 11 healthy pods and has 11.", LastTransitionTime: noonLess(3 * time.Minute),
	}}}
	lock := budget.Lock{Holder: "user/anna", Reason: "compaction", AcquiredAt: noonLess(20 * time.Minute), ExpiresAt: noonLess(-20 * time.Minute)}
	return &view.Snapshot{
		Now: noon, Maintenances: []*v1alpha1.NodeMaintenance{kernelUpdate()},
		Nodes: map[string]*corev1.Node{"node-3": drained(4 * time.Minute), "node-4": drained(time.Minute)},
		Pods: map[string][]view.Leaving{"node-1": {
			going, leaving("web-1", refused), leaving("web-2", refused), leaving("api-0", v1alpha1.EvacuationStatus{ActiveEvacuatorClass: "mover.example.com", Message: "copying"}),
			leaving("api-1", v1alpha1.EvacuationStatus{}),
		}},
		Budgets: []*policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", Annotations: map[string]string{v1alpha1.LockAnnotation: lock.Write()}}}},
	}
}

const inShort = `NodeMaintenance kernel-update, stage Drain since 6m: New kernel
blocked, 2/5 nodes drained, 12 pods left, 3 blocked, 1 retained. ETA: about 9 min, without 3 blocked pods (2 nodes were drained in 6 min).
Requested by anna.

Blockers:
  PodDisruptionBudget/shop/web (PDBExhausted): 2 pods, since 3m
    The budget web needs 11 healthy pods and has 11.
    What helps: kubectl -n shop get pods -l app=web
  PodDisruptionBudget/shop/db (PDBLocked): 1 pod, since 3m
    PodDisruptionBudget shop/db is locked by user/anna.
    What helps: Ask anna.

Nodes:
  node-1: blocked, 7 pods left, 3 blocked. Evacuating
    shop/web-1 refused since 3m, PDBExhausted
    shop/web-2 refused since 3m, PDBExhausted
    shop/api-1 asked since 5m
    shop/api-0 moved since 5m, by mover.example.com: copying
    and 3 more pods
  node-2: waiting, 4 pods left. Waiting for node node-1.
  node-5: draining, 1 pod left. Evacuating

Retained:
  Pod/kube-system/proxy-node-5: 1 pod. The pod is of type Static, and no component prevents its return.

Drained: node-3, node-4

Locks:
  shop/db is locked by user/anna, since 20m, until 2026-03-01T12:20:00Z: compaction
`

const inFull = `NodeMaintenance kernel-update, stage Drain since 2026-03-01T11:54:00Z: New kernel
blocked, 2/5 nodes drained, 12 pods left, 3 blocked, 1 retained. ETA: about 9 min, without 3 blocked pods (2 nodes were drained in 6 min).
Requested by anna.

Blockers:
  PodDisruptionBudget/shop/web (PDBExhausted): 2 pods, since 2026-03-01T11:57:00Z
    The budget web needs 11 healthy pods and has 11.
    What helps: kubectl -n shop get pods -l app=web
  PodDisruptionBudget/shop/db (PDBLocked): 1 pod, since 2026-03-01T11:57:00Z
    PodDisruptionBudget shop/db is locked by user/anna.
    What helps: Ask anna.

Nodes:
  node-1: blocked, 7 pods left, 3 blocked. Evacuating
    shop/web-1 refused since 2026-03-01T11:57:00Z, PDBExhausted
    shop/web-2 refused since 2026-03-01T11:57:00Z, PDBExhausted
    shop/api-1 asked since 2026-03-01T11:55:00Z
    shop/api-0 moved since 2026-03-01T11:55:00Z, by mover.example.com: copying
    shop/web-3 terminating, grace period ends at 12:00:10 UTC
    and 2 more pods
  node-2: waiting, 4 pods left. Waiting for node node-1.
  node-5: draining, 1 pod left. Evacuating

Retained:
  Pod/kube-system/proxy-node-5: 1 pod. The pod is of type Static, and no component prevents its return.

Drained: node-3, node-4

Locks:
  shop/db is locked by user/anna, since 2026-03-01T11:40:00Z, until 2026-03-01T12:20:00Z: compaction
`

func TestAMaintenanceAsPeopleReadIt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		style textStyle
		want  string
	}{
		"in short": {textStyle{}, inShort},
		"in full":  {textStyle{wide: true}, inFull},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := view.One(kernelSnapshot())
			var text strings.Builder
			if err := printStatus(&text, &status, noon, test.style); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, text.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What is the same for many nodes is said once: a whole pool fits on a screen.
func TestAPoolAsPeopleReadIt(t *testing.T) {
	t.Parallel()
	var nodes []v1alpha1.NodeMaintenanceNodeStatus
	for n := range 15 {
		name := fmt.Sprintf("node-%02d", n)
		nodes = append(nodes, v1alpha1.NodeMaintenanceNodeStatus{
			NodeRef: v1alpha1.NodeReference{Name: name}, DrainMessage: "Evacuating", PodsEvacuating: 2, PodsRetained: 1,
			Blockers: []v1alpha1.Blocker{{
				Type: "PDBExhausted", Object: v1alpha1.BlockerObject{Kind: "PodDisruptionBudget", Namespace: "shop", Name: "web"}, PodCount: 2,
				Message: "The budget web needs 11 healthy pods and has 11.", Suggestion: "Wait for web.",
			}},
			Retained: []v1alpha1.Blocker{{
				Type: "DrainRule", Object: v1alpha1.BlockerObject{Kind: "Pod", Namespace: "kube-system", Name: "proxy-" + name}, PodCount: 1, Message: "Rule keep skips it.",
			}},
		})
	}
	status := view.One(&view.Snapshot{Now: noon, Maintenances: []*v1alpha1.NodeMaintenance{maintenanceOf("pool", "", nodes...)}})
	var text strings.Builder
	if err := printStatus(&text, &status, noon, textStyle{}); err != nil {
		t.Fatal(err)
	}
	want := `
Blockers:
  PodDisruptionBudget/shop/web (PDBExhausted): 30 pods on 15 nodes
    The budget web needs 11 healthy pods and has 11.
    What helps: Wait for web.

Nodes:
  node-00, node-01, node-02, node-03, node-04, node-05, node-06, node-07, node-08, node-09 and 5 more: blocked, 2 pods left, 2 blocked. Evacuating

Retained:
  Pod/kube-system/proxy-node-00 and 14 more: 15 pods. Rule keep skips it.
`
	if _, got, _ := strings.Cut(text.String(), "blocked.\n"); got != want {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, text.String()))
	}
}

func TestMaintenancesInATable(t *testing.T) {
	t.Parallel()
	s := kernelSnapshot()
	planned := maintenanceOf("disks", "Change the disks of everything that is older than four years")
	planned.Spec.Stage = v1alpha1.StageIdle
	s.Maintenances = append(s.Maintenances, planned, maintenanceOf("firmware", "", v1alpha1.NodeMaintenanceNodeStatus{NodeRef: v1alpha1.NodeReference{Name: "a"}, PodsEvacuating: 2}))
	list := view.Of(s)
	var text, wide strings.Builder
	if err := printStatusTable(&text, &list, textStyle{}, 3, "kubectl ebbtide status NAME"); err != nil {
		t.Fatal(err)
	}
	want := `NAME            STAGE   STATE      DRAINED   PODS LEFT   BLOCKED   ETA       REASON                                     AGE
firmware        Drain   draining   0/1       2           0         unknown   -                                          60m
kernel-update   Drain   blocked    2/5       12          3         ~9m       New kernel                                 60m
disks           Idle    planned    0/0       0           0         -         Change the disks of everything that is …   60m
3 complete; use --all to show them
See the blockers with
  kubectl ebbtide status NAME
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := printStatusTable(&wide, &list, textStyle{wide: true}, 0, ""); err != nil {
		t.Fatal(err)
	}
	row := "kernel-update   Drain   blocked    2/5       12          3         1          2026-03-01T12:09:00Z   New kernel                                                     2026-03-01T11:00:00Z   2/5 nodes drained, 12 pods left, 3 blocked\n"
	if !strings.Contains(wide.String(), row) {
		t.Errorf("want %q in\n%s", row, wide.String())
	}
}

func TestCordonedNodesInATable(t *testing.T) {
	t.Parallel()
	list := view.StatusList{Time: metav1.NewTime(noon), OmittedCordonedCount: 4000}
	for i := range 12 {
		since := noonLess(time.Duration(50-i) * time.Hour)
		list.Cordoned = append(list.Cordoned, view.Cordon{Node: fmt.Sprintf("node-%d", i), SinceTime: &since, Maintenances: []string{"kernel-update"}})
	}
	list.Cordoned[1].SinceTime, list.Cordoned[2].OmittedMaintenancesCount = nil, 3
	for name, tt := range map[string]struct {
		wide       bool
		begin, end string
	}{
		"narrow": {
			false, "\nCORDONED   SINCE     BY\nnode-0     2d2h      kernel-update\nnode-1     unknown   kernel-update\nnode-2     2d        kernel-update and 3 more\n",
			"node-9     41h       kernel-update\nand 4002 more nodes\n",
		},
		"wide": {true, "\nCORDONED   SINCE                  BY\nnode-0     ", "kernel-update\nand 4000 more nodes\n"},
	} {
		var text strings.Builder
		if err := printStatusTable(&text, &list, textStyle{wide: tt.wide}, 0, ""); err != nil {
			t.Fatal(err)
		}
		if got := text.String(); !strings.HasPrefix(got, tt.begin) || !strings.HasSuffix(got, tt.end) {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// A thousand nodes with as many blockers fill one screen.
func TestAStatusFillsOneScreen(t *testing.T) {
	t.Parallel()
	m := maintenanceOf("all", "")
	for i := range 1000 {
		m.Status.NodeStatuses = append(m.Status.NodeStatuses, v1alpha1.NodeMaintenanceNodeStatus{
			NodeRef: v1alpha1.NodeReference{Name: fmt.Sprintf("node-%d", i)}, PodsEvacuating: 20 + int32(i), PodsRetained: 1,
			Blockers: []v1alpha1.Blocker{blockedBy(v1alpha1.BlockerPDBExhausted, fmt.Sprintf("web-%d", i), 1, "It is used up.", "Wait.")},
		})
	}
	status := view.One(&view.Snapshot{Now: noon, Maintenances: []*v1alpha1.NodeMaintenance{m}})
	var text strings.Builder
	if err := printStatus(&text, &status, noon, textStyle{}); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(text.String(), "\n"); lines > 40 || !strings.Contains(text.String(), "  and 990 more nodes\n") || !strings.Contains(text.String(), "  and 995 more\n") {
		t.Errorf("%d lines:\n%s", lines, text.String())
	}
}
