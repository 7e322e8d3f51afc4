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
	// LeaderLease is the name of the Lease of the leader election.
	LeaderLease = "ebbtide.dev"
	// leadsFor is for how long after the beginning of its last renewal a leader may
	// write. It is the time after which controller-runtime gives the Lease up, a third
	// less than that after which another manager takes it.
	leadsFor = 10 * time.Second
)

// errFenced is what a write of a former leader comes to.
var errFenced = errors.New("this manager has not renewed its lease for 10s, or somebody else wrote it, so another one may act by now: nothing is written")

// Fence lets a manager that once led write only while it still does. A process that
// was paused goes on in the middle of whatever it was doing, before it notices that
// its lease is over, and one whose lease was taken away tries for 10s to have it back. A
// manager that never led writes for its webhooks only.
type Fence struct {
	// last is what is known of the lease; nil before the first renewal.
	last atomic.Pointer[renewal]
}

// renewal is what came of one.
type renewal struct {
	// began is when the last successful one did.
	began time.Time
	// refused is true if the API server has refused a later one, because the lease is
	// gone or somebody else has written it.
	refused bool
}

// Guard has every write by the config go through the fence, and the fence see the
// renewals among them.
func (f *Fence) Guard(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return fenced{f, next} })
}

// Follow has every write by the config of another cluster go through the fence, which
// nothing there renews. A fence that is nil holds nothing back.
func (f *Fence) Follow(config *rest.Config) {
	if f != nil {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return follower{f, next} })
	}
}

// fenced is what is behind a fence.
type fenced struct {
	*Fence
	next http.RoundTripper
}

// RoundTrip is an http.RoundTripper.
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

// follower is what is behind a fence in another cluster.
type follower fenced

// RoundTrip is an http.RoundTripper.
func (f follower) RoundTrip(request *http.Request) (*http.Response, error) {
	if last := f.last.Load(); last != nil && writes(request) && (last.refused || time.Since(last.began) > leadsFor) {
		return nil, errFenced
	}
	return f.next.RoundTrip(request)
}

// writes returns true for what may change something. Reviews are posted, but only ask, and
// a former leader goes on to answer the API server, which asks it to review.
func writes(request *http.Request) bool {
	path := request.URL.Path
	review := strings.HasPrefix(path, "/apis/authorization.k8s.io/") || strings.HasPrefix(path, "/apis/authentication.k8s.io/")
	return request.Method != http.MethodGet && !review
}

// renews returns true for a renewal of the leader's Lease. A leader renews it within
// seconds of having made it, which looks like making any other Lease.
func renews(request *http.Request) bool {
	path := request.URL.Path
	return request.Method == http.MethodPut && strings.HasPrefix(path, "/apis/coordination.k8s.io/") && strings.HasSuffix(path, "/leases/"+LeaderLease)
}
