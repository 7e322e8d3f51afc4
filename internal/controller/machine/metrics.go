package machine

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/internal/kube"
)

// metrics are what the controller shows to Prometheus. No label holds the name
// of an object.
type metrics struct {
	steps *prometheus.HistogramVec

	mu sync.Mutex
	// at is where each Machine stands.
	at map[types.NamespacedName]standing
}

// standing is where a Machine stands, and since when; zero if that is not known.
type standing struct {
	step  lifecycle.Step
	since time.Time
}

// deletionSteps are those that are measured.
var deletionSteps = map[lifecycle.Step]bool{
	lifecycle.StepPreDrainHook: true, lifecycle.StepDrain: true, lifecycle.StepVolumeDetach: true,
	lifecycle.StepPreTerminateHook: true, lifecycle.StepDeleteInfrastructure: true,
	lifecycle.StepDeleteBootstrap: true, lifecycle.StepDeleteNode: true,
}

func newMetrics(registry prometheus.Registerer) *metrics {
	return &metrics{
		steps: kube.Register(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "ebbtide_machine_deletion_step_seconds",
			Help:    "Time that the deletion of a Machine has spent in a step.",
			Buckets: prometheus.ExponentialBuckets(0.5, 4, 8),
		}, []string{"step"})),
		at: map[types.NamespacedName]standing{},
	}
}

// reached notes where a Machine stands. The time in the step before counts if it
// was seen to begin.
func (m *metrics) reached(machine types.NamespacedName, step lifecycle.Step, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.at[machine]
	if before.step == step {
		return
	}
	if deletionSteps[before.step] && !before.since.IsZero() {
		m.steps.WithLabelValues(string(before.step)).Observe(now.Sub(before.since).Seconds())
	}
	here := standing{step: step}
	if known {
		here.since = now
	}
	m.at[machine] = here
}

func (m *metrics) forget(machine types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.at, machine)
}
