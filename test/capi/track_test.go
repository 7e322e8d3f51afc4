package capi

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// track follows the Machines of a pool, and the pods on their nodes.
type track struct {
	done chan struct{}

	mu    sync.Mutex
	begin time.Time
	// hooks, busy and machines are the names of Machines that still are so, pods those that
	// are on their nodes, and staying those of them that nobody has evicted.
	hooks, busy, machines, pods, staying map[string]bool
	at                                   outcome
}

func (w *world) track(pool string) *track {
	w.t.Helper()
	t := &track{
		done: make(chan struct{}), hooks: map[string]bool{}, busy: map[string]bool{}, machines: map[string]bool{},
		pods: map[string]bool{}, staying: map[string]bool{},
	}
	machines := &unstructured.UnstructuredList{}
	machines.SetGroupVersionKind(machineKind)
	options := []client.ListOption{client.InNamespace(w.ns), client.MatchingLabels{"pool": pool}}
	w.must(w.c.Client.List(w.ctx, machines, options...))
	pods := &corev1.PodList{}
	w.must(w.at.Client.List(w.ctx, pods, client.InNamespace(w.app)))
	for i := range machines.Items {
		m := &machines.Items[i]
		t.busy[m.GetName()], t.machines[m.GetName()] = true, true
		if hooked(m) {
			t.hooks[m.GetName()] = true
		}
		for n := range pods.Items {
			if pods.Items[n].Spec.NodeName == nodeOf(m) {
				t.pods[pods.Items[n].Name], t.staying[pods.Items[n].Name] = true, true
			}
		}
	}
	if len(t.machines) != racedMachines {
		w.t.Fatalf("%d Machines, want %d", len(t.machines), racedMachines)
	}
	w.c.Follow(w.t, machines, t.seeMachine, options...)
	w.at.Follow(w.t, pods, t.seePod, client.InNamespace(w.app))
	return t
}

// beforeDrained are words of Cluster API for a Machine whose drain is not over.
var beforeDrained = []string{"", "NotDeleting", "Deleting", "InternalError", "WaitingForPreDrainHook", "DrainingNode"}

// isDrained reports whether Cluster API has finished the drain of a Machine.
func isDrained(m *unstructured.Unstructured) bool {
	reason, _, _ := strings.Cut(deleting(m), ":")
	return !slices.Contains(beforeDrained, reason)
}

func (t *track) seeMachine(kind watch.EventType, object client.Object) {
	m, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	gone, drained := kind == watch.Deleted, isDrained(m)
	t.note(func(after time.Duration) {
		if gone || !hooked(m) {
			lose(t.hooks, m.GetName(), after, &t.at.released)
		}
		if gone || drained {
			lose(t.busy, m.GetName(), after, &t.at.drained)
		}
		if gone {
			lose(t.machines, m.GetName(), after, &t.at.machines)
		}
	})
}

func (t *track) seePod(kind watch.EventType, object client.Object) {
	t.note(func(after time.Duration) {
		if kind == watch.Deleted || object.GetDeletionTimestamp() != nil {
			lose(t.staying, object.GetName(), after, &t.at.evicted)
		}
		if t.at.begun == 0 {
			t.at.begun = t.at.evicted
		}
		if kind == watch.Deleted {
			lose(t.pods, object.GetName(), after, &t.at.pods)
		}
	})
}

// lose notes when the last one was lost.
func lose(all map[string]bool, name string, after time.Duration, last *time.Duration) {
	if all[name] {
		delete(all, name)
		*last = after
	}
}

func (t *track) note(what func(after time.Duration)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	over := len(t.machines)+len(t.pods) == 0
	what(time.Since(t.begin))
	if !over && len(t.machines)+len(t.pods) == 0 {
		close(t.done)
	}
}

func (t *track) left() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%d hooks, %d Machines not drained, %d Machines, %d pods", len(t.hooks), len(t.busy), len(t.machines), len(t.pods))
}

func (t *track) outcome() outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at
}
