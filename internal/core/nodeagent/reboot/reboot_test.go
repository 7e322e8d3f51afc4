package reboot_test

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodeagent/reboot"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// handedOver is a node in boot b1 that was handed over to maintenance m, which asks for a reboot.
func handedOver() (*reboot.Snapshot, *v1alpha1.NodeMaintenance) {
	m := &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "uid", Annotations: map[string]string{
			v1alpha1.RebootAnnotation:     "true",
			v1alpha1.HandedOverAnnotation: `{"maintenanceUID":"uid","nodeName":"one","bootID":"b1","time":"2026-03-01T11:00:00.000000Z"}`,
		}},
		Spec: v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageDrain, CompleteWhen: &v1alpha1.CompleteWhen{NewBoot: true}},
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "one", Labels: map[string]string{v1alpha1.HandedOverLabel: "true"}, Annotations: map[string]string{v1alpha1.HandedOverByAnnotation: "m"},
	}}
	node.Status.NodeInfo.BootID = "b1"
	return &reboot.Snapshot{Now: noon, BootID: "b1", Enabled: true, Node: node, Maintenances: []*v1alpha1.NodeMaintenance{m}}, m
}

func TestHandedOverNodeRebootsOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*reboot.Snapshot, *v1alpha1.NodeMaintenance)
		want   bool
	}{
		"handed over":  {func(*reboot.Snapshot, *v1alpha1.NodeMaintenance) {}, true},
		"not enabled":  {func(s *reboot.Snapshot, _ *v1alpha1.NodeMaintenance) { s.Enabled = false }, false},
		"node unknown": {func(s *reboot.Snapshot, _ *v1alpha1.NodeMaintenance) { s.Node = nil }, false},
		"not asked for": {func(_ *reboot.Snapshot, m *v1alpha1.NodeMaintenance) {
			delete(m.Annotations, v1alpha1.RebootAnnotation)
		}, false},
		"asked for wrongly": {func(_ *reboot.Snapshot, m *v1alpha1.NodeMaintenance) {
			m.Annotations[v1alpha1.RebootAnnotation] = "yes"
		}, false},
		"complete":             {func(_ *reboot.Snapshot, m *v1alpha1.NodeMaintenance) { m.Spec.Stage = v1alpha1.StageComplete }, false},
		"only cordoned":        {func(_ *reboot.Snapshot, m *v1alpha1.NodeMaintenance) { m.Spec.Stage = v1alpha1.StageCordon }, false},
		"being deleted":        {func(_ *reboot.Snapshot, m *v1alpha1.NodeMaintenance) { m.DeletionTimestamp = new(metav1.NewTime(noon)) }, false},
		"without a new boot":   {func(_ *reboot.Snapshot, m *v1alpha1.NodeMaintenance) { m.Spec.CompleteWhen.NewBoot = false }, false},
		"without completeWhen": {func(_ *reboot.Snapshot, m *v1alpha1.NodeMaintenance) { m.Spec.CompleteWhen = nil }, false},
		"marked for another": {func(s *reboot.Snapshot, _ *v1alpha1.NodeMaintenance) {
			s.Node.Annotations[v1alpha1.HandedOverByAnnotation] = "other"
		}, false},
		"record of another": {func(_ *reboot.Snapshot, m *v1alpha1.NodeMaintenance) { m.UID = "copy" }, false},
		"already rebooted": {func(s *reboot.Snapshot, _ *v1alpha1.NodeMaintenance) {
			s.BootID, s.Node.Status.NodeInfo.BootID = "b2", "b2"
		}, false},
		"kubelet still shows the former boot": {func(s *reboot.Snapshot, _ *v1alpha1.NodeMaintenance) { s.BootID = "b2" }, false},
		"requested a moment ago":              {func(s *reboot.Snapshot, _ *v1alpha1.NodeMaintenance) { s.Requested = noon.Add(-time.Second) }, false},
		"requested in vain":                   {func(s *reboot.Snapshot, _ *v1alpha1.NodeMaintenance) { s.Requested = noon.Add(-time.Minute) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, m := handedOver()
			test.change(s, m)
			d := reboot.Decide(*s)
			if d.Reboot != test.want || (len(d.Events) > 0) != test.want {
				t.Errorf("reboots: %t with %d events, want %t", d.Reboot, len(d.Events), test.want)
			}
			for _, e := range d.Events {
				if e.Reason != v1alpha1.EventNodeRebooting || e.Regarding.Name != "one" {
					t.Errorf("event %s on %s", e.Reason, e.Regarding.Name)
				}
				golden.Message(t, e.Message)
			}
		})
	}
}

