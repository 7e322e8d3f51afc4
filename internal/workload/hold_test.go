package workload

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// Whoever forges the status gains or loses little by that.
func TestAHoldOffOfAnotherIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	forged := func(count int32, end time.Time, generation int64) *v1alpha1.Cluster {
		c := &v1alpha1.Cluster{}
		c.Generation = generation
		c.Status.HoldOff = &v1alpha1.ClusterHoldOff{BreachCount: count, EndTime: metav1.NewTime(end)}
		return c
	}
	tests := map[string]struct {
		cluster *v1alpha1.Cluster
		want    HoldOff
	}{
		"for years":                {forged(1<<30, now.AddDate(9, 0, 0), 0), HoldOff{mostHolds, now.Add(30 * time.Minute)}},
		"a negative count":         {forged(-5, now.Add(time.Minute), 0), HoldOff{1, now.Add(time.Minute)}},
		"of a spec of before":      {forged(2, now.Add(time.Minute), 7), HoldOff{}},
		"of one that was left out": {&v1alpha1.Cluster{}, HoldOff{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := holdOf(test.cluster, now, UsualPace())
			if got != test.want {
				t.Errorf("left alone for %+v, want %+v", got, test.want)
			}
			if next := got.next(now, UsualPace()); next.End.After(now.Add(30*time.Minute)) || !next.End.After(now) {
				t.Errorf("then until %s, want a time within 30 minutes of %s", next.End, now)
			}
		})
	}
}
