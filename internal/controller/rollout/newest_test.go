package rollout

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// What is remembered of an object yields to another one of its name, to a newer state, and to its
// end.
func TestNewestYieldsToTheCache(t *testing.T) {
	t.Parallel()
	state := func(uid types.UID, version string) *v1alpha1.NodeMaintenance {
		m := aMaintenance("one")
		m.UID, m.ResourceVersion = uid, version
		return m
	}
	for name, test := range map[string]struct {
		cached *v1alpha1.NodeMaintenance
		want   string
	}{
		"older":       {state("a", "9"), "10"},
		"the same":    {state("a", "10"), "10"},
		"newer":       {state("a", "11"), "11"},
		"another one": {state("b", "9"), "9"},
	} {
		n := newNewest[*v1alpha1.NodeMaintenance](testingclock.NewFakeClock(noon))
		n.note(state("a", "10"))
		n.note(state("a", "8"))
		all, due := n.over([]*v1alpha1.NodeMaintenance{test.cached})
		if got := all["one"].ResourceVersion; got != test.want || due != 0 {
			t.Errorf("%s: version %s, due in %s", name, got, due)
		}
		if got := len(n.all); (got > 0) != (name == "older") {
			t.Errorf("%s: %d states are remembered", name, got)
		}
	}
	n := newNewest[*v1alpha1.NodeMaintenance](testingclock.NewFakeClock(noon))
	ended := state("a", "10")
	ended.DeletionTimestamp = new(metav1.NewTime(noon))
	if n.note(ended); len(n.all) > 0 {
		t.Errorf("an object whose last finalizer was removed is remembered: %v", n.all)
	}
	n.note(state("b", "12"))
	if n.gone(state("a", "11")); len(n.all) != 1 {
		t.Error("the end of a former object of its name has made it forgotten")
	}
}
