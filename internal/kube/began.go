package kube

import (
	"sync"
	"time"
)

// Began remembers when it was first asked. The zero value is ready, and safe for concurrent use.
type Began struct {
	once sync.Once
	at   time.Time
}

// Left returns how much of a time is left that has begun when this was first called.
func (b *Began) Left(now time.Time, of time.Duration) time.Duration {
	b.once.Do(func() { b.at = now })
	return max(of-now.Sub(b.at), 0)
}
