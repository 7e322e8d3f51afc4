package cluster

import (
	"context"
	"fmt"
	"math"
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
	list := &discoveryv1.EndpointSliceList{}
	if err := c.Client.List(t.Context(), list, slicesOf(service)...); err != nil {
		t.Fatalf("list endpoint slices: %v", err)
	}
	e := &Endpoints{service: service, slices: map[string]*discoveryv1.EndpointSlice{}, least: math.MaxInt}
	for i := range list.Items {
		e.slices[list.Items[i].Name] = &list.Items[i]
	}
	e.note()
	e.follower = c.Follow(t, list, e.see, slicesOf(service)...)
	return e
}

// ReadyEndpoints is how many ready endpoints a Service has now.
func (c *Cluster) ReadyEndpoints(ctx context.Context, service client.ObjectKey) (int, error) {
	list := &discoveryv1.EndpointSliceList{}
	err := c.Client.List(ctx, list, slicesOf(service)...)
	var all []string
	for i := range list.Items {
		all = append(all, readyIn(&list.Items[i])...)
	}
	return len(distinct(all)), err
}

func slicesOf(service client.ObjectKey) []client.ListOption {
	return []client.ListOption{
		client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name},
	}
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
	e.note()
}

func (e *Endpoints) note() {
	var all []string
	for _, slice := range e.slices {
		all = append(all, readyIn(slice)...)
	}
	ready := distinct(all)
	e.least = min(e.least, len(ready))
	e.history = append(e.history, fmt.Sprintf("%s %d ready: %s", time.Now().Format("15:04:05.000"), len(ready), strings.Join(ready, ", ")))
}

// readyIn are the addresses that are ready and who has them.
func readyIn(slice *discoveryv1.EndpointSlice) []string {
	var ready []string
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
	return ready
}

// distinct counts an address once that two slices hold, as a proxy does.
func distinct(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}
