package nodemaintenance

import (
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

const (
	// firstRefusal and longestRefusal bound the rest of a refused write, which each refusal doubles.
	// A write that a quota or policy forbids rests for firstForbidden.
	firstRefusal, firstForbidden, longestRefusal = time.Second, 8 * time.Second, time.Minute
	maxRefusal                                   = 512 // bytes
)

// These are not writes of a NodeDecision.
const (
	// writeMaintenance is a NodeMaintenance: its finalizer, stage or status.
	writeMaintenance maintenance.WriteKind = "Maintenance"
	// readMaintenance is no write, but rests like one.
	readMaintenance maintenance.WriteKind = "MaintenanceRead"
)

// refusals remembers refused writes, each on its own, so that a write that never succeeds is rare and
// delays no other. A new manager tries every write at once. It is safe for concurrent use.
type refusals struct {
	mu sync.Mutex
	// of is by the node or maintenance that the write belongs to.
	of map[group.Member]map[maintenance.Write]*refusal
	// jitter returns a number from 0 to 1, so that writes that were refused together are not retried
	// together.
	jitter func() float64
}

type refusal struct {
	maintenance.Refusal

	times int
}

func newRefusals() *refusals {
	return &refusals{of: map[group.Member]map[maintenance.Write]*refusal{}, jitter: rand.Float64}
}

// add remembers a refusal and returns the rest of the write.
func (r *refusals) add(now time.Time, owner group.Member, write maintenance.Write, err error) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[owner] == nil {
		r.of[owner] = map[maintenance.Write]*refusal{}
	}
	known := r.of[owner][write]
	if known == nil {
		known = &refusal{Refusal: maintenance.Refusal{Since: now}}
		r.of[owner][write] = known
	}
	first := firstRefusal
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		first = firstForbidden
	}
	rest := min(longestRefusal, first<<min(known.times, 10))
	rest -= time.Duration(r.jitter() * float64(rest) / 4)
	known.times++
	known.Again, known.Message = now.Add(rest), excerpt.Of(err.Error(), maxRefusal)
	return rest
}

func (r *refusals) forget(owner group.Member, write maintenance.Write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of[owner], write)
	if len(r.of[owner]) == 0 {
		delete(r.of, owner)
	}
}

// forgetAll forgets the refusals of a node or maintenance that is gone.
func (r *refusals) forgetAll(owner group.Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, owner)
}

// times returns how often in a row a write was refused.
func (r *refusals) times(owner group.Member, write maintenance.Write) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.of[owner][write]; known != nil {
		return known.times
	}
	return 0
}

// left returns the remaining rest of a write.
func (r *refusals) left(now time.Time, owner group.Member, write maintenance.Write) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.of[owner][write]; known != nil {
		return max(0, known.Again.Sub(now))
	}
	return 0
}

// addOf adds the refusals of a node and its pods to others, and forgets those of pods that are gone.
func (r *refusals) addOf(node string, pods []maintenance.Pod, others map[maintenance.Write]maintenance.Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.of[group.Node(node)]
	if len(known) == 0 {
		return
	}
	exist := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		exist[pod.Object.UID] = true
	}
	maps.DeleteFunc(known, func(write maintenance.Write, _ *refusal) bool { return write.Pod != "" && !exist[write.Pod] })
	for write, one := range known {
		others[write] = one.Refusal
	}
	if len(known) == 0 {
		delete(r.of, group.Node(node))
	}
}
