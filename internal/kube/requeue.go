package kube

import "time"

// Soonest returns the least of some durations of which 0 means never.
func Soonest(durations ...time.Duration) time.Duration {
	var least time.Duration
	for _, duration := range durations {
		if duration > 0 && (least == 0 || duration < least) {
			least = duration
		}
	}
	return least
}
