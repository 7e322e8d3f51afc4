package kube

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register adds a collector, or returns the registered one: a process may run several managers in
// turn.
func Register[C prometheus.Collector](registry prometheus.Registerer, collector C) C {
	var already prometheus.AlreadyRegisteredError
	if err := registry.Register(collector); errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing
		}
	}
	return collector
}
