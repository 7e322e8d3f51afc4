package machine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/internal/core/lifecycle"
)

// The log says what the deletion-process page promises ("Observability"): Cordoning
// Node, Draining Node, which pods are left, Drain completed; a pass that finds
// nothing new is silent.
func TestLogShowsADrain(t *testing.T) {
	inWorld(t, fleet(), func(w *world) {
		w.running()
		w.refuseEvictions(true)
		w.must(w.api.Delete(t.Context(), w.machine()))
		var lines []string
		w.logger = funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
		for range 5 {
			w.step()
		}
		// That there is no answer counts when it has lasted.
		time.Sleep(time.Minute)
		for range 5 {
			w.step()
		}
		var leaving corev1.PodList
		w.must(w.api.List(t.Context(), &leaving))
		for i := range leaving.Items {
			w.must(w.api.Delete(t.Context(), &leaving.Items[i]))
		}
		w.steps("the Machine to go", func() bool { return w.machine() == nil })
		want := []string{
			`"Cordoning Node" "Node"="node"`,
			`"Draining Node" "Node"="node"`,
			`"Drain not completed yet, there are still Pods on the Node that have to be drained" "Node"="node" "podsToTriggerEviction"="shop/a, shop/b" "podsWithDeletionTimestamp"=""`,
			`"Drain not completed yet, waiting for events" "Node"="node" "podsFailedEviction"="shop/a, shop/b" "podsWithDeletionTimestamp"="" "podsToWaitCompleted"="" "podsToTriggerEvictionLater"=""`,
			`"Drain completed, remaining Pods on the Node have been evicted" "Node"="node"`,
			`"Drain completed" "Node"="node"`,
		}
		if diff := cmp.Diff(want, about(lines)); diff != "" {
			t.Errorf("the log of the drain (-want +got):\n%s", diff)
		}
	})
}

func about(lines []string) (drain []string) {
	for _, line := range lines {
		if _, text, found := strings.Cut(line, `"msg"=`); found && (strings.Contains(text, "Drain") || strings.Contains(text, "Cordon")) {
			drain = append(drain, text)
		}
	}
	return drain
}

// A step counts with the time that passed in it, if it was seen to begin.
func TestTheTimeInEveryStepIsMeasured(t *testing.T) {
	t.Parallel()
	m := newMetrics(prometheus.NewRegistry(), time.Now)
	begin := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	at := func(after time.Duration, step lifecycle.Step) { m.reached(key, step, time.Time{}, begin.Add(after)) }
	at(0, lifecycle.StepPreDrainHook) // Since when is not known.
	at(time.Second, lifecycle.StepDrain)
	at(2*time.Second, lifecycle.StepDrain)
	at(5*time.Second, lifecycle.StepVolumeDetach)
	m.forget(key)

	const want = `
# HELP ebbtide_machine_deletion_step_seconds Time that the deletion of a Machine has spent in a step.
# TYPE ebbtide_machine_deletion_step_seconds histogram
ebbtide_machine_deletion_step_seconds_bucket{step="DrainingNode",le="0.5"} 0
ebbtide_machine_deletion_step_seconds_bucket{step="DrainingNode",le="2"} 0
ebbtide_machine_deletion_step_seconds_bucket{step="DrainingNode",le="8"} 1
ebbtide_machine_deletion_step_seconds_bucket{step="DrainingNode",le="32"} 1
ebbtide_machine_deletion_step_seconds_bucket{step="DrainingNode",le="128"} 1
ebbtide_machine_deletion_step_seconds_bucket{step="DrainingNode",le="512"} 1
ebbtide_machine_deletion_step_seconds_bucket{step="DrainingNode",le="2048"} 1
ebbtide_machine_deletion_step_seconds_bucket{step="DrainingNode",le="8192"} 1
ebbtide_machine_deletion_step_seconds_bucket{step="DrainingNode",le="+Inf"} 1
ebbtide_machine_deletion_step_seconds_sum{step="DrainingNode"} 4
ebbtide_machine_deletion_step_seconds_count{step="DrainingNode"} 1
`
	if err := testutil.CollectAndCompare(m.steps, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// A Machine that is stuck is seen while it is: an alert knows in which step, and
// for how long, also if the manager came later. What is done, runs or waits for
// nobody has no age.
func TestAnAlertSeesAMachineThatIsStuck(t *testing.T) {
	inWorld(t, fleet(), func(w *world) {
		w.running()
		budgeted := errors.New("the disruption budget does not allow it")
		w.refuse("evict Pod a", budgeted)
		w.must(w.api.Delete(t.Context(), w.machine()))
		w.settle()
		began := w.machine().Status.Deletion.NodeDrainStartTime
		time.Sleep(time.Hour)
		w.restart()
		w.step()
		counts, oldest := w.manager.metrics.open()
		want := map[lifecycle.Step]time.Duration{lifecycle.StepDrain: time.Since(began.Time)}
		if diff := cmp.Diff(want, oldest); diff != "" || oldest[lifecycle.StepDrain] < time.Hour || counts[lifecycle.StepDrain] != 1 {
			t.Errorf("%v Machines are in steps, ages (-want +got):\n%s", counts, diff)
		}
		families, err := gather(w.manager.metrics)
		w.must(err)
		if len(families) != 2*len(deletionSteps) {
			t.Errorf("there are %d open metrics, want one age and one count for each of %d steps: %v", len(families), len(deletionSteps), families)
		}
		w.api.Refuse = nil
		w.steps("the Machine to go", func() bool { return w.machine() == nil })
		w.step()
		if counts, oldest := w.manager.metrics.open(); len(counts)+len(oldest) > 0 {
			t.Errorf("without a Machine %v are in steps, aged %v", counts, oldest)
		}
	})
}

func gather(m *metrics) (found []string, err error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(m); err != nil {
		return nil, err
	}
	families, err := registry.Gather()
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if metric.GetGauge() != nil {
				found = append(found, family.GetName()+" "+metric.GetLabel()[0].GetValue())
			}
		}
	}
	return found, err
}
