package surge

import (
	"cmp"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// availableBut counts the available pods other than one, without those that their ReplicaSet is
// about to remove. It is repeated when time makes one more available.
func (p *pass) availableBut(one *corev1.Pod) int32 {
	if p.available == nil {
		p.available = p.countServing(func(pod *corev1.Pod) bool { return p.unavailableFor(pod) == 0 })
		p.soon = p.availableSoon()
	}
	for len(p.soon) > 0 && p.leaving[p.soon[0].pod.UID] {
		p.soon = p.soon[1:]
	}
	for _, next := range p.soon {
		if next.pod.UID != one.UID && !p.leaving[next.pod.UID] {
			p.lookAgain(next.after)
			break
		}
	}
	return p.available.but(one)
}

// covered reports whether enough other pods are ready for the eviction of a detached pod. Giving it
// back could cost a ready pod as well.
func (p *pass) covered(d detachedPod) bool {
	if p.ready == nil {
		p.ready = p.countServing(func(pod *corev1.Pod) bool { return p.unavailableFor(pod) < notReady })
	}
	return p.ready.but(d.pod) >= min(d.record.Need, p.wantedFor(d))
}

// soonAvailable is a ready pod that becomes available by time alone.
type soonAvailable struct {
	pod   *corev1.Pod
	after time.Duration
}

func (p *pass) availableSoon() []soonAvailable {
	var soon []soonAvailable
	for _, pod := range p.Pods {
		if after := p.unavailableFor(pod); after > 0 && after < nobodyKnows {
			soon = append(soon, soonAvailable{pod, after})
		}
	}
	slices.SortStableFunc(soon, func(a, b soonAvailable) int { return cmp.Compare(a.after, b.after) })
	return soon
}

// released reports whether the ReplicaSet has released the pod, so that it counts correctly.
func released(d detachedPod) bool {
	owner := podclass.Owner(d.pod)
	return owner == nil || owner.UID != d.record.ReplicaSet.UID
}

// notReady stands for the unknown delay until an unready pod is available.
const notReady = time.Duration(math.MaxInt64)

// nobodyKnows stands for an unknown delay of a ready pod, by clock skew or a missing Service.
const nobodyKnows = notReady - 1

// unavailableFor returns the delay until a pod is available and reached by the same Services.
func (p *pass) unavailableFor(pod *corev1.Pod) time.Duration {
	left := p.untilAvailable(pod)
	if left >= nobodyKnows {
		return left
	}
	after, _ := p.reach(pod)
	return max(left, after)
}

// untilAvailable returns the delay until a pod is available, regardless of Services.
func (p *pass) untilAvailable(pod *corev1.Pod) time.Duration {
	ready, is := readySince(pod)
	switch {
	case !is:
		return notReady
	case p.Deployment == nil || p.Deployment.Spec.MinReadySeconds == 0:
		return 0
	case p.ClockSkewed:
		return nobodyKnows
	}
	since := ready.Add(time.Duration(p.Deployment.Spec.MinReadySeconds) * time.Second)
	return max(since.Sub(p.Now), 0)
}

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

// active returns what a ReplicaSet counts.
func active(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !podclass.Terminal(pod)
}

func wantedBy(set *appsv1.ReplicaSet) int32 {
	return ptr.Deref(set.Spec.Replicas, 1)
}

// wantedFor returns how many pods there are to be of a detached pod's application.
func (p *pass) wantedFor(d detachedPod) int32 {
	if p.Deployment == nil {
		return wantedBy(p.home(d).ReplicaSet)
	}
	return replicas(p.Deployment)
}

func newest(a, b *corev1.Pod) int {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// patience returns how long the Deployment, if any, waits for a new pod.
func patience(d *appsv1.Deployment) time.Duration {
	if d == nil || d.Spec.ProgressDeadlineSeconds == nil {
		return defaultPatience
	}
	return time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second
}
