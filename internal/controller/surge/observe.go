package surge

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	core "ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get

// observe reads a Deployment and everything that belongs to it. Claims that
// cannot be read are an error of their own: only new surges need them.
func (r *reconciler) observe(ctx context.Context, it item) (s core.Snapshot, unread, err error) {
	r.busy.note(it.uid, it)
	if err := r.written.CatchUp(ctx, r.client, it); err != nil {
		return s, nil, err
	}
	s = core.Snapshot{Mode: r.mode, Name: it.Name}
	s.Now, s.ClockSkewed = r.now()
	if s.Deployment, err = r.deployment(ctx, it); err != nil {
		return s, nil, err
	}
	annotated, err := r.annotated(ctx, it)
	if err != nil {
		return s, nil, err
	}
	if s.ReplicaSets, err = r.replicaSets(ctx, it, annotated); err != nil {
		return s, nil, err
	}
	if s.Pods, err = r.pods(ctx, s.ReplicaSets, annotated); err != nil {
		return s, nil, err
	}
	r.busy.observed(it, len(s.Pods))
	if s.Evacuations, err = r.evacuations(ctx, s.Pods); err != nil {
		return s, nil, err
	}
	if len(annotated) > 0 {
		s.Endpoints = r.endpoints.leadingTo(s.Pods)
	}
	begins := core.Begins(s)
	if len(annotated) == 0 && !begins {
		r.busy.forget(it)
	}
	if begins && s.Deployment != nil {
		if s.Claims, unread = r.claims(ctx, s.Deployment); unread != nil {
			s.Unread = unread.Error()
		}
	}
	return s, unread, nil
}

// decideAlone decides about an evacuation that came before its pod's Deployment
// was seen, or whose pod has none. The API server has the last word on that.
func (r *reconciler) decideAlone(ctx context.Context, it item) (core.Decision, error) {
	e := &v1alpha1.Evacuation{}
	if err := r.client.Get(ctx, it.NamespacedName, e); err != nil {
		return core.Decision{}, client.IgnoreNotFound(err)
	}
	seen, err := deploymentOfEvacuation(ctx, r.client, e)
	if err != nil {
		return core.Decision{}, err
	}
	if seen.uid != "" {
		r.wake(seen)
		return core.Decision{}, nil
	}
	exists, err := deploymentOfEvacuation(ctx, r.live, e)
	if err != nil {
		return core.Decision{}, err
	}
	if exists.uid != "" {
		return core.Decision{RequeueAfter: staleRetry}, nil
	}
	now, _ := r.now()
	return core.DecideAlone(now, e), nil
}

// deploymentOfEvacuation is without a UID if the pod is gone or has none.
func deploymentOfEvacuation(ctx context.Context, reader client.Reader, e *v1alpha1.Evacuation) (item, error) {
	pod := &corev1.Pod{}
	if err := reader.Get(ctx, podOf(e), pod); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return item{}, nil
		}
		return item{}, fmt.Errorf("get pod %s: %w", e.Spec.PodRef.Name, err)
	}
	return deploymentOf(ctx, reader, pod)
}

func podOf(e *v1alpha1.Evacuation) types.NamespacedName {
	return types.NamespacedName{Namespace: e.Namespace, Name: e.Spec.PodRef.Name}
}

// deploymentOf returns the Deployment that a pod belongs to or was detached from.
func deploymentOf(ctx context.Context, reader client.Reader, pod *corev1.Pod) (item, error) {
	if named, ok := core.DeploymentOf(pod); ok {
		return itemOf(pod.Namespace, named), nil
	}
	deployment, err := kube.DeploymentOf(ctx, reader, pod)
	if err != nil || deployment == nil {
		return item{}, err
	}
	return item{client.ObjectKeyFromObject(deployment), deployment.UID}, nil
}

func itemOf(namespace string, named core.Reference) item {
	return item{types.NamespacedName{Namespace: namespace, Name: named.Name}, named.UID}
}

// deployment is nil if it is gone; one that came again under its name is another.
func (r *reconciler) deployment(ctx context.Context, it item) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	if err := r.client.Get(ctx, it.NamespacedName, deployment); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("get the Deployment: %w", err)
	}
	if deployment.UID != it.uid {
		return nil, nil
	}
	return deployment, nil
}

