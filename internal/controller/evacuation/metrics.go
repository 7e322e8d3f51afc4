package evacuation

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/kube"
)

// metrics of the controller. No label holds the name of an object.
type metrics struct {
	evacuations *prometheus.GaugeVec

	mu sync.Mutex
	// counted holds the current count of each evacuation.
	counted map[types.NamespacedName]count
}

// count is the labels of one evacuation.
type count struct {
	evacuator string
	state     core.State
}

func newMetrics(registry prometheus.Registerer) *metrics {
	return &metrics{
		evacuations: kube.Register(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ebbtide_evacuations",
			Help: "Evacuations, by the class of their active evacuator, where it is a built-in one, and by where they stand.",
		}, []string{"evacuator", "state"})),
		counted: map[types.NamespacedName]count{},
	}
}

// counts notes where an evacuation stands.
func (m *metrics) counts(key types.NamespacedName, evacuator string, state core.State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := count{evacuator: bounded(evacuator), state: state}
	before, counted := m.counted[key]
	if counted && before == now {
		return
	}
	if counted {
		m.evacuations.WithLabelValues(before.evacuator, string(before.state)).Dec()
	}
	m.counted[key] = now
	m.evacuations.WithLabelValues(now.evacuator, string(now.state)).Inc()
}

// bounded keeps the number of labels small: classes are made up by whoever
// annotates a pod.
func bounded(class string) string {
	switch class {
	case "":
		return "none"
	case v1alpha1.DeploymentEvacuatorClass, v1alpha1.DaemonSetEvacuatorClass, v1alpha1.KubeletEvacuatorClass:
		return class
	default:
		return "other"
	}
}

// gone takes an evacuation out of the count.
func (m *metrics) gone(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, counted := m.counted[key]; counted {
		m.evacuations.WithLabelValues(before.evacuator, string(before.state)).Dec()
		delete(m.counted, key)
	}
}
