package evictionrequest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// samples is how often each step is measured.
	samples = 10
	// slowest is how long no step may take, on however busy a machine.
	slowest = 20 * time.Second
)

// moments are when something was first seen.
type moments struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (m *moments) note(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at[what].IsZero() {
		m.at[what] = time.Now()
	}
}

func (m *moments) of(what string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at[what]
}

// watches has everything noted that is measured, as it is seen.
func (w *world) watches() *moments {
	w.t.Helper()
	m := &moments{at: map[string]time.Time{}}
	follow := func(list client.ObjectList, see func(watch.EventType, client.Object)) {
		w.must(w.client.List(w.ctx, list, client.InNamespace(w.ns)))
		w.cluster.Follow(w.t, list, see, client.InNamespace(w.ns))
	}
	follow(&lifecyclev1alpha1.EvictionList{}, func(_ watch.EventType, object client.Object) {
		for _, one := range object.(*lifecyclev1alpha1.Eviction).Status.TargetResponders {
			m.note(fmt.Sprintf("%s %s %s", object.GetName(), one.Name, one.State))
		}
	})
	follow(&corev1.PodList{}, func(kind watch.EventType, object client.Object) {
		if kind == watch.Deleted || object.GetDeletionTimestamp() != nil {
			m.note(object.GetName() + " evicted")
		}
	})
	follow(&policyv1.PodDisruptionBudgetList{}, func(_ watch.EventType, object client.Object) {
		b := object.(*policyv1.PodDisruptionBudget)
		if b.Status.DisruptionsAllowed > 0 && b.Status.ObservedGeneration == b.Generation {
			m.note(b.Name + " open")
		}
	})
	return m
}

// await returns when something was first seen.
func (w *world) awaitMoment(m *moments, what string) time.Time {
	w.t.Helper()
	w.eventually(what, func() (bool, any) { return !m.of(what).IsZero(), "nothing" })
	return m.of(what)
}

func (w *world) tellLatency(what string, goal time.Duration, took []time.Duration) {
	w.t.Helper()
	slices.Sort(took)
	median, longest := took[len(took)/2], took[len(took)-1]
	w.t.Logf("%s: median %s, longest %s of %d, goal %s", what, median.Round(time.Millisecond), longest.Round(time.Millisecond), len(took), goal)
	if longest > slowest {
		w.t.Errorf("%s takes %s, want at most %s on any machine", what, longest, slowest)
	}
}

// What is asked for begins at once, and goes on at once.
func TestNobodyWaitsForTheController(t *testing.T) {
	w := newWorld(t)
	m := w.watches()
	var begins, handsOver, evicts []time.Duration
	for n := range samples {
		name := fmt.Sprintf("web-%d", n)
		pod := w.pod(name, "example.com/leader 20000")
		asked := time.Now()
		w.ask("example.com/upgrade", pod)
		eviction := "pod-1-" + name
		begins = append(begins, w.awaitMoment(m, eviction+" example.com/leader Active").Sub(asked))
		reported := time.Now()
		w.must(w.reports(eviction, "example.com/leader", true))
		handsOver = append(handsOver, w.awaitMoment(m, eviction+" "+evictor+" Active").Sub(reported))
	}
	for n := range samples {
		evicts = append(evicts, w.opens(m, fmt.Sprintf("db-%d", n)))
	}
	w.tellLatency("EvictionRequest created, first responder Active", 300*time.Millisecond, begins)
	w.tellLatency("responder completes, next one Active", 300*time.Millisecond, handsOver)
	w.tellLatency("budget opens, pod evicted", 250*time.Millisecond, evicts)
}

// opens has a pod wait for a budget, and returns after what time it is evicted when that opens.
func (w *world) opens(m *moments, name string) time.Duration {
	w.t.Helper()
	pod := w.newPod(name)
	pod.Labels = map[string]string{"name": name}
	w.must(w.client.Create(w.ctx, pod))
	w.eventually("the pod to run", func() (bool, any) {
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
		return pod.Status.Phase == corev1.PodRunning, pod.Status.Phase
	})
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}, MinAvailable: new(intstr.FromInt32(1)),
		},
	}
	w.must(w.client.Create(w.ctx, b))
	w.eventually("the budget to be counted", func() (bool, any) {
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(b), b))
		return b.Status.ObservedGeneration == b.Generation && b.Status.CurrentHealthy == 1, b.Status
	})
	w.ask("example.com/upgrade", pod)
	w.awaitMessage("pod-1-"+name, "Eviction refused")
	w.must(w.client.Patch(w.ctx, b, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"minAvailable":0}}`))))
	return w.awaitMoment(m, name+" evicted").Sub(w.awaitMoment(m, name+" open"))
}
