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
// of an object. An alert about a Machine that is stuck needs the age of the step
// while it lasts: the histogram knows only of those that have ended.
type metrics struct {
	steps *prometheus.HistogramVec
	now   func() time.Time

	mu sync.Mutex
	// at is where each Machine stands.
	at map[types.NamespacedName]stepState
}

// stepState is the step of a Machine, and since when that was seen; zero if it was
// not seen to begin.
type stepState struct {
	step  lifecycle.Step
	since time.Time
	// began is when the step began; zero if it has no beginning.
	began time.Time
}

// deletionSteps are those that are measured.
var deletionSteps = map[lifecycle.Step]bool{
	lifecycle.StepPreDrainHook: true, lifecycle.StepDrain: true, lifecycle.StepVolumeDetach: true,
	lifecycle.StepPreTerminateHook: true, lifecycle.StepDeleteInfrastructure: true,
	lifecycle.StepDeleteBootstrap: true, lifecycle.StepDeleteNode: true,
}

var (
	openSteps = prometheus.NewDesc("ebbtide_machine_deletions",
		"Machines whose deletion is in a step.", []string{"step"}, nil)
	oldestStep = prometheus.NewDesc("ebbtide_machine_deletion_step_age_seconds",
		"Age of a step of the deletion that lasts longest of all Machines; 0 if none is in it.", []string{"step"}, nil)
)

func newMetrics(registry prometheus.Registerer, now func() time.Time) *metrics {
	return kube.Register(registry, &metrics{
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "ebbtide_machine_deletion_step_seconds",
			Help:    "Time that the deletion of a Machine has spent in a step.",
			Buckets: prometheus.ExponentialBuckets(0.5, 4, 8),
		}, []string{"step"}),
		now: now,
		at:  map[types.NamespacedName]stepState{},
	})
}

// Describe says what there is.
func (m *metrics) Describe(all chan<- *prometheus.Desc) {
	m.steps.Describe(all)
	all <- openSteps
	all <- oldestStep
}

// Collect tells of the steps that have ended and of those that last.
func (m *metrics) Collect(all chan<- prometheus.Metric) {
	m.steps.Collect(all)
	counts, oldest := m.open()
	for step := range deletionSteps {
		all <- prometheus.MustNewConstMetric(openSteps, prometheus.GaugeValue, counts[step], string(step))
		all <- prometheus.MustNewConstMetric(oldestStep, prometheus.GaugeValue, oldest[step].Seconds(), string(step))
	}
}

// open counts the Machines in each step, and says how long the oldest is in it.
func (m *metrics) open() (counts map[lifecycle.Step]float64, oldest map[lifecycle.Step]time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	counts, oldest = map[lifecycle.Step]float64{}, map[lifecycle.Step]time.Duration{}
	for _, here := range m.at {
		counts[here.step]++
		if !here.began.IsZero() {
			oldest[here.step] = max(oldest[here.step], now.Sub(here.began))
		}
	}
	return counts, oldest
}

// reached notes where a Machine stands. The time in the step before counts if it
// was seen to begin. began is when the step did, as the Machine says; it is known
// also by a manager that came later.
func (m *metrics) reached(machine types.NamespacedName, step lifecycle.Step, began, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.at[machine]
	if before.step == step {
		before.began = began
		m.at[machine] = before
		return
	}
	if deletionSteps[before.step] && !before.since.IsZero() {
		m.steps.WithLabelValues(string(before.step)).Observe(now.Sub(before.since).Seconds())
	}
	here := stepState{step: step, began: began}
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
