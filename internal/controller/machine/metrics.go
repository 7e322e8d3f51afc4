package machine

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/internal/kube"
)

// metrics have no label with the name of an object. An alert about a stuck Machine needs the age of
// the current step; the histogram only has completed steps.
type metrics struct {
	steps *prometheus.HistogramVec
	now   func() time.Time

	mu sync.Mutex
	at map[types.NamespacedName]stepState
}

// stepState is the current step of a Machine; since is zero if its start was not observed.
type stepState struct {
	step  lifecycle.Step
	since time.Time
	// began is the recorded start of the step, if it has one.
	began time.Time
}

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

func (m *metrics) Describe(all chan<- *prometheus.Desc) {
	m.steps.Describe(all)
	all <- openSteps
	all <- oldestStep
}

func (m *metrics) Collect(all chan<- prometheus.Metric) {
	m.steps.Collect(all)
	counts, oldest := m.open()
	for step := range deletionSteps {
		all <- prometheus.MustNewConstMetric(openSteps, prometheus.GaugeValue, counts[step], string(step))
		all <- prometheus.MustNewConstMetric(oldestStep, prometheus.GaugeValue, oldest[step].Seconds(), string(step))
	}
}

// open returns the number of Machines in each step and the age of the oldest.
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

// reached notes the step of a Machine. The time in the previous step counts if its start was
// observed. Began is the recorded start, which a new manager knows too.
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
