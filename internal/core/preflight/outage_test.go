package preflight_test

import (
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/preflight"
	"ebbtide.dev/ebbtide/test/difference"
)

// An application goes down if all of its pods leave at once and nothing protects them.
func TestWhichApplicationsADrainTakesDown(t *testing.T) {
	t.Parallel()
	down := func(kind, name string, pods int) []preflight.Outage {
		return []preflight.Outage{{Namespace: "shop", Owner: preflight.Owner{Kind: kind, Name: name}, PodCount: pods}}
	}
	for name, test := range map[string]struct {
		world func(*world)
		want  []preflight.Outage
	}{
		"all pods are on the nodes": {func(w *world) { w.replicas("web", "one", "one", "two") }, down("ReplicaSet", "web", 3)},
		"one is elsewhere":          {func(w *world) { w.replicas("web", "one", "one", "two", "three") }, nil},
		"one is elsewhere, not ready": {func(w *world) {
			w.replicas("web", "one", "two")
			w.pod("three", "web-9", of("ReplicaSet", "web"), unready)
		}, down("ReplicaSet", "web", 2)},
		"one is elsewhere, and ends": {func(w *world) {
			w.replicas("web", "one", "two")
			w.pod("three", "web-9", of("ReplicaSet", "web"), terminating)
		}, down("ReplicaSet", "web", 2)},
		"a budget protects them": {func(w *world) {
			w.replicas("web", "one", "two")
			w.budget("web", "web", atMost(1), 2, 1)
		}, nil},
		"its Deployment surges": {func(w *world) { w.replicas("web", "one", "two"); w.deployment("web") }, nil},
		"a Deployment in the middle of a rollout": {func(w *world) {
			w.replicas("web", "one", "two")
			w.deployment("web").Annotations = nil
			w.pod("two", "web-8", of("ReplicaSet", "web"))
		}, down("Deployment", "web", 3)},
		"one of its pods stays": {func(w *world) {
			w.replicas("web", "one")
			w.pod("two", "web-9", of("ReplicaSet", "web"), labelled(v1alpha1.DrainLabel, "skip"))
		}, nil},
		"a single pod":          {func(w *world) { w.replicas("web", "one") }, nil},
		"a Job has no replicas": {func(w *world) { w.pod("one", "job-1", of("Job", "job")); w.pod("two", "job-2", of("Job", "job")) }, nil},
		"a DaemonSet has one everywhere": {func(w *world) {
			w.pod("one", "log-1", of("DaemonSet", "log"))
			w.pod("two", "log-2", of("DaemonSet", "log"))
		}, nil},
		"budgets could not be read": {func(w *world) {
			w.replicas("web", "one", "two")
			w.Unread = []preflight.Unread{{Kind: "PodDisruptionBudget", Why: "forbidden"}}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld("one", "two", "three")
			w.drain.Spec.NodeSelector = named("one", "two")
			test.world(w)
			difference.None(t, "outages", test.want, w.forecast().Outages)
		})
	}
}

// Those of most pods come first, and not all of very many are told.
func TestManyApplicationsGoDown(t *testing.T) {
	t.Parallel()
	w := newWorld("one", "two")
	for i := range 150 {
		app := string(rune('a'+i%26)) + string(rune('a'+i/26))
		w.replicas(app, "one", "one")
	}
	w.replicas("zz", "one", "one", "one")
	got := w.forecast().Outages
	if len(got) != 100 || got[0].Owner.Name != "zz" || got[1].Owner.Name != "aa" {
		t.Errorf("%d outages, the first %v, want 100 and the one of three pods first", len(got), got[:2])
	}
}
