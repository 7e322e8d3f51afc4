package kube

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// OwnSlices selects the EndpointSlices that the control plane maintains for Services with a
// selector. The pods of others are unknown.
var OwnSlices = map[string]string{discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}

// StripEndpointSlice returns the parts of an EndpointSlice that decisions read. The result shares
// them with the argument.
func StripEndpointSlice(slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	stripped := &discoveryv1.EndpointSlice{AddressType: slice.AddressType}
	stripped.Namespace, stripped.Name = slice.Namespace, slice.Name
	stripped.UID, stripped.ResourceVersion = slice.UID, slice.ResourceVersion
	stripped.Labels = map[string]string{discoveryv1.LabelServiceName: slice.Labels[discoveryv1.LabelServiceName]}
	for i := range slice.Endpoints {
		one := &slice.Endpoints[i]
		pod, ready := one.TargetRef, one.Conditions.Ready
		if pod == nil || pod.Kind != "Pod" || ready != nil && !*ready {
			continue
		}
		stripped.Endpoints = append(stripped.Endpoints, discoveryv1.Endpoint{
			TargetRef: &corev1.ObjectReference{Name: pod.Name, UID: pod.UID},
		})
	}
	return stripped
}
