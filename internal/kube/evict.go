package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	"k8s.io/client-go/rest"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Evictor evicts pods through the eviction subresource.
type Evictor struct {
	client      rest.Interface
	annotations map[string]string
}

// NewEvictor returns an Evictor for the cluster of the config, on an HTTP client that bounds
// requests. It fails if the config is invalid.
func NewEvictor(config *rest.Config, httpClient *http.Client) (*Evictor, error) {
	policy, err := policyclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make a client that evicts: %w", err)
	}
	return &Evictor{client: policy.RESTClient()}, nil
}

// ForMachines returns an Evictor whose evictions are marked as made for Machines, so that they wait
// for evacuators.
func (e *Evictor) ForMachines() *Evictor {
	return &Evictor{client: e.client, annotations: map[string]string{v1alpha1.MachineDrainAnnotation: "true"}}
}

// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create

// Evict asks the API server once to evict this very pod, by UID, and returns
// its answer. A refusal is an answer and no error; so is no answer at all, which
// has code 0. Grace overrides the pod's grace period; nil leaves it alone.
//
// The client would wait and ask again on its own whenever the API server says
// when to; it must not, because its caller has other pods to evict meanwhile.
func (e *Evictor) Evict(ctx context.Context, pod *corev1.Pod, grace *int64) metav1.Status {
	eviction := &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Annotations: e.annotations},
		DeleteOptions: &metav1.DeleteOptions{
			Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
			GracePeriodSeconds: grace,
		},
	}
	err := e.client.Post().AbsPath("/api/v1").
		Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").
		MaxRetries(0).Body(eviction).Do(ctx).Error()
	return answer(err)
}

func answer(err error) metav1.Status {
	if err == nil {
		return metav1.Status{Status: metav1.StatusSuccess}
	}
	var refused apierrors.APIStatus
	if errors.As(err, &refused) {
		return refused.Status()
	}
	return metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
}
