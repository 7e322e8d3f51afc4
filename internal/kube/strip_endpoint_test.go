package kube_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/kube"
)

// Of an EndpointSlice the pods are kept to which it sends requests. A condition that
// nobody has set is true.
func TestStripEndpointSliceKeepsReadyEndpoints(t *testing.T) {
	t.Parallel()
	endpoint := func(kind, pod string, ready *bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{
			Addresses: []string{"192.0.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ready}, NodeName: new("node-1"),
			TargetRef: &corev1.ObjectReference{Kind: kind, Namespace: "shop", Name: pod, UID: types.UID("uid-" + pod)},
		}
	}
	full := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-x", UID: "uid", ResourceVersion: "7", Annotations: map[string]string{"example.com/a": "b"},
			Labels: map[string]string{discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"},
		},
		AddressType: discoveryv1.AddressTypeIPv6, Ports: []discoveryv1.EndpointPort{{Name: new("http")}},
		Endpoints: []discoveryv1.Endpoint{
			endpoint("Pod", "web-0", new(true)), endpoint("Pod", "web-1", new(false)), endpoint("Pod", "web-2", nil),
			endpoint("Node", "web-3", nil),
			{Addresses: []string{"192.0.2.9"}},
		},
	}
	want := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-x", UID: "uid", ResourceVersion: "7", Labels: map[string]string{discoveryv1.LabelServiceName: "web"},
		},
		AddressType: discoveryv1.AddressTypeIPv6,
		Endpoints: []discoveryv1.Endpoint{
			{TargetRef: &corev1.ObjectReference{Name: "web-0", UID: "uid-web-0"}}, {TargetRef: &corev1.ObjectReference{Name: "web-2", UID: "uid-web-2"}},
		},
	}
	if diff := cmp.Diff(want, kube.StripEndpointSlice(full)); diff != "" {
		t.Errorf("cached EndpointSlice (-want +got):\n%s", diff)
	}
}
