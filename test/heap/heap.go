// Package heap measures by how much the heap of a test grows, for attacks on memory.
package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// Grows returns by how many bytes the heap grows at most while a function runs. No other
// test may run beside it, whose memory would count.
func Grows(t *testing.T, during func()) int64 {
	t.Helper()
	// As much garbage as in a manager, whatever tests have.
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	runtime.GC()
	before := size()
	done, most := make(chan struct{}), make(chan uint64)
	go func() {
		for peak := before; ; peak = max(peak, size()) {
			select {
			case <-done:
				most <- peak
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	during()
	close(done)
	return int64(<-most - before)
}

func size() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
