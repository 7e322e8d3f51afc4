package handover_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/handover"
)

// site is a drained node and its maintenance, which keeps the record.
type site struct {
	t    *testing.T
	now  time.Time
	m    *v1alpha1.NodeMaintenance
	node *corev1.Node
	// ready is since when the node is Ready.
	ready  time.Time
	marked bool
	// extra are further annotations.
	extra map[string]string
}

// newSite hands over a node that is in a boot, with kubelet v1.36.4.
func newSite(t *testing.T, boot string, wants v1alpha1.CompleteWhen) *site {
	t.Helper()
	s := &site{
		t: t, now: time.Date(2026, 3, 1, 7, 0, 0, 0, time.UTC), node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-7", UID: "node"}},
		m: &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{UID: "m"}, Spec: v1alpha1.NodeMaintenanceSpec{CompleteWhen: &wants}},
	}
	s.report(boot, "v1.36.4", s.now)
	if d := s.decide(); d.InForce || !s.marked {
		t.Fatalf("the first decision is %+v, want a record and the mark", d)
	}
	if d := s.decide(); !d.InForce {
		t.Fatalf("with record and mark the decision is %+v, want it in force", d)
	}
	return s
}

func (s *site) report(boot, kubelet string, ready time.Time) {
	s.node.Status.NodeInfo = corev1.NodeSystemInfo{
		BootID: boot, KubeletVersion: kubelet, KernelVersion: "6.8.0", OSImage: "Ebb OS 3", ContainerRuntimeVersion: "containerd://2.1.4",
	}
	s.ready = ready
}

// decide decides and writes what the decision asks for.
func (s *site) decide() handover.Decision {
	s.t.Helper()
	w, err := handover.Read(s.m, "node-7")
	if err != nil {
		s.t.Fatal(err)
	}
	d := w.Decide(handover.Facts{
		Now: s.now, Node: s.node, Drained: true, Marked: s.marked,
		Ready: &corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(s.ready)},
	})
	s.m.Annotations = map[string]string{v1alpha1.HandedOverAnnotation: d.Record.Text()}
	maps.Copy(s.m.Annotations, s.extra)
	s.marked = s.marked || d.Marked
	return d
}

// later is the decision after some time in which nothing happens.
func (s *site) later(by time.Duration) handover.Verdict {
	s.t.Helper()
	s.decide()
	s.now = s.now.Add(by)
	return s.decide().Verdict
}

func TestNodeIsBackWhenItMatchesItsTarget(t *testing.T) {
	t.Parallel()
	const boot, version, returned = "WaitingForBoot", "WaitingForVersion", "Returned"
	for name, test := range map[string]struct {
		wants         v1alpha1.CompleteWhen
		boot, kubelet string
		reason, says  string
	}{
		"a new boot":             {v1alpha1.CompleteWhen{NewBoot: true}, "boot-2", "v1.36.4", returned, ""},
		"no boot":                {v1alpha1.CompleteWhen{NewBoot: true}, "boot-1", "v1.37.1", boot, "has not booted"},
		"an unknown boot":        {v1alpha1.CompleteWhen{NewBoot: true}, "", "v1.36.4", boot, "has not booted"},
		"another kubelet":        {v1alpha1.CompleteWhen{KubeletVersion: "v1.37.1"}, "boot-2", "v1.36.4", version, "kubelet v1.36.4, v1.37.1"},
		"the kubelet, no boot":   {v1alpha1.CompleteWhen{KubeletVersion: "v1.37.1"}, "boot-1", "v1.37.1", returned, ""},
		"the kubelet but a boot": {v1alpha1.CompleteWhen{NewBoot: true, KubeletVersion: "v1.37.1"}, "boot-1", "v1.37.1", boot, ""},
		"a kubelet in range":     {v1alpha1.CompleteWhen{KubeletVersion: ">=1.37.0"}, "boot-2", "v1.37.1", returned, ""},
		"a kubelet out of range": {v1alpha1.CompleteWhen{KubeletVersion: ">=1.37.0"}, "boot-2", "v1.37.0-rc.1", version, "v1.37.0-rc.1, >=1.37.0"},
		"an unknown kubelet":     {v1alpha1.CompleteWhen{KubeletVersion: "<1.37.0"}, "boot-2", "", version, "of an unknown version"},
		"another kernel":         {v1alpha1.CompleteWhen{KernelVersion: "6.12.1"}, "boot-2", "v1.36.4", version, "kernel 6.8.0, 6.12.1"},
		"another system":         {v1alpha1.CompleteWhen{OSImage: "Ebb OS 4"}, "boot-2", "v1.36.4", version, "operating system Ebb OS 3, Ebb OS 4"},
		"another runtime":        {v1alpha1.CompleteWhen{ContainerRuntimeVersion: "cri"}, "boot-2", "v1.36.4", version, "container runtime containerd://2.1.4, cri"},
		"everything": {
			v1alpha1.CompleteWhen{NewBoot: true, KubeletVersion: "v1.37.1", KernelVersion: "6.8.0", OSImage: "Ebb OS 3", ContainerRuntimeVersion: "containerd://2.1.4"},
			"boot-2", "v1.37.1", returned, "",
		},
	} {
		s := newSite(t, "boot-1", test.wants)
		s.now = s.now.Add(time.Minute)
		s.report(test.boot, test.kubelet, s.now)
		got := s.later(30 * time.Second)
		if got.Reason != test.reason || !strings.Contains(got.Message, test.says) || got.Returned != (test.reason == returned) {
			t.Errorf("%s: %+v, want %s that says %q", name, got, test.reason, test.says)
		}
	}
}

