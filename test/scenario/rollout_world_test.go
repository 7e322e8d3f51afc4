package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// oldKubelet is the version of nodes that a rollout upgrades to newKubelet.
const oldKubelet, newKubelet = "v1.36.4", "v1.37.1"

// upgrading is a rollout that waits until nodes run newKubelet.
func upgrading(nodes []string, most int) v1alpha1.NodeRolloutSpec {
	return v1alpha1.NodeRolloutSpec{
		NodeSelector:   &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{named(nodes)}}}},
		Target:         &v1alpha1.CompleteWhen{KubeletVersion: ">=1.37.0", ReadySeconds: new(int32(0))},
		MaxUnavailable: new(intstr.FromInt(most)),
	}
}

// draining is a rollout that leaves nodes drained.
func draining(nodes []string, most int) v1alpha1.NodeRolloutSpec {
	spec := upgrading(nodes, most)
	spec.Target, spec.After = nil, v1alpha1.AfterStayDrained
	return spec
}

// rollOut creates a rollout. It is deleted with the scenario, as are its NodeMaintenances.
func (w *world) rollOut(name string, spec v1alpha1.NodeRolloutSpec) {
	w.t.Helper()
	w.create(&v1alpha1.NodeRollout{ObjectMeta: metav1.ObjectMeta{Name: w.name(name)}, Spec: spec})
	w.endRollout(name)
}

// endRollout deletes a rollout with the scenario, as well as its NodeMaintenances.
func (w *world) endRollout(name string) {
	w.t.Helper()
	w.t.Cleanup(func() {
		w.deleteRollout(name)
		for _, m := range w.maintenancesOf(name) {
			w.forget(m.Name)
		}
	})
}

// deleteRollout deletes a rollout and waits until it is gone.
func (w *world) deleteRollout(name string) {
	w.t.Helper()
	r := &v1alpha1.NodeRollout{ObjectMeta: metav1.ObjectMeta{Name: w.name(name)}}
	w.must("delete "+name, client.IgnoreNotFound(w.remove(r)))
	w.awaitAbsent(r, r.Name)
}

func (w *world) changeRollout(name string, edit func(*v1alpha1.NodeRolloutSpec)) {
	w.t.Helper()
	r := &v1alpha1.NodeRollout{}
	w.change(r, w.name(name), func() { edit(&r.Spec) })
}

// maintenancesOf returns the NodeMaintenances that a rollout has created, by its name in theirs.
func (w *world) maintenancesOf(rollout string) []v1alpha1.NodeMaintenance {
	w.t.Helper()
	var list v1alpha1.NodeMaintenanceList
	w.must("list maintenances", w.client.List(w.ctx, &list))
	return slices.DeleteFunc(list.Items, func(m v1alpha1.NodeMaintenance) bool { return !strings.HasPrefix(m.Name, w.name(rollout)+"-") })
}

func (w *world) awaitRollout(name, what string, reached func(*v1alpha1.NodeRolloutStatus) bool) {
	w.t.Helper()
	await(w, what, &v1alpha1.NodeRollout{}, w.name(name), func(r *v1alpha1.NodeRollout) bool {
		return r.Status.ObservedGeneration == r.Generation && reached(&r.Status)
	})
}

func (w *world) awaitRolloutComplete(name, reason string) {
	w.t.Helper()
	w.awaitRollout(name, "Complete because "+reason, func(s *v1alpha1.NodeRolloutStatus) bool {
		complete := apimeta.FindStatusCondition(s.Conditions, v1alpha1.ConditionRolloutComplete)
		return complete != nil && complete.Status == metav1.ConditionTrue && complete.Reason == reason
	})
}

// awaitWorking waits until exactly these nodes are under maintenance, each for a reason.
func (w *world) awaitWorking(name string, reasons map[string]string) {
	w.t.Helper()
	w.awaitRollout(name, fmt.Sprint("working ", reasons), func(s *v1alpha1.NodeRolloutStatus) bool {
		for i := range s.Working {
			if reasons[s.Working[i].Name] != s.Working[i].Reason {
				return false
			}
		}
		return len(s.Working) == len(reasons)
	})
}

// workers upgrades the nodes that are handed over, and counts the nodes that are cordoned at a time.
type workers struct {
	*world
	follower *cluster.Follower

	mu       sync.Mutex
	cordoned map[string]bool
	most     int
	// idle is true while they do nothing.
	idle bool
	errs []error
}

// work begins to upgrade nodes.
func (w *world) work(nodes []string) *workers {
	w.t.Helper()
	for _, node := range nodes {
		w.reports(node, oldKubelet)
	}
	ws := &workers{world: w, cordoned: map[string]bool{}}
	list := &corev1.NodeList{}
	w.must("list nodes", w.client.List(w.ctx, list))
	ws.follower = w.cluster.Follow(w.t, list, func(_ watch.EventType, object client.Object) {
		if node := object.(*corev1.Node); slices.Contains(nodes, node.Name) {
			ws.see(node)
		}
	})
	return ws
}

func (ws *workers) see(node *corev1.Node) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.cordoned[node.Name] = node.Spec.Unschedulable
	count := 0
	for _, cordoned := range ws.cordoned {
		if cordoned {
			count++
		}
	}
	ws.most = max(ws.most, count)
	if _, handedOver := node.Labels[v1alpha1.HandedOverLabel]; handedOver && !ws.idle && node.Status.NodeInfo.KubeletVersion != newKubelet {
		version := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"status":{"nodeInfo":{"kubeletVersion":%q}}}`, newKubelet))
		if err := ws.client.Status().Patch(context.WithoutCancel(ws.ctx), node.DeepCopy(), version); err != nil {
			ws.errs = append(ws.errs, err)
		}
	}
}

// assertAtMost ends the work, and wants so many nodes to have been cordoned at a time.
func (ws *workers) assertAtMost(most int) {
	ws.t.Helper()
	ws.follower.Stop(ws.t)
	if ws.most > most || len(ws.errs) > 0 {
		ws.t.Errorf("%d nodes were cordoned at a time, want at most %d; %v", ws.most, most, ws.errs)
	}
}
