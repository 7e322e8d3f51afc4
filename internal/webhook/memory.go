package webhook

import (
	"hash/maphash"
	"sync"
	"time"
)

// rememberedAtMost bounds how much a memory holds, whoever fills it.
const rememberedAtMost = 50_000

// memory is what is known for a while of those who call us. It takes a few dozen
// bytes for each key, however long the key is, and never fails: what does not fit
// in is not remembered.
type memory[K comparable, V any] struct {
	// lasts is how long something is remembered.
	lasts time.Duration
	seed  maphash.Seed

	mu    sync.Mutex
	known map[uint64]memo[V]
	// swept is when what is too old was last dropped.
	swept time.Time
}

type memo[V any] struct {
	value V
	since time.Time
}

func newMemory[K comparable, V any](lasts time.Duration) *memory[K, V] {
	return &memory[K, V]{lasts: lasts, seed: maphash.MakeSeed(), known: map[uint64]memo[V]{}}
}

// recall returns what is remembered of the key; its zero value if nothing is.
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

// note remembers a value from now on.
func (m *memory[K, V]) note(key K, value V, now time.Time) {
	hash := maphash.Comparable(m.seed, key)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(hash, memo[V]{value, now})
}

// first returns true if nothing was remembered of the key, and remembers the value:
// of several who ask at once one is the first. A memory that is full knows nobody.
func (m *memory[K, V]) first(key K, value V, now time.Time) bool {
	hash := maphash.Comparable(m.seed, key)
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, known := m.known[hash]; known && now.Sub(last.since) < m.lasts {
		return false
	}
	return m.keep(hash, memo[V]{value, now})
}

// forget drops what is remembered of the key.
func (m *memory[K, V]) forget(key K) {
	hash := maphash.Comparable(m.seed, key)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, hash)
}

// keep returns false if there is no room. It looks for room once a minute.
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
