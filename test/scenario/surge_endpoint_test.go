package scenario

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
)

// A replacement that is ready takes no requests before its Service leads to it. The pod
// that is to leave serves on until then, and a moment longer. The EndpointSlice of this
// Service is in our hands: the control plane lags as far behind as we like.
func TestLongAPodLeavesWhenItsServiceLeadsToTheReplacement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes, letNew := w.oldAndNew()
	w.serve(app{name: "web", replicas: 1})
	pod := w.thePod("web")
	w.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "slow"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	slice := w.slowSlice(pod)

	letNew()
	w.maintain("upgrade", v1alpha1.StageDrain, nodes[:1])
	w.eventually("what "+pod.Name+" waits for", func() (bool, any) {
		for _, e := range w.evacuations() {
			if contains(e.Status.Message, fmt.Sprintf("is ready, but Service slow does not lead to it yet. Look at: kubectl -n %s get endpointslices -l kubernetes.io/service-name=slow", w.ns)) {
				return true, nil
			}
		}
		return false, w.evacuations()
	})

	var newcomer *corev1.Pod
	w.awaitPods("a replacement", func(pods []corev1.Pod) bool {
		for i := range pods {
			if pods[i].UID != pod.UID {
				newcomer = &pods[i]
			}
		}
		return newcomer != nil && len(pods) == 2
	})
	slice.Endpoints = append(slice.Endpoints, endpointOf(newcomer))
	w.must("lead to the replacement", w.client.Update(w.ctx, slice))
	led := time.Now()
	w.awaitGone(pod.Name)
	if after := time.Since(led); after < time.Second {
		t.Errorf("%s left %s after the Service led to its replacement, want at least a second", pod.Name, after)
	}
	w.awaitDrained("upgrade")
}

// slowSlice is the EndpointSlice of Service slow as the control plane would make it.
func (w *world) slowSlice(pod *corev1.Pod) *discoveryv1.EndpointSlice {
	w.t.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: w.ns, Name: "slow-x", Labels: map[string]string{discoveryv1.LabelServiceName: "slow"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{endpointOf(pod)},
	}
	for key, value := range kube.OwnSlices {
		slice.Labels[key] = value
	}
	w.create(slice)
	return slice
}

func endpointOf(pod *corev1.Pod) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses: []string{pod.Status.PodIP}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
}
