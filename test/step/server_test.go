// Package step takes parts of the manager further on a real API server, where nothing else
// acts: its admission, its validation and its watches are those of Kubernetes, and whatever
// others do in between is what the test does.
//
// All tests share one API server. What acts on nodes of all names, or on all Clusters, is
// in use by some of them.
package step

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/cluster"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(cluster.Main(m))
}

// startServer returns the API server, which has no controllers. It serves EvictionRequests if
// its version has them.
func startServer(t *testing.T) *cluster.Cluster {
	t.Helper()
	return cluster.Start(t, cluster.Spec{
		OnlyAPIServer: true, EvictionRequests: sandbox.CheckEvictionRequests(sandbox.RequestedVersion()) == nil,
	})
}
