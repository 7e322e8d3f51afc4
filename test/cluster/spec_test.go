package cluster

import (
	"strings"
	"testing"
)

// What real nodes cannot be had with is said before anything is built or started.
func TestConflictingFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for want, spec := range map[string]Spec{
		"RealNodes and Nodes, which do not go together: pods of simulated nodes":            {RealNodes: 1, Nodes: 1},
		"RealNodes and OnlyAPIServer, which do not go together: nobody schedules":           {RealNodes: 1, OnlyAPIServer: true},
		"RealNodes and Replicas, which do not go together: the API server calls webhooks":   {RealNodes: 1, Replicas: true},
		"RealNodes and Tapped, which do not go together: this manager is behind a proxy in": {RealNodes: 1, Workload: true, Tapped: true},
	} {
		if _, _, err := start(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error is %v, want one that says %q", spec, err, want)
		}
	}
	for _, spec := range []Spec{{RealNodes: 3, Workload: true, Audit: true}, {Replicas: true, Tapped: true, Nodes: 2}, {}} {
		if err := spec.check(); err != nil {
			t.Errorf("%+v: %v", spec, err)
		}
	}
}
