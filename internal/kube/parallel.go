package kube

import "golang.org/x/sync/errgroup"

// Parallel calls do for 0 to count-1 in order, at most limit at a time.
func Parallel(limit, count int, do func(i int)) {
	var group errgroup.Group
	group.SetLimit(limit)
	for i := range count {
		group.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = group.Wait()
}
