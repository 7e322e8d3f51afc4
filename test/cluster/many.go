package cluster

import (
	"sync"
	"testing"
)

// atOnce is how much Each does at the same time.
const atOnce = 32

// Each does something for every number below count, many at a time. All of it is done, or
// tried, when it returns; what goes wrong first ends the test.
func Each(t testing.TB, count int, do func(n int) error) {
	t.Helper()
	var all sync.WaitGroup
	slots, failures := make(chan struct{}, atOnce), make(chan error, count)
	for n := range count {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			failures <- do(n)
		})
	}
	all.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			t.Fatal(err)
		}
	}
}
