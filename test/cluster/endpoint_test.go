package cluster_test

import (
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
)

// The shortest moment without a ready endpoint is seen.
func TestEveryDropOfAServiceIsSeen(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		moment []discoveryv1.Endpoint
		least  int
	}{
		"another one":        {[]discoveryv1.Endpoint{address("10.0.0.2", nil)}, 1},
		"one more":           {[]discoveryv1.Endpoint{address("10.0.0.1", new(true)), address("10.0.0.2", new(true))}, 1},
		"none":               {nil, 0},
		"one that is not":    {[]discoveryv1.Endpoint{address("10.0.0.1", new(false))}, 0},
		"the same one twice": {[]discoveryv1.Endpoint{address("10.0.0.1", nil), address("10.0.0.1", nil)}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
			namespace := c.Namespace(t)
			usual := []discoveryv1.Endpoint{address("10.0.0.1", new(true))}
			slice := &discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: namespace, Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"},
				},
				AddressType: discoveryv1.AddressTypeIPv4,
				Endpoints:   usual,
			}
			if err := c.Client.Create(t.Context(), slice); err != nil {
				t.Fatal(err)
			}
			endpoints := c.WatchEndpoints(t, client.ObjectKey{Namespace: namespace, Name: "web"})
			for _, state := range [][]discoveryv1.Endpoint{test.moment, usual} {
				slice.Endpoints = state
				if err := c.Client.Update(t.Context(), slice); err != nil {
					t.Fatal(err)
				}
			}

			least, history := endpoints.Stop(t)

			if states := strings.Count(history, "\n") + 1; least != test.least || states != 3 {
				t.Errorf("%d ready endpoints at the least in %d states, want %d in 3:\n%s", least, states, test.least, history)
			}
		})
	}
}

func address(ip string, ready *bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
}
