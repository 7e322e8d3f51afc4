package webhook

import (
	"net/http"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// readiness checks that the server listens with a certificate and that the caches are synced. Once
// ready it stays so. Only helm test can check that the API server trusts the certificate.
type readiness struct {
	informers informers
	listens   healthz.Checker
	reached   atomic.Bool
}

// check implements healthz.Checker.
func (r *readiness) check(request *http.Request) error {
	if r.reached.Load() {
		return nil
	}
	if err := r.informers.synced(); err != nil {
		return err
	}
	if err := r.listens(request); err != nil {
		return err
	}
	r.reached.Store(true)
	return nil
}
