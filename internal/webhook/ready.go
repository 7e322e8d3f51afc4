package webhook

import (
	"net/http"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// readiness is whether the API server can call us: the server listens and shows a certificate,
// and what answers are made of has been read. Whether the API server trusts the certificate the
// manager cannot see: helm test does. Once it was ready it stays so.
type readiness struct {
	informers informers
	listens   healthz.Checker
	reached   atomic.Bool
}

// check is a healthz.Checker.
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
