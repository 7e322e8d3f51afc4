package capi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
	// nothing has no pods be on the nodes.
	nothing bool
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
				alone = race(b, work, nil, (*world).scaleDown)
			}
			alone.report(b)
		})
		b.Run(work.name+"/ebbtide", func(b *testing.B) {
			var ours outcome
			for b.Loop() {
				ours = race(b, work, optedIn, (*world).scaleDown)
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
	// begun is when the first pod was on its way out, evicted when the last one was, and pods
	// when the last one was gone; machines when the last Machine was.
	begun, evicted, pods, machines time.Duration
}

func (o outcome) report(b *testing.B) {
	for unit, took := range map[string]time.Duration{
		"s-begun": o.begun, "s-evicted": o.evicted, "s-pods-gone": o.pods, "s-hooks-gone": o.released, "s-drained": o.drained, "s-machines-gone": o.machines,
	} {
		if took > 0 {
			b.ReportMetric(took.Seconds(), unit)
		}
	}
}

// race has one side drain, from the order, which by default is to scale the pool down, to the
// last Machine's end.
func race(b *testing.B, of work, labels map[string]string, order func(*world, *track)) outcome {
	b.Helper()
	w := newWorld(b, bridged)
	w.cluster("prod", labels)
	w.deployment("old", "prod", racedMachines)
	w.awaitHooks(racedMachines * len(labels))
	if !of.nothing {
		w.applications(of)
	}
	// What is evicted finds room there; it comes later, so that no pod is there before.
	w.declare("new", "prod", racedMachines)
	w.awaitRunning(2 * racedMachines)
	w.awaitHooks(2 * racedMachines * len(labels))

	t := w.track("old")
	if expected := racedMachines * podsOfMachine; !of.nothing && len(t.pods) != expected {
		b.Fatalf("%d pods are on the Machines, want %d", len(t.pods), expected)
	}
	t.note(func(time.Duration) { t.begin = time.Now() })
	order(w, t)
	select {
	case <-t.done:
	case <-time.After(raceWithin):
		b.Fatalf("it is not over after %s: %s", raceWithin, t.left())
	}
	for n := 0; n < racedApps && !of.nothing; n++ {
		w.awaitApplication(fmt.Sprintf("web-%d", n), podsOfApp)
	}
	return t.outcome()
}

// scaleDown has all Machines of the pool be deleted.
func (w *world) scaleDown(*track) {
	w.t.Helper()
	w.must(w.c.Client.Patch(w.ctx, w.named(deploymentKind, "old"), mergePatch(`{"spec":{"replicas":0}}`)))
}

// eraseApplications has no pod be on the nodes when these are removed, and none come anew.
func (w *world) eraseApplications() {
	for _, kind := range []client.Object{&appsv1.Deployment{}, &appsv1.ReplicaSet{}, &corev1.Pod{}} {
		w.must(w.at.Client.DeleteAllOf(w.ctx, kind, client.InNamespace(w.app), client.GracePeriodSeconds(0)))
	}
}

// applications makes all of them, and waits until they are up.
func (w *world) applications(of work) {
	w.t.Helper()
	var text strings.Builder
	annotations := ""
	if of.readyAfter > 0 {
		annotations = "sandbox.ebbtide.dev/ready-after: " + of.readyAfter.String()
	}
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
      annotations: {%[3]s}
    spec: {containers: [{name: web, image: web}]}
`, n, podsOfApp, annotations)
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
	w.t.Cleanup(w.eraseApplications)
	for n := range racedApps {
		w.awaitApplication(fmt.Sprintf("web-%d", n), podsOfApp)
	}
	ready := &appsv1.DeploymentList{}
	w.must(w.at.Client.List(w.ctx, ready, client.InNamespace(w.app)))
	if len(ready.Items) != racedApps {
		w.t.Fatalf("%d applications, want %d", len(ready.Items), racedApps)
	}
}
