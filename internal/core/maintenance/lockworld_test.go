package maintenance_test

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// inPlace makes a maintenance one whose nodes are away for so many seconds.
func inPlace(m *v1alpha1.NodeMaintenance, seconds int32) *v1alpha1.NodeMaintenance {
	m.Spec.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: seconds, LockTimeoutSeconds: 300, OnLockTimeout: v1alpha1.LockTimeoutEvict}
	return m
}

// label adds a label to those that a pod has.
func label(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		pod.Labels[key] = value
	}
}

// stays labels a pod to stay; it tolerates what every pod does that says nothing.
func stays(pod *corev1.Pod) {
	label(v1alpha1.OnUpgradeLabel, "stay")(pod)
	endures(300)(pod)
}

// endures lets a pod tolerate for so many seconds that its node is down.
func endures(seconds int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Tolerations = nil
		for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
			})
		}
	}
}

// budget protects the pods of an application.
func (w *world) budget(app string) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: app, UID: types.UID(app), Generation: 1},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 1},
	}
	w.budgets = append(w.budgets, b)
	return b
}

// writeDrainRecord writes a DrainRecord as the API server does.
func (w *world) writeDrainRecord(d *maintenance.NodeDecision) {
	if d.DrainRecord == nil {
		return
	}
	if d.DrainRecord.Old != w.records[d.Node.Name] {
		w.t.Fatalf("the record of node %s is written although it is another one", d.Node.Name)
	}
	written := &v1alpha1.DrainRecord{ObjectMeta: metav1.ObjectMeta{
		Name: d.Node.Name, Generation: 1, CreationTimestamp: metav1.NewTime(w.now),
	}}
	if d.DrainRecord.Old != nil {
		written = d.DrainRecord.Old.DeepCopy()
		written.Generation++
	}
	d.DrainRecord.Spec.DeepCopyInto(&written.Spec)
	w.records[d.Node.Name] = written
}

func reference(budget string) v1alpha1.BudgetReference {
	return v1alpha1.BudgetReference{Namespace: "default", Name: budget, UID: types.UID(budget)}
}

// observe changes the status of a node's record as who takes locks does.
func (w *world) observe(node string, change func(*v1alpha1.DrainRecordStatus)) {
	record := w.records[node].DeepCopy()
	record.Status.ObservedGeneration = record.Generation
	change(&record.Status)
	w.records[node] = record
}

// take has the locks of budgets taken and confirmed, besides those that are.
func (w *world) take(node string, budgets ...string) {
	w.observe(node, func(status *v1alpha1.DrainRecordStatus) {
		status.Locks = slices.DeleteFunc(status.Locks, func(lock v1alpha1.RecordedLock) bool { return lock.ConfirmedTime == nil })
		for _, name := range budgets {
			status.Locks = append(status.Locks, v1alpha1.RecordedLock{
				BudgetReference: reference(name), AcquiredTime: metav1.NewTime(w.now), ConfirmedTime: metaTime(w.now),
			})
		}
		if status.Boots == nil {
			status.Boots = &v1alpha1.RecordedBoots{MaintenanceUID: w.records[node].Spec.MaintenanceRef.UID}
		}
	})
}

// passAndTell runs passes until what is decided is done, and tells a node with a record
// that it may go.
func (w *world) passAndTell(node string) {
	w.pass()
	w.pass()
	if w.records[node] != nil {
		w.take(node)
	}
	w.pass()
}

// giveUp has the lock of a budget given up.
func (w *world) giveUp(node, budget string) {
	w.observe(node, func(status *v1alpha1.DrainRecordStatus) {
		status.GivenUp = append(status.GivenUp, v1alpha1.GivenUpBudget{
			BudgetReference: reference(budget), Action: v1alpha1.LockTimeoutEvict, GivenUpTime: metav1.NewTime(w.now), Message: "locked by its owner",
		})
	})
}

// needed writes a record as "<maintenance> <downtime>s: <pod>(<budgets>) ... lock <budgets>".
func needed(record *v1alpha1.DrainRecord) string {
	if record == nil {
		return "no record"
	}
	var pods, budgets []string
	for _, pod := range record.Spec.Pods {
		pods = append(pods, fmt.Sprintf("%s(%s)", pod.Name, joined(pod.BudgetUIDs)))
	}
	for _, b := range record.Spec.Budgets {
		budgets = append(budgets, b.Name)
	}
	text := fmt.Sprintf("%s %ds: %s lock %s", record.Spec.MaintenanceRef.Name, record.Spec.InPlace.ExpectedDowntimeSeconds,
		strings.Join(pods, " "), strings.Join(budgets, " "))
	if record.Spec.Complete {
		text += " complete"
	}
	return text
}

func (w *world) expectRecord(what, node, want string) {
	w.t.Helper()
	w.pass()
	if got := needed(w.records[node]); got != want {
		w.t.Errorf("%s: the record of node %s is %q, want %q", what, node, got, want)
	}
}

func joined(uids []types.UID) string {
	var all []string
	for _, uid := range uids {
		all = append(all, string(uid))
	}
	return strings.Join(all, " ")
}

// unneeded is how a record is observed whose locks are not needed any more.
func (w *world) unneeded(node string) {
	w.observe(node, func(status *v1alpha1.DrainRecordStatus) {
		for i := range status.Locks {
			status.Locks[i].ConfirmedTime = nil
		}
	})
}
