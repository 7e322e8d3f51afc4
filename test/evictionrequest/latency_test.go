package evictionrequest

import (
	"fmt"
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

	"ebbtide.dev/ebbtide/test/goal"
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

// What is asked for begins at once, and goes on at once.
func BenchmarkTheController(b *testing.B) {
	w := newWorld(b)
	m := w.watches()
	n := 0
	for name, bench := range map[string]struct {
		goal time.Duration
		took func(name string) time.Duration
	}{
		"from request to first responder": {300 * time.Millisecond, func(name string) time.Duration {
			pod := w.pod(name, "example.com/leader 20000")
			asked := time.Now()
			w.ask("example.com/upgrade", pod)
			return w.awaitMoment(m, "pod-1-"+name+" example.com/leader Active").Sub(asked)
		}},
		"from completion to next responder": {300 * time.Millisecond, func(name string) time.Duration {
			eviction := "pod-1-" + name
			w.ask("example.com/upgrade", w.pod(name, "example.com/leader 20000"))
			w.awaitMoment(m, eviction+" example.com/leader Active")
			reported := time.Now()
			w.must(w.reports(eviction, "example.com/leader", true))
			return w.awaitMoment(m, eviction+" "+evictor+" Active").Sub(reported)
		}},
		"from open budget to eviction": {250 * time.Millisecond, func(name string) time.Duration { return w.opens(m, name) }},
	} {
		b.Run(name, func(b *testing.B) {
			var took time.Duration
			goal.Time(b, bench.goal)
			for b.Loop() {
				n++
				took += bench.took(fmt.Sprintf("web-%d", n))
			}
			// What prepares a step is no part of it.
			b.ReportMetric(float64(took)/float64(b.N), "ns/op")
		})
	}
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
