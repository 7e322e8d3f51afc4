package webhook

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// callers remembers for a moment which pods those who call the eviction API are
// waiting for. They call by name, and a pod of a StatefulSet that has moved comes
// back under its name. Whoever loses this memory asks for that pod, too.
type callers struct {
	mu      sync.Mutex
	waiting map[caller]waitsFor
	// cleared is when what is too old was last dropped.
	cleared time.Time
}

// caller is a user who wants pods of a name gone.
type caller struct {
	user string
	pod  types.NamespacedName
}

type waitsFor struct {
	pod   types.UID
	since time.Time
}

func newCallers() *callers { return &callers{waiting: map[caller]waitsFor{}} }

// meant returns the pod that the caller has been waiting for; empty if he has
// not called for a while.
func (c *callers) meant(who caller, now time.Time) types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.waiting[who]; now.Sub(last.since) < evacuation.CallerPatience {
		return last.pod
	}
	return ""
}

// wait notes that the caller waits for the pod.
func (c *callers) wait(who caller, pod types.UID, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.cleared) > evacuation.CallerPatience {
		for other, last := range c.waiting {
			if now.Sub(last.since) >= evacuation.CallerPatience {
				delete(c.waiting, other)
			}
		}
		c.cleared = now
	}
	c.waiting[who] = waitsFor{pod, now}
}

// forget drops what the caller was waiting for.
func (c *callers) forget(who caller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, who)
}
