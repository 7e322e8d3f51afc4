package kube

import (
	"sync"
	"time"
)

// Began records the time of its first use. The zero value is ready, and safe for concurrent use.
type Began struct {
	once sync.Once
	at   time.Time
}

// Left returns the rest of a duration that started with the first call.
func (b *Began) Left(now time.Time, of time.Duration) time.Duration {
	b.once.Do(func() { b.at = now })
	return max(of-now.Sub(b.at), 0)
}
