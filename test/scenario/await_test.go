package scenario

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// eventually waits for a state; last is what was seen instead.
func (w *world) eventually(what string, reached func() (ok bool, last any)) {
	w.t.Helper()
	patience.EventuallyShown(w.t, what, func(context.Context) (func() string, bool) {
		ok, last := reached()
		return func() string { return cluster.Brief(last) }, ok
	})
}

// await waits for a state of one object.
func await[T client.Object](w *world, what string, object T, name string, reached func(T) bool) {
	w.t.Helper()
	key := client.ObjectKey{Namespace: w.ns, Name: name}
	w.eventually(name+": "+what, func() (bool, any) {
		err := w.client.Get(w.ctx, key, object)
		if err != nil {
			return false, err.Error()
		}
		object.SetManagedFields(nil)
		return reached(object), object
	})
}

func (w *world) awaitMaintenance(name, what string, reached func(*v1alpha1.NodeMaintenance) bool) {
	w.t.Helper()
	await(w, what, &v1alpha1.NodeMaintenance{}, w.name(name), reached)
}

func (w *world) awaitNode(name, what string, reached func(*corev1.Node) bool) {
	w.t.Helper()
	await(w, what, &corev1.Node{}, name, reached)
}

func (w *world) awaitPod(name, what string, reached func(*corev1.Pod) bool) {
	w.t.Helper()
	await(w, what, &corev1.Pod{}, name, reached)
}

// awaitPods waits for a state of all pods of this world.
func (w *world) awaitPods(what string, reached func([]corev1.Pod) bool) {
	w.t.Helper()
	w.eventually(what, func() (bool, any) {
		list := &corev1.PodList{}
		w.must("list pods", w.client.List(w.ctx, list, client.InNamespace(w.ns)))
		return reached(list.Items), describe(list.Items)
	})
}

func describe(pods []corev1.Pod) []string {
	lines := make([]string, len(pods))
	for i, p := range pods {
		lines[i] = fmt.Sprintf("%s on %s: %s, available %v, deleted %v", p.Name, p.Spec.NodeName, p.Status.Phase, available(&p), p.DeletionTimestamp)
	}
	return lines
}

func (w *world) awaitAbsent(object client.Object, name string) {
	w.t.Helper()
	key := client.ObjectKey{Namespace: w.ns, Name: name}
	w.eventually(name+": gone", func() (bool, any) {
		return apierrors.IsNotFound(w.client.Get(w.ctx, key, object)), object
	})
}

func (w *world) awaitGone(pod string) {
	w.t.Helper()
	w.awaitAbsent(&corev1.Pod{}, pod)
}

func (w *world) awaitMaintenanceGone(name string) {
	w.t.Helper()
	w.awaitAbsent(&v1alpha1.NodeMaintenance{}, w.name(name))
}

func (w *world) evacuations() []v1alpha1.Evacuation {
	w.t.Helper()
	list := &v1alpha1.EvacuationList{}
	w.must("list evacuations", w.client.List(w.ctx, list, client.InNamespace(w.ns)))
	return list.Items
}

func (w *world) awaitNoEvacuations() {
	w.t.Helper()
	w.eventually("no evacuations", func() (bool, any) {
		left := w.evacuations()
		return len(left) == 0, left
	})
}

// awaitEvacuation waits until a pod has an Evacuation that we asked for.
func (w *world) awaitEvacuation(pod string) {
	w.t.Helper()
	w.eventually("evacuation of "+pod, func() (bool, any) {
		all := w.evacuations()
		for _, e := range all {
			if e.Spec.PodRef.Name == pod && contains(strings.Join(e.Finalizers, " "), v1alpha1.NodeMaintenanceInstigator) {
				return true, all
			}
		}
		return false, all
	})
}

func (w *world) awaitCondition(maintenance, condition, status, reason string) {
	w.t.Helper()
	w.awaitMaintenance(maintenance, fmt.Sprintf("%s=%s (%s)", condition, status, reason), func(m *v1alpha1.NodeMaintenance) bool {
		c := apimeta.FindStatusCondition(m.Status.Conditions, condition)
		return c != nil && c.Status == metav1.ConditionStatus(status) && c.Reason == reason
	})
}

func (w *world) awaitDrained(maintenance string) {
	w.t.Helper()
	w.awaitMaintenance(maintenance, "Drained=True", func(m *v1alpha1.NodeMaintenance) bool {
		return apimeta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained)
	})
}

// awaitMessages waits for the drainMessage of nodes, by maintenance and node.
func (w *world) awaitMessages(want map[string]map[string]string) {
	w.t.Helper()
	for maintenance, nodes := range want {
		w.awaitMaintenance(maintenance, fmt.Sprintf("messages %v", nodes), func(m *v1alpha1.NodeMaintenance) bool {
			for node, message := range nodes {
				if status := nodeStatus(m, node); status == nil || status.DrainMessage != message {
					return false
				}
			}
			return true
		})
	}
}

// awaitBlocker waits until a node names what holds its pods.
func (w *world) awaitBlocker(maintenance, node string, kind v1alpha1.BlockerType, words string) {
	w.t.Helper()
	w.awaitMaintenance(maintenance, fmt.Sprintf("blocker %s that says %q", kind, words), func(m *v1alpha1.NodeMaintenance) bool {
		status := nodeStatus(m, node)
		if status == nil {
			return false
		}
		for _, b := range status.Blockers {
			if b.Type == kind && contains(b.Message, words) && b.Suggestion != "" {
				return true
			}
		}
		return false
	})
}

// awaitEvent waits for an event on a node or maintenance.
func (w *world) awaitEvent(object, reason string) {
	w.t.Helper()
	w.eventually(reason+" event on "+object, func() (bool, any) {
		list := &eventsv1.EventList{}
		w.must("list events", w.client.List(w.ctx, list, client.MatchingFields{"regarding.name": w.name(object)}))
		var seen []string
		for _, e := range list.Items {
			if e.Reason == reason {
				return true, nil
			}
			seen = append(seen, e.Reason+": "+e.Note)
		}
		return false, seen
	})
}

// awaitHolders waits until the ledger of a node names exactly these maintenances;
// without any there is no ledger.
func (w *world) awaitHolders(node string, holders ...string) {
	w.t.Helper()
	w.awaitNode(node, fmt.Sprintf("held by %v", holders), func(n *corev1.Node) bool {
		ledger := n.Annotations[v1alpha1.CordonAnnotation]
		for _, holder := range holders {
			if !contains(ledger, `"`+w.name(holder)+`"`) {
				return false
			}
		}
		return strings.Count(ledger, w.prefix) == len(holders) && (ledger == "") == (len(holders) == 0)
	})
}

func contains(s, part string) bool { return strings.Contains(s, part) }

func nodeStatus(m *v1alpha1.NodeMaintenance, node string) *v1alpha1.NodeMaintenanceNodeStatus {
	for i := range m.Status.NodeStatuses {
		if m.Status.NodeStatuses[i].NodeRef.Name == node {
			return &m.Status.NodeStatuses[i]
		}
	}
	return nil
}
