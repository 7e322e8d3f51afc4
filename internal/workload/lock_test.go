package workload

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/eviction"
)

func TestWhoKnowsOfEvictions(t *testing.T) {
	t.Parallel()
	d := &Registry{options: Options{Workers: 3, LongestLock: time.Hour, Traffic: eviction.NewTraffic()}}
	for name, tc := range map[string]struct {
		cluster types.NamespacedName
		traffic *eviction.Traffic
	}{
		"of the cluster that Ebbtide runs in": {Local, d.options.Traffic},
		"of another cluster":                  {types.NamespacedName{Namespace: "machines", Name: "east"}, nil},
	} {
		options := d.evictions(tc.cluster)
		if options.Traffic != tc.traffic || options.LongestLock != time.Hour || options.Workers != 3 {
			t.Errorf("options %+v for evictions %s, want traffic %p", options, name, tc.traffic)
		}
	}
}