// annotated returns the pods that carry an annotation of ours for the Deployment.
func (r *reconciler) annotated(ctx context.Context, it item) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	err := r.client.List(ctx, list, client.InNamespace(it.Namespace), client.MatchingFields{kube.PodSurgeField: string(it.uid)},
		client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		return nil, fmt.Errorf("list surging pods: %w", err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if named, _ := core.DeploymentOf(&list.Items[i]); named.UID == it.uid {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

// replicaSets returns the Deployment's, and those that its detached pods came from
// even if it has lost them.
func (r *reconciler) replicaSets(ctx context.Context, it item, detached []*corev1.Pod) ([]*appsv1.ReplicaSet, error) {
	list := &appsv1.ReplicaSetList{}
	err := r.client.List(ctx, list, client.InNamespace(it.Namespace), client.MatchingFields{kube.OwnerField: string(it.uid)},
		client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		return nil, fmt.Errorf("list ReplicaSets: %w", err)
	}
	var sets []*appsv1.ReplicaSet
	known := map[types.UID]bool{}
	for i := range list.Items {
		sets, known[list.Items[i].UID] = append(sets, &list.Items[i]), true
	}
	for _, pod := range detached {
		home, ok := core.Home(pod)
		if !ok || known[home.UID] {
			continue
		}
		known[home.UID] = true
		set := &appsv1.ReplicaSet{}
		err := r.client.Get(ctx, types.NamespacedName{Namespace: it.Namespace, Name: home.Name}, set)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get ReplicaSet %s: %w", home.Name, err)
		}
		if set.UID == home.UID {
			sets = append(sets, set)
		}
	}
	for _, set := range sets {
		r.busy.note(set.UID, it)
	}
	return sets, nil
}

// pods returns those of the ReplicaSets, and those with an annotation of ours.
func (r *reconciler) pods(ctx context.Context, sets []*appsv1.ReplicaSet, annotated []*corev1.Pod) ([]*corev1.Pod, error) {
	pods := annotated
	known := map[types.UID]bool{}
	for _, pod := range annotated {
		known[pod.UID] = true
	}
	for _, set := range sets {
		list := &corev1.PodList{}
		err := r.client.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingFields{kube.OwnerField: string(set.UID)},
			client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
		if err != nil {
			return nil, fmt.Errorf("list the pods of ReplicaSet %s: %w", set.Name, err)
		}
		for i := range list.Items {
			if pod := &list.Items[i]; !known[pod.UID] {
				pods, known[pod.UID] = append(pods, pod), true
			}
		}
	}
	return pods, nil
}

func (r *reconciler) evacuations(ctx context.Context, pods []*corev1.Pod) ([]*v1alpha1.Evacuation, error) {
	var evacuations []*v1alpha1.Evacuation
	for _, pod := range pods {
		e := &v1alpha1.Evacuation{}
		key := types.NamespacedName{Namespace: pod.Namespace, Name: evacuation.Name(pod)}
		if err := r.client.Get(ctx, key, e, client.UnsafeDisableDeepCopy); err != nil {
			if client.IgnoreNotFound(err) == nil {
				continue
			}
			return nil, fmt.Errorf("get the evacuation of pod %s: %w", pod.Name, err)
		}
		if e.Spec.PodRef.UID == pod.UID {
			evacuations = append(evacuations, e)
		}
	}
	return evacuations, nil
}

// claims reads the claims that the pods of a Deployment share. They are not
// cached: few Deployments that surge have any. One that does not exist holds
// nobody back here.
func (r *reconciler) claims(ctx context.Context, d *appsv1.Deployment) ([]*corev1.PersistentVolumeClaim, error) {
	var claims []*corev1.PersistentVolumeClaim
	for _, volume := range d.Spec.Template.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		key := types.NamespacedName{Namespace: d.Namespace, Name: volume.PersistentVolumeClaim.ClaimName}
		if err := r.live.Get(ctx, key, claim); err != nil {
			if client.IgnoreNotFound(err) == nil {
				continue
			}
			return nil, fmt.Errorf("get volume claim %s: %w", key.Name, err)
		}
		claims = append(claims, claim)
	}
	return claims, nil
}
