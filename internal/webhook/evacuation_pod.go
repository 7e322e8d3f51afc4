package webhook

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/core/validate"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch

// registry finds the registered evacuators of a pod.
type registry struct {
	// cached may be stale, live reads from the API server.
	cached, live client.Reader
	surge        surge.Mode
}

// podKey names a pod, and the version that is meant.
type podKey struct {
	types.NamespacedName
	only evacuation.PodVersion
}

// registration is a pod, nil if it does not exist, with its evacuators.
type registration struct {
	pod        *corev1.Pod
	evacuators []v1alpha1.Evacuator
	problems   []podclass.Problem
}

// find reads the pod with this name. It reads from the API server if the cache may be stale: it does
// not have this version of the pod, or the pod terminates, so that another one may have its name.
func (r registry) find(ctx context.Context, key podKey) (registration, error) {
	pod := &corev1.Pod{}
	err := r.cached.Get(ctx, key.NamespacedName, pod, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if client.IgnoreNotFound(err) != nil {
		return registration{}, fmt.Errorf("get pod %s: %w", key.Name, err)
	}
	if err != nil || pod.DeletionTimestamp != nil || !key.only.Of(pod) {
		pod = &corev1.Pod{}
		if err := r.live.Get(ctx, key.NamespacedName, pod); err != nil {
			if client.IgnoreNotFound(err) == nil {
				return registration{}, nil
			}
			return registration{}, fmt.Errorf("get pod %s: %w", key.Name, err)
		}
	}
	return r.registered(ctx, pod)
}

func (r registry) registered(ctx context.Context, pod *corev1.Pod) (registration, error) {
	deployment, err := kube.DeploymentOf(ctx, r.cached, pod)
	if err != nil {
		return registration{}, fmt.Errorf("find the Deployment of pod %s: %w", pod.Name, err)
	}
	found := registration{pod: pod}
	found.evacuators, found.problems = surge.Evacuators(pod, deployment, r.surge)
	return found, nil
}

// of returns the facts to validate an Evacuation of the pod.
func (r registration) of(e *v1alpha1.Evacuation) validate.EvacuationFacts {
	return validate.EvacuationFacts{Object: e, Pod: r.pod, Evacuators: r.evacuators}
}
