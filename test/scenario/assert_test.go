package scenario

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func (w *world) get(object client.Object, name string) {
	w.t.Helper()
	w.must("get "+name, w.client.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: name}, object))
}

func (w *world) assertUnschedulable(node string, want bool) {
	w.t.Helper()
	n := &corev1.Node{}
	w.get(n, node)
	if n.Spec.Unschedulable != want {
		w.t.Errorf("node %s: unschedulable is %v, want %v", node, n.Spec.Unschedulable, want)
	}
}

// assertStaysCordoned watches a node for a moment in which nobody may touch it.
func (w *world) assertStaysCordoned(node string) {
	w.t.Helper()
	for range 20 {
		w.assertUnschedulable(node, true)
		time.Sleep(50 * time.Millisecond)
	}
}

func (w *world) assertNotDrained(maintenance string) {
	w.t.Helper()
	m := &v1alpha1.NodeMaintenance{}
	w.get(m, w.name(maintenance))
	if apimeta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
		w.t.Errorf("%s is Drained while pods are left: %+v", maintenance, m.Status)
	}
}

func (w *world) assertNodeStatus(maintenance, node string, field func(v1alpha1.NodeMaintenanceNodeStatus) any, want any) {
	w.t.Helper()
	m := &v1alpha1.NodeMaintenance{}
	w.get(m, w.name(maintenance))
	status := nodeStatus(m, node)
	if status == nil {
		w.t.Fatalf("%s has no status of node %s", maintenance, node)
	}
	if diff := cmp.Diff(want, field(*status)); diff != "" {
		w.t.Errorf("%s, node %s (-want +got):\n%s", maintenance, node, diff)
	}
}

// watchPods sees every change of this world's pods in the order in which the API
// server made them, until stop is called.
func (w *world) watchPods(see func(watch.EventType, *corev1.Pod)) (stop func()) {
	w.t.Helper()
	list := &corev1.PodList{}
	w.must("list pods", w.client.List(w.ctx, list, client.InNamespace(w.ns)))
	for i := range list.Items {
		see(watch.Added, &list.Items[i])
	}
	watcher, err := w.client.Watch(w.ctx, &corev1.PodList{}, client.InNamespace(w.ns),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	w.must("watch pods", err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range watcher.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok {
				see(e.Type, p)
			}
		}
	}()
	return func() { watcher.Stop(); <-done }
}

// departures notes in which order pods leave.
type departures struct {
	t     *testing.T
	waves [][]string
	// overlaps are pods that began to leave while an earlier wave was there.
	overlaps []string
	present  map[string]bool
	stop     func()
}

func (w *world) watchDepartures(waves ...[]string) *departures {
	w.t.Helper()
	d := &departures{t: w.t, waves: waves, present: map[string]bool{}}
	d.stop = w.watchPods(d.see)
	return d
}

func (d *departures) see(kind watch.EventType, p *corev1.Pod) {
	d.present[p.Name] = kind != watch.Deleted
	if kind != watch.Deleted && p.DeletionTimestamp == nil {
		return
	}
	for _, wave := range d.waves {
		if slices.Contains(wave, p.Name) {
			return
		}
		for _, earlier := range wave {
			if d.present[earlier] {
				d.overlaps = append(d.overlaps, p.Name+" left before "+earlier)
			}
		}
	}
}

func (d *departures) assertInOrder() {
	d.t.Helper()
	d.stop()
	if len(d.overlaps) > 0 {
		d.t.Errorf("pods left out of order: %v", d.overlaps)
	}
	for name, present := range d.present {
		if present {
			d.t.Errorf("pod %s never left", name)
		}
	}
}

// availability notes how many pods of an application were available at the least.
type availability struct {
	t         *testing.T
	floor     int
	least     int
	available map[string]bool
	stop      func()
}

func (w *world) watchAvailability(app string, floor int) *availability {
	w.t.Helper()
	a := &availability{t: w.t, floor: floor, available: map[string]bool{}}
	listing := &corev1.PodList{}
	w.must("list pods", w.client.List(w.ctx, listing, client.InNamespace(w.ns), client.MatchingLabels{"name": app}))
	for i := range listing.Items {
		a.available[listing.Items[i].Name] = available(&listing.Items[i])
	}
	a.least = a.count()
	a.stop = w.watchPods(func(kind watch.EventType, p *corev1.Pod) {
		a.available[p.Name] = kind != watch.Deleted && available(p)
		a.least = min(a.least, a.count())
	})
	return a
}

func (a *availability) count() int {
	n := 0
	for _, available := range a.available {
		if available {
			n++
		}
	}
	return n
}

func (a *availability) assertKept() {
	a.t.Helper()
	a.stop()
	if a.least < a.floor {
		a.t.Errorf("only %d pods were available at one time, the budget asks for %d", a.least, a.floor)
	}
}
