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

// fenced is what is behind a fence.
type fenced struct {
	*Fence
	next http.RoundTripper
}

// RoundTrip is an http.RoundTripper.
func (f fenced) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet {
		return f.next.RoundTrip(request)
	}
	if isLease(request) {
		began := time.Now()
		response, err := f.next.RoundTrip(request)
		if err == nil && response.StatusCode < http.StatusMultipleChoices {
			f.renewed.Store(&began)
		}
		return response, err
	}
	if last := f.renewed.Load(); last != nil && time.Since(*last) > leadsFor {
		return nil, errFenced
	}
	return f.next.RoundTrip(request)
}

// isLease returns true for the creation of a Lease and for writes to that of the leader.
func isLease(request *http.Request) bool {
	_, after, found := strings.Cut(request.URL.Path, "/leases")
	return found && strings.HasPrefix(request.URL.Path, "/apis/coordination.k8s.io/") && (after == "" || after == "/"+LeaderLease)
}
