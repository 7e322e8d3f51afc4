package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/test/cluster"
)

// minutes is a maintenance of nodes that come back soon.
var minutes = v1alpha1.InPlace{ExpectedDowntimeSeconds: 120}

// maintainInPlace begins to drain nodes that come back. The maintenance is deleted
// with the scenario.
func (w *world) maintainInPlace(name string, inPlace v1alpha1.InPlace, nodes ...string) {
	w.t.Helper()
	planned := w.planned(name, v1alpha1.StageDrain, named(nodes), nil)
	planned.Spec.InPlace = &inPlace
	w.create(planned)
	w.t.Cleanup(func() { w.forget(name) })
}

// holder is who locks budgets for a node in a maintenance.
func (w *world) holder(maintenance, node string) string {
	return budget.Holder(w.name(maintenance), node)
}

// guarded creates pods that each have a budget of their own, which lets them go, and
// that stay on nodes that come back.
func (w *world) guarded(node string, names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.pods(node, pod{name: name, labels: map[string]string{v1alpha1.OnUpgradeLabel: v1alpha1.OnUpgradeStay}})
		w.createBudget(name, policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(0))})
	}
}

// ownerLock is what an application owner writes who wants to be left alone.
func ownerLock(until time.Time) string {
	return budget.Lock{Holder: "dba", Reason: "rebalancing", AcquiredAt: metav1.Now(), ExpiresAt: metav1.NewTime(until)}.Write()
}

// setLock writes the lock of a budget; empty removes it.
func (w *world) setLock(name, lock string) {
	w.t.Helper()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns}}
	w.change(b, name, func() {
		if b.Annotations == nil {
			b.Annotations = map[string]string{}
		}
		b.Annotations[v1alpha1.LockAnnotation] = lock
		if lock == "" {
			delete(b.Annotations, v1alpha1.LockAnnotation)
		}
	})
}

// awaitLock waits until budgets are locked by somebody; "" is nobody.
func (w *world) awaitLock(holder string, budgets ...string) {
	w.t.Helper()
	for _, name := range budgets {
		await(w, fmt.Sprintf("locked by %q", holder), &policyv1.PodDisruptionBudget{}, name, func(b *policyv1.PodDisruptionBudget) bool {
			return holderOf(b) == holder
		})
	}
}

// assertStaysLocked looks for a moment whether somebody gives a lock away.
func (w *world) assertStaysLocked(holder string, budgets ...string) {
	w.t.Helper()
	for range 20 {
		for _, name := range budgets {
			b := &policyv1.PodDisruptionBudget{}
			w.get(b, name)
			if had := holderOf(b); had != holder {
				w.t.Fatalf("budget %s is locked by %q, want %q", name, had, holder)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// awaitRecord waits until the record of a node says how far its locks are.
func (w *world) awaitRecord(node, status, reason string) {
	w.t.Helper()
	await(w, "record with Locked="+status+" ("+reason+")", &v1alpha1.DrainRecord{}, node, func(r *v1alpha1.DrainRecord) bool {
		c := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionLocked)
		return c != nil && string(c.Status) == status && c.Reason == reason
	})
}

// awaitWaits waits until a maintenance says that a node is not drained because of a
// budget that somebody has locked, and in which words.
func (w *world) awaitWaits(maintenance, node, words string) {
	w.t.Helper()
	w.awaitCondition(maintenance, v1alpha1.ConditionDrained, "False", v1alpha1.ReasonBlocked)
	w.awaitBlocker(maintenance, node, v1alpha1.BlockerPDBLocked, words)
}

// awaitNothingLocked waits until nothing is left of drains in place.
func (w *world) awaitNothingLocked(nodes ...string) {
	w.t.Helper()
	for _, node := range nodes {
		w.awaitAbsent(&v1alpha1.DrainRecord{}, node)
		w.awaitHolders(node)
		w.assertUnschedulable(node, false)
	}
	w.eventually("no lock", func() (bool, any) {
		list := &policyv1.PodDisruptionBudgetList{}
		w.must("list budgets", w.client.List(w.ctx, list, client.InNamespace(w.ns)))
		locked := slices.DeleteFunc(list.Items, func(b policyv1.PodDisruptionBudget) bool { return holderOf(&b) == "" })
		return len(locked) == 0, locked
	})
	w.eventually("the mutex not held by us", func() (bool, any) {
		mutex := &coordinationv1.Lease{}
		err := w.client.Get(w.ctx, client.ObjectKey{Namespace: cluster.Account.Namespace, Name: v1alpha1.DrainLockMutex}, mutex)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		w.must("get the mutex", err)
		return mutex.Spec.HolderIdentity == nil || !strings.Contains(*mutex.Spec.HolderIdentity, w.ns), mutex
	})
	w.awaitNoEvacuations()
}

// awaitWarning waits for a warning of any object of this world.
func (w *world) awaitWarning(kind, name, reason, words string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s event on %s %s that says %q", reason, kind, name, words), func() (bool, any) {
		list := &eventsv1.EventList{}
		w.must("list events", w.client.List(w.ctx, list, client.MatchingFields{"regarding.kind": kind, "regarding.name": name}))
		var seen []string
		for _, e := range list.Items {
			if e.Regarding.Namespace != "" && e.Regarding.Namespace != w.ns {
				continue
			}
			if e.Type == corev1.EventTypeWarning && e.Reason == reason && contains(e.Note, words) {
				return true, nil
			}
			seen = append(seen, e.Type+" "+e.Reason+": "+e.Note)
		}
		return false, seen
	})
}

// lockedBy is who has locked a budget now.
func (w *world) lockedBy(name string) string {
	w.t.Helper()
	b := &policyv1.PodDisruptionBudget{}
	w.get(b, name)
	return holderOf(b)
}

func isDrained(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == v1alpha1.NodeDrained {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
