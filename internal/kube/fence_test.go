package kube

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// server answers every request with a status.
type server int

func (s server) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(s), Body: http.NoBody}, nil
}

const (
	lease  = "https://api/apis/coordination.k8s.io/v1/namespaces/ebbtide-system/leases/ebbtide.dev"
	mutex  = "https://api/apis/coordination.k8s.io/v1/namespaces/ebbtide-system/leases/drain-lock-mutex"
	review = "https://api/apis/authorization.k8s.io/v1/subjectaccessreviews"
	evict  = "https://api/api/v1/namespaces/shop/pods/web/eviction"
)

func TestAFormerLeaderWritesNothing(t *testing.T) {
	type call struct{ method, url string }
	renewal, eviction := call{http.MethodPut, lease}, call{http.MethodPost, evict}
	for name, test := range map[string]struct {
		server server
		first  call
		after  time.Duration
		then   call
		fenced bool
	}{
		"renewed just now":                    {200, renewal, 9 * time.Second, eviction, false},
		"renewed long ago":                    {200, renewal, 11 * time.Second, eviction, true},
		"never led, and made the mutex":       {201, call{http.MethodPost, lease[:len(lease)-len("/ebbtide.dev")]}, time.Minute, eviction, false},
		"makes the mutex again":               {200, renewal, time.Minute, call{http.MethodPost, lease[:len(lease)-len("/ebbtide.dev")]}, true},
		"reads":                               {200, renewal, time.Minute, call{http.MethodGet, evict}, false},
		"asks what a user may do":             {200, renewal, time.Minute, call{http.MethodPost, review}, false},
		"has an object that is called review": {200, renewal, time.Minute, call{http.MethodPost, "https://api/apis/example.com/v1/subjectaccessreviews"}, true},
		"asks for its lease again":            {200, renewal, time.Minute, renewal, false},
		"wants the mutex of drains":           {200, renewal, time.Minute, call{http.MethodPut, mutex}, true},
		"never led":                           {200, call{http.MethodGet, lease}, time.Minute, eviction, false},
		"never got the lease":                 {409, renewal, time.Minute, eviction, false},
		"has an object that is called leases": {200, call{http.MethodPut, "https://api/api/v1/leases"}, time.Minute, eviction, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := &rest.Config{}
				new(Fence).Guard(config)
				through := config.WrapTransport(test.server)
				if err := send(t, through, test.first.method, test.first.url); err != nil {
					t.Fatal(err)
				}
				time.Sleep(test.after)
				if err := send(t, through, test.then.method, test.then.url); errors.Is(err, errFenced) != test.fenced {
					t.Errorf("error %v, want it fenced: %v", err, test.fenced)
				}
			})
		})
	}
}

func send(t *testing.T, through http.RoundTripper, method, url string) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := through.RoundTrip(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// What a manager does in remote clusters ends with its lease as well, and no remote
// cluster renews it.
func TestAFormerLeaderWritesNothingElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fence Fence
		here, there, unfenced := &rest.Config{}, &rest.Config{}, &rest.Config{}
		fence.Guard(here)
		fence.Follow(there)
		(*Fence)(nil).Follow(unfenced)
		if unfenced.WrapTransport != nil {
			t.Error("a fence that is nil is put up")
		}
		remote := there.WrapTransport(server(http.StatusOK))
		if err := send(t, here.WrapTransport(server(http.StatusOK)), http.MethodPut, lease); err != nil {
			t.Fatal(err)
		}
		time.Sleep(9 * time.Second)
		if err := send(t, remote, http.MethodPost, evict); err != nil {
			t.Errorf("error %v from a leader, want none", err)
		}
		if err := send(t, remote, http.MethodPut, lease); err != nil {
			t.Errorf("error %v from a leader, want none", err)
		}
		time.Sleep(2 * time.Second)
		for method, fenced := range map[string]bool{http.MethodGet: false, http.MethodPost: true, http.MethodPut: true} {
			if err := send(t, remote, method, lease); errors.Is(err, errFenced) != fenced {
				t.Errorf("%s: error %v, want it fenced: %v", method, err, fenced)
			}
		}
	})
}

// Somebody else has written the lease, or deleted it. Who led may have it back, and
// writes nothing until it has; an API server that fails says nothing about the lease.
func TestALeaseThatWasTakenAwayEndsTheWrites(t *testing.T) {
	for name, test := range map[string]struct {
		answer server
		fenced bool
	}{
		"written":  {http.StatusConflict, true},
		"deleted":  {http.StatusNotFound, true},
		"no quota": {http.StatusTooManyRequests, false},
		"failing":  {http.StatusInternalServerError, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { takenAway(t, test.answer, test.fenced) })
		})
	}
}

func takenAway(t *testing.T, answer server, fenced bool) {
	config := &rest.Config{}
	new(Fence).Guard(config)
	for i, step := range []struct {
		renewal server
		fenced  bool
	}{
		{answer, false}, // It never led.
		{http.StatusOK, false},
		{answer, fenced},
		{http.StatusOK, false}, // It has the lease back.
	} {
		time.Sleep(2 * time.Second)
		if err := send(t, config.WrapTransport(step.renewal), http.MethodPut, lease); err != nil {
			t.Fatal(err)
		}
		err := send(t, config.WrapTransport(server(http.StatusCreated)), http.MethodPost, evict)
		if errors.Is(err, errFenced) != step.fenced {
			t.Errorf("after renewal %d, answered %d: error %v, want it fenced: %v", i, step.renewal, err, step.fenced)
		}
	}
}

// A renewal counts from its beginning: the answer may have been long on its way.
func TestAnAnswerThatComesLateDoesNotProlongALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := &rest.Config{}
		new(Fence).Guard(config)
		slow := config.WrapTransport(late{8 * time.Second})
		if err := send(t, slow, http.MethodPut, lease); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if err := send(t, slow, http.MethodPost, evict); !errors.Is(err, errFenced) {
			t.Errorf("error %v, want it fenced", err)
		}
	})
}

// late answers after a while.
type late struct{ after time.Duration }

func (l late) RoundTrip(*http.Request) (*http.Response, error) {
	time.Sleep(l.after)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}
