package nodeshutdown

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// says is node one whose agent says this of its shutdown. Both are in boot-1, and the node
// has been Ready for an hour.
func says(phase v1alpha1.NodeShutdownPhase, mode v1alpha1.NodeShutdownMode, deadline time.Duration) Snapshot {
	at := metav1.NewTime(noon.Add(deadline))
	return Snapshot{
		Now: noon, Since: noon.Add(-time.Hour),
		Agent: &v1alpha1.NodeAgent{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Status: v1alpha1.NodeAgentStatus{
			BootID: "boot-1", Shutdown: &v1alpha1.NodeShutdown{Phase: phase, Mode: mode, Type: "reboot", DeadlineTime: &at, DelaySeconds: 60},
		}},
		Node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "one"},
			Status: corev1.NodeStatus{
				NodeInfo:   corev1.NodeSystemInfo{BootID: "boot-1"},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}},
			},
		},
	}
}

func preparing() Snapshot {
	return says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, time.Minute)
}

func made(s Snapshot) Snapshot {
	s.Existing = Decide(preparing()).Create
	return s
}

func (s Snapshot) with(edit func(*Snapshot)) Snapshot { edit(&s); return s }

func booted(s Snapshot, seenFor time.Duration) Snapshot {
	s.Node.Status.NodeInfo.BootID = "boot-2"
	s.Since = noon.Add(-seenFor)
	return s
}

func another(name string, edits ...func(*v1alpha1.NodeMaintenance)) *v1alpha1.NodeMaintenance {
	m := preparing().maintenance(v1alpha1.StageDrain, "")
	m.Name, m.Labels = name, nil
	for _, edit := range edits {
		edit(m)
	}
	return m
}

// beside is a shutdown of a node that somebody has drained before.
func beside(edits ...func(*v1alpha1.NodeMaintenance)) Snapshot {
	return preparing().with(func(s *Snapshot) { s.Others = []*v1alpha1.NodeMaintenance{another("kernel-update", edits...)} })
}

func isDeleted(m *v1alpha1.NodeMaintenance) { m.DeletionTimestamp = &metav1.Time{Time: noon} }

func isOver(m *v1alpha1.NodeMaintenance) { m.Spec.Stage = v1alpha1.StageComplete }

func ofNodeTwo(m *v1alpha1.NodeMaintenance) {
	m.Spec.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values = []string{"two"}
}

func inPlace(m *v1alpha1.NodeMaintenance) {
	m.Spec.InPlace = &v1alpha1.InPlace{ExpectedDowntimeSeconds: 60}
}

func isDrained(m *v1alpha1.NodeMaintenance) {
	m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDrained, Status: metav1.ConditionTrue}}
}

const (
	drains  = "make node-shutdown-one: Drain"
	nothing = "nothing"
	isUp    = "delete; NodeShutdownEnded"
)

