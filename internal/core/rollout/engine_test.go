package rollout_test

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

// The methods of this file do to NodeMaintenances what their controller and users do.

// request creates a NodeMaintenance of a user.
func (w *world) request(name, node string) {
	m := &v1alpha1.NodeMaintenance{ObjectMeta: w.meta(name)}
	m.Spec = v1alpha1.NodeMaintenanceSpec{NodeSelector: named(node), Stage: v1alpha1.StageDrain}
	w.maintenances = append(w.maintenances, m)
}

// maintain creates a NodeMaintenance of a user that has its node.
func (w *world) maintain(name, node string) {
	w.request(name, node)
	w.accept(name)
}

// of returns the latest NodeMaintenance of a node that a rollout has made.
func (w *world) of(node string) *v1alpha1.NodeMaintenance {
	w.t.Helper()
	var latest *v1alpha1.NodeMaintenance
	for _, m := range w.maintenances {
		if m.Labels[v1alpha1.RolloutLabel] != "" && nodeOf(m) == node && (latest == nil || w.attempt(m).Attempt >= w.attempt(latest).Attempt) {
			latest = m
		}
	}
	if latest == nil {
		w.t.Fatalf("node %s has no NodeMaintenance of a rollout", node)
	}
	return latest
}

func (w *world) editMaintenance(name string, change func(*v1alpha1.NodeMaintenance)) {
	w.progress++
	edit(w, w.maintenances, name, change)
}

// accept cordons the node and records stage Drain.
func (w *world) accept(name string) {
	m, _ := find(w.maintenances, name)
	w.editMaintenance(name, func(m *v1alpha1.NodeMaintenance) {
		m.Finalizers = append(m.Finalizers, v1alpha1.MaintenanceCompletionFinalizer)
		for _, stage := range []v1alpha1.NodeMaintenanceStage{v1alpha1.StageCordon, v1alpha1.StageDrain} {
			m.Status.StageStatuses = append(m.Status.StageStatuses, v1alpha1.StageStatus{Name: stage, StartTimestamp: new(metav1.NewTime(w.now))})
		}
		setCondition(w, m, v1alpha1.ConditionDrained, false, v1alpha1.ReasonDraining)
		setCondition(w, m, v1alpha1.ConditionBlocked, false, v1alpha1.ReasonNotBlocked)
	})
	w.hold(nodeOf(m), name, true)
}

// hold adds a NodeMaintenance to the ledger of its node, or removes it.
func (w *world) hold(node, name string, held bool) {
	if _, at := find(w.nodes, node); at < 0 {
		return
	}
	w.editNode(node, func(n *corev1.Node) {
		ledger := cordon.Of(n)
		if ledger == nil {
			ledger = &cordon.Ledger{WasUnschedulable: n.Spec.Unschedulable}
		}
		ledger.Holders = slices.DeleteFunc(ledger.Holders, func(other string) bool { return other == name })
		if held {
			ledger.Holders = append(ledger.Holders, name)
			slices.Sort(ledger.Holders)
		}
		if n.Spec.Unschedulable = true; len(ledger.Holders) == 0 {
			n.Spec.Unschedulable = ledger.WasUnschedulable
			delete(n.Annotations, v1alpha1.CordonAnnotation)
			return
		}
		text, err := json.Marshal(ledger)
		if err != nil {
			w.t.Fatal(err)
		}
		n.Annotations[v1alpha1.CordonAnnotation] = string(text)
	})
}

func isAccepted(m *v1alpha1.NodeMaintenance) bool {
	return slices.Contains(m.Finalizers, v1alpha1.MaintenanceCompletionFinalizer)
}

func isDrained(m *v1alpha1.NodeMaintenance) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained)
}

func (w *world) drain(name string) {
	w.editMaintenance(name, func(m *v1alpha1.NodeMaintenance) {
		setCondition(w, m, v1alpha1.ConditionDrained, true, v1alpha1.ReasonDrained)
	})
}

// handOver records that the node of a NodeMaintenance is drained.
func (w *world) handOver(m *v1alpha1.NodeMaintenance) {
	w.handedOver[m.Name] = w.now
	m.Annotations[v1alpha1.HandedOverAnnotation] = fmt.Sprintf(`{"maintenanceUID":%q,"nodeName":%q,"bootID":"b","time":%q}`,
		m.UID, nodeOf(m), w.now.UTC().Format("2006-01-02T15:04:05.000000Z"))
}

// comeBack has a node report the new kernel, and completes its NodeMaintenance as completeWhen does.
func (w *world) comeBack(name, kernel string) {
	m, _ := find(w.maintenances, name)
	w.editNode(nodeOf(m), func(n *corev1.Node) {
		n.Status.NodeInfo.KernelVersion, n.Status.NodeInfo.BootID = kernel, "boot-"+string(w.uid())
		setReady(n, true)
	})
	w.editMaintenance(name, func(m *v1alpha1.NodeMaintenance) {
		setCondition(w, m, v1alpha1.ConditionReturned, true, v1alpha1.ReasonReturned)
		m.Spec.Stage = v1alpha1.StageComplete
	})
}

func (w *world) complete(name string) {
	w.editMaintenance(name, func(m *v1alpha1.NodeMaintenance) { m.Spec.Stage = v1alpha1.StageComplete })
}

// giveBack does what a deadline does.
func (w *world) giveBack(name string) {
	w.late[name] = true
	w.complete(name)
}

// finish ends a NodeMaintenance in stage Complete.
func (w *world) finish(name string) {
	m, _ := find(w.maintenances, name)
	w.hold(nodeOf(m), name, false)
	w.editMaintenance(name, func(m *v1alpha1.NodeMaintenance) {
		switch drains := slices.ContainsFunc(m.Status.StageStatuses, func(s v1alpha1.StageStatus) bool { return s.Name == v1alpha1.StageDrain }); {
		case w.late[name]:
			setCondition(w, m, v1alpha1.ConditionSucceeded, false, v1alpha1.ReasonDeadlinePassed)
		case !drains && m.DeletionTimestamp == nil:
			setCondition(w, m, v1alpha1.ConditionSucceeded, true, v1alpha1.ReasonNotDraining)
		case !drains:
			// It was deleted before the controller saw it.
		case isDrained(m):
			setCondition(w, m, v1alpha1.ConditionSucceeded, true, v1alpha1.ReasonDrained)
		default:
			setCondition(w, m, v1alpha1.ConditionSucceeded, false, v1alpha1.ReasonCancelled)
		}
		meta.RemoveStatusCondition(&m.Status.Conditions, v1alpha1.ConditionDrained)
		meta.RemoveStatusCondition(&m.Status.Conditions, v1alpha1.ConditionBlocked)
		m.Status.StageStatuses = append(m.Status.StageStatuses, v1alpha1.StageStatus{Name: v1alpha1.StageComplete, StartTimestamp: new(metav1.NewTime(w.now))})
		m.Finalizers = slices.DeleteFunc(m.Finalizers, func(f string) bool { return f == v1alpha1.MaintenanceCompletionFinalizer })
	})
	w.collect()
}

// succeed takes the NodeMaintenance of a node from its creation to its end.
func (w *world) succeed(node string) {
	name := w.of(node).Name
	w.accept(name)
	w.drain(name)
	w.comeBack(name, newKernel)
	w.finish(name)
}

// timeOut has the NodeMaintenance of a node be given back at its deadline.
func (w *world) timeOut(node string) {
	name := w.of(node).Name
	w.accept(name)
	w.giveBack(name)
	w.finish(name)
}
