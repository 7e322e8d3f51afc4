package workload

import (
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// HoldOff is the pause after a cluster has exceeded a bound; zero if it has not.
type HoldOff struct {
	// Count counts the breaches in a row.
	Count int32
	// End is the earliest time of the next attempt.
	End time.Time
}

// mostHolds is the count from which on pauses do not get longer.
const mostHolds = 16

// holdOf returns the HoldOff in the status of a Cluster. A Cluster that was changed since is
// tried at once. A forged status cannot cause a longer pause than we would.
func holdOf(cluster *v1alpha1.Cluster, now time.Time, pace Pace) HoldOff {
	hold := cluster.Status.HoldOff
	if hold == nil || cluster.Status.ObservedGeneration != cluster.Generation {
		return HoldOff{}
	}
	end := hold.EndTime.Time
	if most := now.Add(pace.LongestHold); end.After(most) {
		end = most
	}
	return HoldOff{Count: min(max(hold.BreachCount, 1), mostHolds), End: end}
}

// next returns the HoldOff after one more breach.
func (h HoldOff) next(now time.Time, pace Pace) HoldOff {
	wait := pace.LongestHold
	if h.Count < mostHolds {
		wait = min(wait, pace.Hold<<h.Count)
	}
	return HoldOff{Count: min(h.Count+1, mostHolds), End: now.Add(wait)}
}

func (h HoldOff) advice() string {
	return " Will connect again at " + h.End.UTC().Format(time.RFC3339) +
		"; another Secret in spec.kubeconfigSecretRef is tried at once."
}