func TestCandidatesAreThoseOfTheMark(t *testing.T) {
	t.Parallel()
	s, _ := handedOver()
	if got := reboot.Candidates(s.Node); len(got) != 1 || got[0] != "m" {
		t.Errorf("candidates are %v, want m", got)
	}
	s.Node.Annotations[v1alpha1.HandedOverByAnnotation] = strings.Repeat("m,", 5000)
	if got := reboot.Candidates(s.Node); len(got) != 16 {
		t.Errorf("%d candidates are read of a huge list, want 16", len(got))
	}
	delete(s.Node.Labels, v1alpha1.HandedOverLabel)
	if got := reboot.Candidates(s.Node); got != nil {
		t.Errorf("without the label candidates are %v", got)
	}
	if got := reboot.Candidates(nil); got != nil {
		t.Errorf("of no node candidates are %v", got)
	}
}

func TestConditionFollowsTheSentinel(t *testing.T) {
	t.Parallel()
	hour := metav1.NewTime(noon.Add(-time.Hour))
	was := func(status corev1.ConditionStatus, reason, message string) *corev1.NodeCondition {
		return &corev1.NodeCondition{Type: v1alpha1.NodeRebootRequired, Status: status, Reason: reason, Message: message, LastTransitionTime: hour, LastHeartbeatTime: hour}
	}
	required := was("True", v1alpha1.ReasonRebootSentinel, "A reboot is required.")
	for name, test := range map[string]struct {
		sentinel *reboot.Sentinel
		was      *corev1.NodeCondition
		fresh    bool
		// ready is the time since which the node is Ready; zero if it is not.
		ready metav1.Time
		// want is the status that is written; empty is none. since is its transition.
		want  corev1.ConditionStatus
		since metav1.Time
	}{
		"no sentinel configured":  {},
		"first report":            {sentinel: &reboot.Sentinel{}, want: "False", since: metav1.NewTime(noon)},
		"required":                {sentinel: &reboot.Sentinel{Exists: true}, was: was("False", v1alpha1.ReasonNoRebootSentinel, "No reboot is required."), want: "True", since: metav1.NewTime(noon)},
		"still required":          {sentinel: &reboot.Sentinel{Exists: true}, was: required},
		"still required at start": {sentinel: &reboot.Sentinel{Exists: true}, was: required, fresh: true, want: "True", since: hour},
		"still required, and Ready since the report":     {sentinel: &reboot.Sentinel{Exists: true}, was: required, ready: metav1.NewTime(noon), want: "True", since: hour},
		"still required, and Ready by a later clock":     {sentinel: &reboot.Sentinel{Exists: true}, was: required, ready: metav1.NewTime(noon.Add(time.Second))},
		"still not required, and Ready since the report": {sentinel: &reboot.Sentinel{}, was: was("False", v1alpha1.ReasonNoRebootSentinel, "No reboot is required."), ready: metav1.NewTime(noon)},
		"required for more":                              {sentinel: &reboot.Sentinel{Exists: true, Packages: []string{"linux", "", "linux", "libc6"}}, was: required, want: "True", since: hour},
		"no longer required":                             {sentinel: &reboot.Sentinel{}, was: required, want: "False", since: metav1.NewTime(noon)},
		"hostile list of packages":                       {sentinel: &reboot.Sentinel{Exists: true, Packages: strings.Split(strings.Repeat("\x1b[2Jx\n", 3)+strings.Repeat("y", 5000)+"\na\nb\nc\nd\ne\nf\ng\nh\ni\nj", "\n")}, want: "True", since: metav1.NewTime(noon)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := reporting(test.was, test.ready)
			got := reboot.Decide(reboot.Snapshot{Now: noon, Node: node, Sentinel: test.sentinel, Fresh: test.fresh}).Condition
			if got == nil {
				if test.want != "" {
					t.Fatalf("nothing is written, want %s", test.want)
				}
				return
			}
			checkMessage(t, got.Message)
			if got.Status != test.want || !got.LastTransitionTime.Equal(&test.since) || !got.LastHeartbeatTime.Equal(new(metav1.NewTime(noon))) {
				t.Errorf("%s since %s, heartbeat %s; want %q since %s", got.Status, got.LastTransitionTime, got.LastHeartbeatTime, test.want, test.since)
			}
		})
	}
}

// reporting is a node with a condition, and Ready since a time; neither if they are unset.
func reporting(c *corev1.NodeCondition, ready metav1.Time) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	if c != nil {
		node.Status.Conditions = append(node.Status.Conditions, *c)
	}
	if !ready.IsZero() {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: ready})
	}
	return node
}

func checkMessage(t *testing.T, message string) {
	t.Helper()
	golden.Message(t, message)
	if len(message) > 1024 || strings.ContainsAny(message, "\x1b\n") {
		t.Errorf("the message has %d bytes: %q", len(message), message)
	}
}
