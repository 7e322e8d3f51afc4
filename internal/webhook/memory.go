package webhook

import (
	"hash/maphash"
	"sync"
	"time"
)

// rememberedAtMost bounds the entries of a memory.
const rememberedAtMost = 50_000

// memory is a bounded cache with expiry. It takes a few dozen bytes for each key of any length. A full
// memory ignores new keys, so that made-up ones do not displace others.
type memory[K comparable, V any] struct {
	lasts time.Duration
	seed  maphash.Seed

	mu    sync.Mutex
	known map[uint64]memo[V]
	// swept is the time of the last removal of expired entries.
	swept time.Time
}

type memo[V any] struct {
	value V
	since time.Time
}

func newMemory[K comparable, V any](lasts time.Duration) *memory[K, V] {
	return &memory[K, V]{lasts: lasts, seed: maphash.MakeSeed(), known: map[uint64]memo[V]{}}
}

// recall returns the value of a key, or the zero value.
func (m *memory[K, V]) recall(key K, now time.Time) V {
	hash := maphash.Comparable(m.seed, key)
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, known := m.known[hash]; known && now.Sub(last.since) < m.lasts {
		return last.value
	}
	var nothing V
	return nothing
}

// note sets the value of a key.
func (m *memory[K, V]) note(key K, value V, now time.Time) {
	hash := maphash.Comparable(m.seed, key)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(hash, memo[V]{value, now})
}

// first sets the value of a new key, and reports whether it did.
func (m *memory[K, V]) first(key K, value V, now time.Time) bool {
	hash := maphash.Comparable(m.seed, key)
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, known := m.known[hash]; known && now.Sub(last.since) < m.lasts {
		return false
	}
	return m.keep(hash, memo[V]{value, now})
}

// forget removes a key.
func (m *memory[K, V]) forget(key K) {
	hash := maphash.Comparable(m.seed, key)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, hash)
}

// keep returns false if the memory is full. It removes expired entries once a minute.
func (m *memory[K, V]) keep(hash uint64, latest memo[V]) bool {
	if latest.since.Sub(m.swept) > min(m.lasts, time.Minute) {
		for other, last := range m.known {
			if latest.since.Sub(last.since) >= m.lasts {
				delete(m.known, other)
			}
		}
		m.swept = latest.since
	}
	if _, known := m.known[hash]; !known && len(m.known) >= rememberedAtMost {
		return false
	}
	m.known[hash] = latest
	return true
}
