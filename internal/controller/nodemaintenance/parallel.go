package nodemaintenance

import "golang.org/x/sync/errgroup"

// parallel calls do for 0 to count-1, in this order, at most limit at a time. It
// returns what each of them returned; a failure stops none of the others.
func parallel(limit, count int, do func(i int) error) []error {
	failures := make([]error, count)
	var group errgroup.Group
	group.SetLimit(limit)
	for i := range count {
		group.Go(func() error {
			failures[i] = do(i)
			return nil
		})
	}
	_ = group.Wait()
	return failures
}
