package nodeshutdown

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A node is up for as long as we have seen it so, without a break, by our own clock.
func TestSinceWhenANodeIsUp(t *testing.T) {
	t.Parallel()
	over := func() Snapshot { return made(says(v1alpha1.ShutdownNone, v1alpha1.ShutdownModeDrain, 0)) }
	first := over().Observe(Observation{})
	if !first.Since.Equal(noon) {
		t.Errorf("at first it is so since %s, want now", first.Since)
	}
	ready := func(s *Snapshot) *corev1.NodeCondition { return &s.Node.Status.Conditions[0] }
	for name, test := range map[string]struct {
		change func(*Snapshot)
		same   bool
	}{
		"nothing changes":                {func(*Snapshot) {}, true},
		"a heartbeat":                    {func(s *Snapshot) { ready(s).LastHeartbeatTime = metav1.Now() }, true},
		"it has booted, and stays Ready": {func(s *Snapshot) { s.Node.Status.NodeInfo.BootID = "boot-2" }, false},
		"its agent reports the boot":     {func(s *Snapshot) { s.Agent.Status.BootID = "boot-2" }, false},
		"its agent says something else":  {func(s *Snapshot) { s.Agent.Status.Shutdown.Phase = v1alpha1.ShutdownReleased }, false},
		"it is not Ready":                {func(s *Snapshot) { ready(s).Status = corev1.ConditionUnknown }, false},
		"it was not Ready meanwhile":     {func(s *Snapshot) { ready(s).LastTransitionTime = metav1.NewTime(noon.Add(time.Second)) }, false},
		"it says nothing of itself":      {func(s *Snapshot) { s.Node.Status.Conditions = nil }, false},
		"the node is gone":               {func(s *Snapshot) { s.Node = nil }, false},
		"its agent is gone":              {func(s *Snapshot) { s.Agent = nil }, false},
		"its agent says nothing of it":   {func(s *Snapshot) { s.Agent.Status.Shutdown = nil }, false},
		"our clock is skewed":            {func(s *Snapshot) { s.ClockSkewed = true }, false},
		"our clock has gone back":        {func(s *Snapshot) { s.Now = noon.Add(-time.Hour) }, false},
	} {
		now := over()
		now.Now = noon.Add(29 * time.Second)
		test.change(&now)
		want := now.Now
		if test.same {
			want = noon
		}
		if got := now.Observe(first); !got.Since.Equal(want) {
			t.Errorf("%s: it is so since %s, want %s", name, got.Since, want)
		}
	}
}
