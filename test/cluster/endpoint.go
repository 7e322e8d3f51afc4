package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Endpoints watches where a Service leads: the addresses to which a proxy sends
// new connections, over all of its EndpointSlices.
type Endpoints struct {
	service  client.ObjectKey
	follower *Follower
	slices   map[string]*discoveryv1.EndpointSlice
	least    int
	history  []string
}

// WatchEndpoints begins to watch a Service.
func (c *Cluster) WatchEndpoints(t testing.TB, service client.ObjectKey) *Endpoints {
	t.Helper()
	options := []client.ListOption{
		client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name},
	}
	list := &discoveryv1.EndpointSliceList{}
	if err := c.Client.List(t.Context(), list, options...); err != nil {
		t.Fatalf("list endpoint slices: %v", err)
	}
	e := &Endpoints{service: service, slices: map[string]*discoveryv1.EndpointSlice{}}
	for i := range list.Items {
		e.slices[list.Items[i].Name] = &list.Items[i]
	}
	e.least = len(e.ready())
	e.note()
	e.follower = c.Follow(t, list, e.see, options...)
	return e
}

// Stop ends the watch and returns the lowest number of ready endpoints that the
// Service had at any time since WatchEndpoints, and all its states in order.
func (e *Endpoints) Stop(t testing.TB) (least int, history string) {
	t.Helper()
	e.follower.Stop(t)
	return e.least, strings.Join(e.history, "\n")
}

// AssertAtLeast ends the watch and fails with the history if the Service ever
// had fewer ready endpoints. It returns the lowest number.
func (e *Endpoints) AssertAtLeast(t testing.TB, floor int) (least int) {
	t.Helper()
	least, history := e.Stop(t)
	if least < floor {
		t.Errorf("Service %s was down to %d ready endpoints, want at least %d at all times:\n%s", e.service, least, floor, history)
	}
	return least
}

func (e *Endpoints) see(kind watch.EventType, object client.Object) {
	slice, ok := object.(*discoveryv1.EndpointSlice)
	switch {
	case !ok:
		return
	case kind == watch.Deleted:
		delete(e.slices, slice.Name)
	default:
		e.slices[slice.Name] = slice
	}
	e.least = min(e.least, len(e.ready()))
	e.note()
}

func (e *Endpoints) note() {
	ready := e.ready()
	e.history = append(e.history, fmt.Sprintf("%s %d ready: %s", time.Now().Format("15:04:05.000"), len(ready), strings.Join(ready, ", ")))
}

// ready are the addresses that are ready and who has them.
func (e *Endpoints) ready() []string {
	var ready []string
	for _, slice := range e.slices {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready != nil && !*endpoint.Conditions.Ready {
				continue
			}
			who := strings.Join(endpoint.Addresses, "/")
			if endpoint.TargetRef != nil {
				who += " " + endpoint.TargetRef.Name
			}
			ready = append(ready, who)
		}
	}
	slices.Sort(ready)
	return slices.Compact(ready)
}
