package eviction

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// claim is what one owner wants.
type claim struct {
	// pods are its candidates, by their keys in the dispatcher.
	pods  map[types.NamespacedName]*candidate
	grace *int64
}

// candidate is a pod that somebody wants to be evicted, or wanted until now.
type candidate struct {
	item item
	name types.NamespacedName
	uid  types.UID
	// owners want it, in the order in which they came. The rest never changes.
	owners []types.NamespacedName
}

// claim notes what an owner wants and returns the items of pods that were not
// wanted before or are not any more.
func (q *Queue) claim(owner types.NamespacedName, pods []*corev1.Pod, grace *int64) []item {
	var changed []item
	before := q.claims[owner]
	now := claim{pods: make(map[types.NamespacedName]*candidate, len(pods)), grace: grace}
	for _, pod := range pods {
		key := types.NamespacedName{Namespace: pod.Namespace, Name: evacuation.Name(pod)}
		c := before.pods[key]
		if c == nil {
			c = q.join(owner, key, pod)
			changed = append(changed, c.item)
		}
		now.pods[key] = c
	}
	for key, c := range before.pods {
		if now.pods[key] == nil {
			c.owners = slices.DeleteFunc(c.owners, func(o types.NamespacedName) bool { return o == owner })
			if len(c.owners) == 0 {
				changed = append(changed, c.item)
			}
		}
	}
	if len(now.pods) == 0 {
		delete(q.claims, owner)
	} else {
		q.claims[owner] = now
	}
	return changed
}

// join makes the pod a candidate of the owner.
func (q *Queue) join(owner, key types.NamespacedName, pod *corev1.Pod) *candidate {
	c := q.candidates[key]
	if c == nil {
		c = &candidate{
			item: item{pod: key, payer: owner},
			name: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name},
			uid:  pod.UID,
		}
		q.candidates[key] = c
	}
	c.owners = append(c.owners, owner)
	return c
}

// candidate returns the pod that the item is for and the grace period that its
// first owner wants; nil if nobody wants the pod. Such a pod leaves the dispatcher here,
// where nobody else works on it.
func (q *Queue) candidate(t item) (*candidate, *int64) {
	q.mu.Lock()
	c := q.candidates[t.pod]
	if c == nil || c.item != t {
		// It has left, and may have come back in the name of another owner.
		q.mu.Unlock()
		return nil, nil
	}
	if len(c.owners) > 0 {
		defer q.mu.Unlock()
		return c, q.claims[c.owners[0]].grace
	}
	delete(q.candidates, t.pod)
	next := q.caller.forget(q.caller.key(t.pod))
	q.mu.Unlock()
	wake(next)
	return nil, nil
}