// Whatever the node and its Ready condition do begins the 30 s anew, and the time that counts
// is ours. The node boots so fast that nobody notices that it was away.
func TestNodeIsBackWhenItWasReadyWithoutABreak(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		// happens is what happens 20 s after the node has come back, waits how long it then takes.
		happens func(*site)
		waits   time.Duration
	}{
		"nothing":                       {func(*site) {}, 10 * time.Second},
		"it was not Ready in between":   {func(s *site) { s.ready = s.now }, 30 * time.Second},
		"... by a clock that is behind": {func(s *site) { s.ready = s.now.Add(-time.Hour) }, 30 * time.Second},
		"... by a clock that is ahead":  {func(s *site) { s.ready = s.now.Add(time.Hour) }, 30 * time.Second},
		"another boot":                  {func(s *site) { s.report("boot-3", "v1.36.4", s.ready) }, 30 * time.Second},
		"another kubelet":               {func(s *site) { s.report("boot-2", "v2", s.ready) }, 30 * time.Second},
	} {
		s := newSite(t, "boot-1", v1alpha1.CompleteWhen{NewBoot: true})
		s.now = s.now.Add(time.Minute)
		s.report("boot-2", "v1.36.4", s.ready)
		s.later(20 * time.Second)
		test.happens(s)
		if got := s.later(test.waits - time.Second); got.Returned || !got.WakeTime.Equal(s.now.Add(time.Second)) {
			t.Errorf("%s: a second before %s it is %+v", name, test.waits, got)
		}
		if got := s.later(time.Second); !got.Returned {
			t.Errorf("%s: after %s it is %+v", name, test.waits, got)
		}
	}
}

func TestUnknownBootIsNoNewBoot(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", v1alpha1.CompleteWhen{NewBoot: true})
	s.report("boot-1", "v1.36.4", s.ready)
	if got := s.later(time.Hour); got.Reason != "WaitingForBoot" {
		t.Errorf("it says which boot it is: %+v", got)
	}
	s.now = s.now.Add(time.Second)
	s.report("boot-2", "v1.36.4", s.ready)
	if got := s.later(time.Hour); !got.Returned {
		t.Errorf("it boots: %+v", got)
	}
}

func TestNodeThatChangesAllTheTimeIsWrittenOnceASecond(t *testing.T) {
	t.Parallel()
	s := newSite(t, "boot-1", v1alpha1.CompleteWhen{NewBoot: true})
	writes, before := 0, ""
	for n := range 100 {
		s.now = s.now.Add(100 * time.Millisecond)
		s.report(fmt.Sprintf("boot-%d", n+2), strings.Repeat("x", 100000), s.now)
		d := s.decide()
		if text := d.Record.Text(); text != before {
			writes++
			before = text
		}
		if wait := d.Verdict.WakeTime.Sub(s.now); len(before) > 4096 || wait <= 0 && d.Verdict.WakeTime != (time.Time{}) {
			t.Fatalf("the record has %d bytes, the next decision is due in %s", len(before), wait)
		}
	}
	if writes < 5 || writes > 11 {
		t.Errorf("there were %d writes in 10s", writes)
	}
}

func TestCompleteWhenThatIsNotUnderstood(t *testing.T) {
	t.Parallel()
	for want, test := range map[string]struct {
		wants v1alpha1.CompleteWhen
		node  string
	}{
		"spec.completeWhen: works on one node":                                            {v1alpha1.CompleteWhen{NewBoot: true}, ""},
		`spec.completeWhen.kubeletVersion: ">=1.37": No Major.Minor.Patch elements found`: {v1alpha1.CompleteWhen{KubeletVersion: ">=1.37"}, "a"},
		"spec.completeWhen: says nothing about the node: give newBoot: true or a version": {v1alpha1.CompleteWhen{}, "a"},
	} {
		m := &v1alpha1.NodeMaintenance{Spec: v1alpha1.NodeMaintenanceSpec{CompleteWhen: &test.wants}}
		if _, err := handover.Read(m, test.node); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}
