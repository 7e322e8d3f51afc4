package kube

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// LeaderLease is the name of the leader election Lease.
	LeaderLease = "ebbtide.dev"
	// leadsFor bounds the time after its last renewal in which a leader may write: controller-runtime
	// gives up the Lease then, well before another manager takes it.
	leadsFor = 10 * time.Second
)

var errFenced = errors.New("this manager has not renewed its lease for 10s, or another program wrote it. Another manager may be active, so nothing is written")

// Fence lets a manager that once led write only while it still leads. A paused process continues
// before it notices that its lease is over, and one that lost its lease retries for 10s. A manager
// that never led only writes for its webhooks.
type Fence struct {
	// last is nil before the first renewal.
	last atomic.Pointer[renewal]
}

// renewal is the result of renewals.
type renewal struct {
	// began is the start of the last successful one.
	began time.Time
	// refused is true if a later one was refused, because the lease is gone or was written by
	// another manager.
	refused bool
}

// Guard passes all writes by the config through the fence, which sees the renewals among them.
func (f *Fence) Guard(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return fenced{f, next} })
}

// Follow passes all writes to another cluster through the fence. A nil fence allows all.
func (f *Fence) Follow(config *rest.Config) {
	if f != nil {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return follower{f, next} })
	}
}

type fenced struct {
	*Fence
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (f fenced) RoundTrip(request *http.Request) (*http.Response, error) {
	if !renews(request) {
		return follower(f).RoundTrip(request)
	}
	began := time.Now()
	response, err := f.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	switch last := f.last.Load(); {
	case response.StatusCode < http.StatusMultipleChoices:
		f.last.Store(&renewal{began: began})
	case last != nil && (response.StatusCode == http.StatusConflict || response.StatusCode == http.StatusNotFound):
		f.last.Store(&renewal{began: last.began, refused: true})
	}
	return response, nil
}

type follower fenced

// RoundTrip implements http.RoundTripper.
func (f follower) RoundTrip(request *http.Request) (*http.Response, error) {
	if last := f.last.Load(); last != nil && writes(request) && (last.refused || time.Since(last.began) > leadsFor) {
		return nil, errFenced
	}
	return f.next.RoundTrip(request)
}

// writes reports whether a request may change something. Reviews are posted but change nothing, and
// a former leader still answers the API server, which needs them.
func writes(request *http.Request) bool {
	path := request.URL.Path
	review := strings.HasPrefix(path, "/apis/authorization.k8s.io/") || strings.HasPrefix(path, "/apis/authentication.k8s.io/")
	return request.Method != http.MethodGet && !review
}

// renews reports whether a request renews the leader Lease. A leader renews it within seconds of
// creating it.
func renews(request *http.Request) bool {
	path := request.URL.Path
	return request.Method == http.MethodPut && strings.HasPrefix(path, "/apis/coordination.k8s.io/") && strings.HasSuffix(path, "/leases/"+LeaderLease)
}