var beginnings = map[string]struct {
	snapshot Snapshot
	want     string
}{
	"nobody shuts down":                                         {says(v1alpha1.ShutdownNone, v1alpha1.ShutdownModeDrain, 0), nothing},
	"the node shuts down":                                       {preparing(), drains},
	"an hour ago, by its clock":                                 {says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, -time.Hour), drains},
	"the kubelet stops its pods":                                {says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeReport, time.Minute), "make node-shutdown-one: Cordon"},
	"shutdowns are left alone":                                  {says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeOff, time.Minute), nothing},
	"it was let go before we looked":                            {says(v1alpha1.ShutdownReleased, v1alpha1.ShutdownModeDrain, time.Minute), nothing},
	"the report is of another boot":                             {booted(preparing(), time.Hour), nothing},
	"there is no agent":                                         {preparing().with(func(s *Snapshot) { s.Agent = nil }), nothing},
	"the agent says nothing of it":                              {preparing().with(func(s *Snapshot) { s.Agent.Status.Shutdown = nil }), nothing},
	"in a quarter of an hour":                                   {says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeDrain, 15*time.Minute), "make node-shutdown-one: Drain"},
	"in a quarter of an hour, where the kubelet stops its pods": {says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeReport, 15*time.Minute), "make node-shutdown-one: Drain"},
	"of which the agent does not know the boot":                 {preparing().with(func(s *Snapshot) { s.Agent.Status.BootID = "" }), drains},
	"in an hour":                                                {says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeDrain, time.Hour), "make node-shutdown-one: Drain"},
	"in an hour and a minute":                                   {says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeDrain, 61*time.Minute), "nothing; again in 1m0s"},
	"a moment ago":                                              {says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeDrain, -time.Second), nothing},
	"the drain before is being deleted":                         {beside(isDrained, isDeleted), drains},
	"tonight":                                                   {says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeDrain, 11*time.Hour), "nothing; again in 10h0m0s"},
	"in thirty years":                                           {says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeDrain, 30*365*24*time.Hour), "nothing; again in 24h0m0s"},
	"in the year 9999": {
		says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeDrain, 0).with(func(s *Snapshot) {
			s.Agent.Status.Shutdown.DeadlineTime = &metav1.Time{Time: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}
		}), "nothing; again in 24h0m0s",
	},
	"in the year 1":              {says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeDrain, 0).with(func(s *Snapshot) { s.Agent.Status.Shutdown.DeadlineTime = &metav1.Time{} }), nothing},
	"at a time that nobody says": {says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeDrain, 0).with(func(s *Snapshot) { s.Agent.Status.Shutdown.DeadlineTime = nil }), nothing},
	"in a quarter of an hour, by a clock that nobody believes": {says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeDrain, 15*time.Minute).with(func(s *Snapshot) { s.ClockSkewed = true }), nothing},
	"now, by a clock that is skewed":                           {preparing().with(func(s *Snapshot) { s.ClockSkewed = true }), drains},
	"pods stay on it in place":                                 {beside(inPlace), "nothing; NodeShutdownDetected"},
	"it is drained already":                                    {beside(isDrained), "nothing; NodeShutdownDetected"},
	"its drain has only begun":                                 {beside(), drains},
	"another node is drained":                                  {beside(isDrained, ofNodeTwo), drains},
	"the drain before is over":                                 {beside(isDrained, isOver), drains},
	"somebody has the name":                                    {preparing().with(func(s *Snapshot) { s.Existing = another("node-shutdown-one") }), notOurs},
}

var endings = map[string]struct {
	snapshot Snapshot
	want     string
}{
	"it goes on":              {made(preparing()), nothing},
	"it was let go":           {made(says(v1alpha1.ShutdownReleased, v1alpha1.ShutdownModeDrain, 0)), nothing},
	"it is off":               {made(says(v1alpha1.ShutdownReleased, v1alpha1.ShutdownModeDrain, -time.Hour)), nothing},
	"it is cancelled":         {made(says(v1alpha1.ShutdownCancelled, v1alpha1.ShutdownModeDrain, 0)), "delete; NodeShutdownEnded"},
	"the agent lost the bus":  {made(says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeOff, time.Minute)), nothing},
	"it was switched off":     {made(says(v1alpha1.ShutdownNone, v1alpha1.ShutdownModeOff, 0)), isUp},
	"its time is near":        {made(says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeDrain, time.Minute)), "change: Drain until 12:01:00, Delete 300s before"},
	"its time has just come":  {made(says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeDrain, -time.Second)), "change: Drain until 12:01:00, Delete 18s before"},
	"it is put off till then": {made(says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeDrain, 11*time.Hour)), "delete; again in 10h0m0s; NodeShutdownEnded"},
	"it is put off, by a clock that nobody believes": {made(says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeDrain, 11*time.Hour)).with(func(s *Snapshot) { s.ClockSkewed = true }), "nothing; again in 10h0m0s"},
	"its agent says that it is up":                   {made(says(v1alpha1.ShutdownNone, v1alpha1.ShutdownModeDrain, 0)), isUp},
	"it has booted, and its agent has not":           {booted(made(preparing()), 30*time.Second), isUp},
	"it has booted a moment ago":                     {booted(made(preparing()), 29*time.Second), "nothing; again in 1s"},
	"it was cancelled, and has booted a moment ago":  {booted(made(says(v1alpha1.ShutdownCancelled, v1alpha1.ShutdownModeDrain, 0)), 29*time.Second), "nothing; again in 1s"},
	"its clock is in the year 2050": {
		booted(made(preparing()), time.Minute).with(func(s *Snapshot) {
			s.Node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(24 * 365 * 24 * time.Hour))
		}), isUp,
	},
	"it has booted, and is not ready":     {booted(made(preparing()), time.Hour).with(func(s *Snapshot) { s.Node.Status.Conditions[0].Status = corev1.ConditionFalse }), nothing},
	"it has booted, and a person ends it": {booted(made(preparing()), time.Hour).with(func(s *Snapshot) { s.StayCordoned = true }), nothing},
	"it has booted, by a skewed clock":    {booted(made(preparing()), time.Hour).with(func(s *Snapshot) { s.ClockSkewed = true }), nothing},
	"its agent is gone":                   {made(preparing()).with(func(s *Snapshot) { s.Agent = nil }), nothing},
	"the node is gone":                    {made(preparing()).with(func(s *Snapshot) { s.Node = nil }), "delete"},
	"the node is gone, and its agent":     {made(preparing()).with(func(s *Snapshot) { s.Node, s.Agent = nil, nil }), "delete"},
	"it is being deleted":                 {made(says(v1alpha1.ShutdownCancelled, v1alpha1.ShutdownModeDrain, 0)).with(func(s *Snapshot) { s.Existing.DeletionTimestamp = &metav1.Time{Time: noon} }), nothing},
	"it is somebody else's":               {made(says(v1alpha1.ShutdownCancelled, v1alpha1.ShutdownModeDrain, 0)).with(func(s *Snapshot) { s.Existing.Labels = nil }), nothing},
	"somebody has it select more": {
		made(says(v1alpha1.ShutdownCancelled, v1alpha1.ShutdownModeDrain, 0)).with(func(s *Snapshot) {
			field := &s.Existing.Spec.NodeSelector.NodeSelectorTerms[0].MatchFields[0]
			field.Values = append(field.Values, "two")
		}), nothing,
	},
}

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

