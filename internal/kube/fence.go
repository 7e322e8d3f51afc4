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
var errFenced = errors.New("this manager has not renewed its lease for 10s, so another one may act by now: nothing is written")

// Fence lets a manager that once led write only while it still does. A process that
// was paused goes on in the middle of whatever it was doing, before it notices that
// its lease is over. A manager that never led writes for its webhooks only.
type Fence struct {
	// renewed is when the last successful renewal began; nil before the first.
	renewed atomic.Pointer[time.Time]
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
	if err == nil && response.StatusCode < http.StatusMultipleChoices {
		f.renewed.Store(&began)
	}
	return response, err
}

// follower is what is behind a fence in another cluster.
type follower fenced

// RoundTrip is an http.RoundTripper.
func (f follower) RoundTrip(request *http.Request) (*http.Response, error) {
	if last := f.renewed.Load(); request.Method != http.MethodGet && last != nil && time.Since(*last) > leadsFor {
		return nil, errFenced
	}
	return f.next.RoundTrip(request)
}

// renews returns true for a renewal of the leader's Lease. A leader renews it within
// seconds of having made it, which looks like making any other Lease.
func renews(request *http.Request) bool {
	path := request.URL.Path
	return request.Method == http.MethodPut && strings.HasPrefix(path, "/apis/coordination.k8s.io/") && strings.HasSuffix(path, "/leases/"+LeaderLease)
}
