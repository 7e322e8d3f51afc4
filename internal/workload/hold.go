package workload

import (
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// HoldOff is for how long a cluster is left alone that has exceeded a bound; zero
// if it has not.
type HoldOff struct {
	// Count is how many times in a row it has.
	Count int32
	// End is when it is connected again at the earliest.
	End time.Time
}

// mostHolds is from where on the pauses do not get longer.
const mostHolds = 16

// holdOf is what the status of a Cluster remembers. It is of the Cluster as it is
// described there: one that was changed since is tried at once. Whoever else
// writes the status cannot have it left alone for longer than we would.
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

// next is after one more breach.
func (h HoldOff) next(now time.Time, pace Pace) HoldOff {
	wait := pace.LongestHold
	if h.Count < mostHolds {
		wait = min(wait, pace.Hold<<h.Count)
	}
	return HoldOff{Count: min(h.Count+1, mostHolds), End: now.Add(wait)}
}

func (h HoldOff) advice() string {
	return " It is connected again at " + h.End.UTC().Format(time.RFC3339) +
		" at the earliest; another Secret in spec.kubeconfigSecretRef is tried at once."
}
