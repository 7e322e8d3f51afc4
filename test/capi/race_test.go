package capi

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What is drained: as many Machines at once, and this many pods on each of them, of this
// many applications.
const (
	racedMachines = 20
	podsOfMachine = 30
	racedApps     = 10
	podsOfApp     = racedMachines * podsOfMachine / racedApps
	// raceWithin is how long one side may take.
	raceWithin = 15 * time.Minute
	// goalShare is the most of Cluster API's time that Ebbtide's should be: a third.
	goalShare = 1.0 / 3
)

// work is what makes drains easy or hard.
type work struct {
	name string
	// budget is what the PodDisruptionBudget of each application has; empty is none.
	budget string
	// readyAfter is how long a pod is running before it is ready.
	readyAfter time.Duration
}

var works = []work{
	{name: "no-budgets"},
	{name: "budgets", budget: "maxUnavailable: 6"},
	{name: "budgets-and-5s-until-ready", budget: "maxUnavailable: 6", readyAfter: 5 * time.Second},
}

// Twenty Machines are deleted at once. Cluster API drains their nodes by itself, and then
// those of another twenty behind Ebbtide's hook: by the same processes on the same control
// plane, with the same pods. Only the label on the Cluster differs.
func BenchmarkTwentyMachinesAtOnce(b *testing.B) {
	for _, work := range works {
		var alone outcome
		b.Run(work.name+"/cluster-api", func(b *testing.B) {
			for b.Loop() {
				alone = race(b, work, nil)
			}
			alone.report(b)
		})
		b.Run(work.name+"/ebbtide", func(b *testing.B) {
			var ours outcome
			for b.Loop() {
				ours = race(b, work, optedIn)
			}
			ours.report(b)
			if alone.drained > 0 {
				b.ReportMetric(alone.drained.Seconds()/ours.drained.Seconds(), "times-faster-drained")
				b.ReportMetric(alone.machines.Seconds()/ours.machines.Seconds(), "times-faster-gone")
				b.ReportMetric(ours.drained.Seconds()/alone.drained.Seconds(), "share")
				b.ReportMetric(goalShare, "goal-share")
			}
		})
	}
}

// outcome is how long it took from the order until the last of each.
type outcome struct {
	// drained is when Cluster API was through with hooks and drain of the last Machine;
	// released when the last of our hooks was gone, 0 if there was none.
	drained, released time.Duration
	// pods is when the last pod was gone from the nodes, machines when the last Machine was.
	pods, machines time.Duration
}

func (o outcome) report(b *testing.B) {
	b.ReportMetric(o.drained.Seconds(), "s-drained")
	b.ReportMetric(o.pods.Seconds(), "s-pods-gone")
	b.ReportMetric(o.machines.Seconds(), "s-machines-gone")
	if o.released > 0 {
		b.ReportMetric(o.released.Seconds(), "s-hooks-gone")
	}
}

// race has one side drain, from the order to scale the pool down to the last Machine's end.
func race(b *testing.B, of work, labels map[string]string) outcome {
	b.Helper()
	w := newWorld(b, bridged)
	w.cluster("prod", labels)
	w.deployment("old", "prod", racedMachines)
	w.awaitHooks(racedMachines * len(labels))
	w.applications(of)
	// What is evicted finds room there; it comes later, so that no pod is there before.
	w.declare("new", "prod", racedMachines)
	w.awaitRunning(2 * racedMachines)
	w.awaitHooks(2 * racedMachines * len(labels))

	t := w.track("old")
	old := w.named(deploymentKind, "old")
	t.note(func(time.Duration) { t.begin = time.Now() })
	w.must(w.c.Client.Patch(w.ctx, old, mergePatch(`{"spec":{"replicas":0}}`)))
	select {
	case <-t.done:
	case <-time.After(raceWithin):
		b.Fatalf("it is not over after %s: %s", raceWithin, t.left())
	}
	for n := range racedApps {
		w.awaitApplication(fmt.Sprintf("web-%d", n), podsOfApp)
	}
	return t.outcome()
}

// applications makes all of them, and waits until they are up.
func (w *world) applications(of work) {
	w.t.Helper()
	var text strings.Builder
	for n := range racedApps {
		fmt.Fprintf(&text, `
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-%[1]d}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: web-%[1]d}}
  template:
    metadata:
      labels: {app: web-%[1]d}
      annotations: {sandbox.ebbtide.dev/ready-after: %[3]s}
    spec: {containers: [{name: web, image: web}]}
`, n, podsOfApp, of.readyAfter)
		if of.budget != "" {
			fmt.Fprintf(&text, `
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web-%[1]d}
spec: {selector: {matchLabels: {app: web-%[1]d}}, %[2]s}
`, n, of.budget)
		}
	}
	w.at.Apply(w.t, w.app, text.String())
	for n := range racedApps {
		w.awaitApplication(fmt.Sprintf("web-%d", n), podsOfApp)
	}
	ready := &appsv1.DeploymentList{}
	w.must(w.at.Client.List(w.ctx, ready, client.InNamespace(w.app)))
	if len(ready.Items) != racedApps {
		w.t.Fatalf("%d applications, want %d", len(ready.Items), racedApps)
	}
}

// track follows the Machines of a pool, and the pods on their nodes.
type track struct {
	done chan struct{}

	mu    sync.Mutex
	begin time.Time
	// hooks, busy and machines are the names of Machines that still are so, pods those that
	// are on their nodes.
	hooks, busy, machines, pods map[string]bool
	at                          outcome
}

func (w *world) track(pool string) *track {
	w.t.Helper()
	t := &track{done: make(chan struct{}), hooks: map[string]bool{}, busy: map[string]bool{}, machines: map[string]bool{}, pods: map[string]bool{}}
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
				t.pods[pods.Items[n].Name] = true
			}
		}
	}
	if len(t.machines) != racedMachines || len(t.pods) != racedMachines*podsOfMachine {
		w.t.Fatalf("%d Machines with %d pods, want %d with %d", len(t.machines), len(t.pods), racedMachines, racedMachines*podsOfMachine)
	}
	w.c.Follow(w.t, machines, t.seeMachine, options...)
	w.at.Follow(w.t, pods, t.seePod, client.InNamespace(w.app))
	return t
}

// beforeDrained are words of Cluster API for a Machine whose drain is not over.
var beforeDrained = []string{"", "NotDeleting", "Deleting", "InternalError", "WaitingForPreDrainHook", "DrainingNode"}

func (t *track) seeMachine(kind watch.EventType, object client.Object) {
	m, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	reason, _, _ := strings.Cut(deleting(m), ":")
	gone, drained := kind == watch.Deleted, true
	for _, before := range beforeDrained {
		drained = drained && reason != before
	}
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
	if kind == watch.Deleted {
		t.note(func(after time.Duration) { lose(t.pods, object.GetName(), after, &t.at.pods) })
	}
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
