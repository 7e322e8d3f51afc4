package webhook

import (
	"net/http/httptest"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// unsynced is a watch whose first list has not arrived.
type unsynced struct{ cache.Informer }

func (unsynced) HasSynced() bool { return false }

// A replica that would have its first requests wait for its caches is not called.
func TestReplicaIsReadyOnceItsCachesAreFilled(t *testing.T) {
	t.Parallel()
	ready := &readiness{informers: informers{"*v1.Pod": unsynced{}}}
	const want = "the cache of *v1.Pod is not synced yet"
	if err := ready.check(httptest.NewRequest("GET", "/readyz", nil)); err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}
