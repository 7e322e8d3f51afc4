package surge

import (
	"cmp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// availableBut counts the available pods of the Deployment other than one that
// will stay: those of a ReplicaSet up to what it wants, because it is about to
// remove the rest, and those that are detached and not replaced yet.
func (p *pass) availableBut(one *corev1.Pod) int32 {
	return p.countBut(one, p.available)
}

// covered tells whether enough other pods are ready, if not yet available, for a
// budget to let a detached pod be evicted. To give it back could cost both: it is
// evicted while its ReplicaSet removes the one that is ready in its place.
func (p *pass) covered(d detachedPod) bool {
	ready := func(pod *corev1.Pod) bool {
		_, is := readySince(pod)
		return is
	}
	return p.countBut(d.pod, ready) >= min(d.record.Need, p.wantedFor(d))
}

func (p *pass) countBut(one *corev1.Pod, serves func(*corev1.Pod) bool) int32 {
	var available int32
	owned := map[types.UID]int32{}
	for _, pod := range p.Pods {
		if pod.UID == one.UID || p.leaving[pod.UID] || !serves(pod) {
			continue
		}
		if record, detached := recordOf(pod); detached && !(detachedPod{pod, record}).returned() {
			available++
		} else if detached {
			owned[record.ReplicaSet.UID]++
		} else if owner := podclass.Owner(pod); owner != nil {
			owned[owner.UID]++
		}
	}
	for uid, pods := range owned {
		if set := p.sets[uid]; set != nil {
			available += min(pods, wantedBy(set))
		}
	}
	return available
}

// released means that the ReplicaSet knows that the pod is not its own any more.
// Before that it may take another one for one too many.
func released(d detachedPod) bool {
	owner := podclass.Owner(d.pod)
	return owner == nil || owner.UID != d.record.ReplicaSet.UID
}

// available is what the Deployment controller calls so: ready for
// minReadySeconds. It looks again when time alone will make the pod available.
func (p *pass) available(pod *corev1.Pod) bool {
	ready, is := readySince(pod)
	if !is || p.Deployment == nil || p.Deployment.Spec.MinReadySeconds == 0 {
		return is
	}
	since := ready.Add(time.Duration(p.Deployment.Spec.MinReadySeconds) * time.Second)
	p.lookAgain(since.Sub(p.Now))
	return !since.After(p.Now)
}

// readySince is since when a pod serves, if it does.
func readySince(pod *corev1.Pod) (since time.Time, is bool) {
	if !active(pod) || pod.Status.Phase != corev1.PodRunning {
		return time.Time{}, false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

// active is what a ReplicaSet counts.
func active(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !podclass.Terminal(pod)
}

// ownedBy are the active pods that a ReplicaSet counts as its own.
func (p *pass) ownedBy(set *appsv1.ReplicaSet) []*corev1.Pod {
	var owned []*corev1.Pod
	for _, pod := range p.Pods {
		owner := podclass.Owner(pod)
		if owner == nil || owner.UID != set.UID || !active(pod) {
			continue
		}
		// One that was detached a moment ago may not have been released yet.
		if pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] != detachedHash {
			owned = append(owned, pod)
		}
	}
	return owned
}

// wantedBy is how many pods a ReplicaSet wants; 1 if it does not say.
func wantedBy(set *appsv1.ReplicaSet) int32 {
	if set.Spec.Replicas == nil {
		return 1
	}
	return *set.Spec.Replicas
}

// wantedFor is how many pods there are to be of a detached pod's application.
func (p *pass) wantedFor(d detachedPod) int32 {
	if p.Deployment == nil {
		return wantedBy(p.home(d))
	}
	return replicas(p.Deployment)
}

// newest sorts the pod that was created last first.
func newest(a, b *corev1.Pod) int {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// patience is how long the Deployment, nil if it is gone, gives a new pod to
// become available.
func patience(d *appsv1.Deployment) time.Duration {
	if d == nil || d.Spec.ProgressDeadlineSeconds == nil {
		return defaultPatience
	}
	return time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second
}