func told(t *testing.T, name string, d Decision) string {
	t.Helper()
	line := nothing
	if d.Create != nil {
		line = fmt.Sprintf("make %s: %s", d.Create.Name, d.Create.Spec.Stage)
		golden.Message(t, name, d.Create.Spec.Reason)
	}
	if d.Follow != nil {
		line = fmt.Sprintf("change: %s%s", d.Follow.Spec.Stage, untilOf(d.Follow))
		golden.Message(t, name, d.Follow.Spec.Reason)
	}
	if d.Delete {
		line = "delete"
	}
	if d.RequeueAfter > 0 {
		line += fmt.Sprintf("; again in %s", d.RequeueAfter)
	}
	for _, e := range d.Events {
		line += "; " + e.Reason
		golden.Message(t, name, e.Reason, e.Message)
	}
	return line
}

func TestResultsOfAShutdown(t *testing.T) {
	t.Parallel()
	for name, test := range beginnings {
		difference.None(t, name, test.want, told(t, name, Decide(test.snapshot)))
	}
}

func TestWhenAShutdownIsOver(t *testing.T) {
	t.Parallel()
	for name, test := range endings {
		difference.None(t, name, test.want, told(t, name, Decide(test.snapshot)))
	}
}

// The webhooks leave the manager alone, so what they add to others' has to be there.
func TestTheMaintenanceOfAShutdownIsComplete(t *testing.T) {
	t.Parallel()
	m := Decide(preparing()).Create
	if len(m.Spec.DrainPlan) != 12 || m.Spec.DrainDepth != v1alpha1.PodTypeDaemonSet || !Ours(m, "one") || Ours(m, "two") ||
		!cmp.Equal(m.Finalizers, []string{v1alpha1.MaintenanceCompletionFinalizer}) {
		t.Errorf("it is %+v, want the plan of everybody, to the DaemonSets, of node one, with its finalizer", m)
	}
}

func TestNodesWithTheLongestNames(t *testing.T) {
	t.Parallel()
	a, b, fits := strings.Repeat("n", 252)+"a", strings.Repeat("n", 252)+"b", strings.Repeat("n", 239)
	if Name(a) == Name(b) || len(Name(a)) != 253 || len(Name(strings.Repeat("n", 240))) > 253 || Name(fits) != "node-shutdown-"+fits {
		t.Errorf("names are %q, %q and %q, want three of 253 characters, the last one whole", Name(a), Name(b), Name(fits))
	}
}
