package maintenance_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// A node of which no pod is about to leave is not said to be evacuating.
func TestNodeWithoutAMovingPodIsReported(t *testing.T) {
	waits := labelled(v1alpha1.DrainLabel, "wait-completed")
	refused := func(w *world, pods []*corev1.Pod) {
		w.refused = map[maintenance.Write]maintenance.Refusal{}
		for _, pod := range pods {
			w.refused[maintenance.Write{Kind: maintenance.WriteEvacuation, Pod: pod.UID}] = maintenance.Refusal{
				Message: "no", Since: w.now, Again: w.now.Add(time.Hour),
			}
		}
	}
	for name, test := range map[string]struct {
		world func(w *world)
		want  string
	}{
		"a pod leaves":              {func(w *world) { w.run("one", 1, 0) }, "Evacuating"},
		"all are left to complete":  {func(w *world) { w.run("one", 2, 0, waits) }, "Waiting for pods to complete"},
		"one is left, one leaves":   {func(w *world) { w.run("one", 1, 0, waits); w.run("one", 1, 0) }, "Evacuating"},
		"all are blocked":           {func(w *world) { refused(w, w.run("one", 2, 0)) }, "Waiting for blocked pods"},
		"one is blocked of two":     {func(w *world) { refused(w, w.run("one", 2, 0)[:1]) }, "Evacuating"},
		"one is blocked, one waits": {func(w *world) { refused(w, w.run("one", 1, 0)); w.run("one", 1, 0, waits) }, "Waiting for blocked pods"},
		"the others come later": {func(w *world) {
			refused(w, w.run("one", 1, 0))
			w.run("one", 1, 2000000000)
		}, "Waiting for blocked pods"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			m := w.maintenance("m", drain, nil, "one")
			test.world(w)
			w.told(nil, 2)
			if got := m.Status.NodeStatuses[0].DrainMessage; got != test.want {
				t.Errorf("says %q, want %q", got, test.want)
			}
		})
	}
}
