package surge

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// alone counts detached pods that are not replaced yet. No ReplicaSet has an empty UID.
const alone = types.UID("")

// census counts the serving pods that stay, once per decision.
type census struct {
	sets map[types.UID]*replicaSet
	// of maps each pod to the ReplicaSet that counts it, or to alone.
	of map[types.UID]types.UID
	// pods counts them there, total all that stay.
	pods  map[types.UID]int32
	total int32
}

func (p *pass) countServing(serves func(*corev1.Pod) bool) *census {
	c := &census{sets: p.sets, of: map[types.UID]types.UID{}, pods: map[types.UID]int32{}}
	for _, pod := range p.Pods {
		if p.leaving[pod.UID] || !serves(pod) {
			continue
		}
		if record, detached := p.records[pod.UID]; detached && !(detachedPod{pod, record}).returned() {
			c.add(pod, alone)
		} else if detached {
			c.add(pod, record.ReplicaSet.UID)
		} else if owner := podclass.Owner(pod); owner != nil {
			c.add(pod, owner.UID)
		}
	}
	return c
}

func (c *census) add(pod *corev1.Pod, to types.UID) {
	c.of[pod.UID] = to
	c.pods[to]++
	c.total += c.worth(to)
}

// worth returns how many pods fewer stay without one of these: none if there is a surplus.
func (c *census) worth(at types.UID) int32 {
	if at == alone {
		return 1
	}
	if set := c.sets[at]; set != nil && c.pods[at] <= wantedBy(set.ReplicaSet) {
		return 1
	}
	return 0
}

func (c *census) but(one *corev1.Pod) int32 {
	if at, counted := c.of[one.UID]; counted {
		return c.total - c.worth(at)
	}
	return c.total
}

func (c *census) leave(uid types.UID) {
	if c == nil {
		return
	}
	if at, counted := c.of[uid]; counted {
		c.total -= c.worth(at)
		c.pods[at]--
		delete(c.of, uid)
	}
}

type replicaSet struct {
	*appsv1.ReplicaSet
	owned  []*corev1.Pod
	sorted bool
	// cheapest is the lowest deletion cost of those that are owned, after sort.
	cheapest int32
	// candidate is the first of the owned that may still be chosen to make room.
	candidate int
	// available is the newest available pod, lacking lists the others, after look.
	available *corev1.Pod
	lacking   []*corev1.Pod
	looked    bool
}

// distribute gives each ReplicaSet the pods that it owns.
func (p *pass) distribute() {
	for _, pod := range p.Pods {
		owner := podclass.Owner(pod)
		if owner == nil || !active(pod) {
			continue
		}
		// One that was detached a moment ago may not have been released yet.
		if set := p.sets[owner.UID]; set != nil && pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] != detachedHash {
			set.owned = append(set.owned, pod)
		}
	}
}

// tooMany reports whether the ReplicaSet is about to remove a pod.
func (s *replicaSet) tooMany() bool { return len(s.owned) > int(wantedBy(s.ReplicaSet)) }

func (s *replicaSet) sort() {
	if s.sorted {
		return
	}
	s.sorted = true
	slices.SortFunc(s.owned, newest)
	for n, pod := range s.owned {
		if cost := deletionCost(pod); n == 0 || cost < s.cheapest {
			s.cheapest = cost
		}
	}
}

// look finds out which of the pods of a ReplicaSet are available.
func (p *pass) look(s *replicaSet) {
	if s.looked {
		return
	}
	s.looked = true
	s.sort()
	for _, pod := range s.owned {
		switch after := p.unavailableFor(pod); {
		case after > 0:
			s.lacking = append(s.lacking, pod)
			if after < nobodyKnows {
				p.lookAgain(after)
			}
		case s.available == nil:
			s.available = pod
		}
	}
}
