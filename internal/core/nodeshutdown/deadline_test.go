package nodeshutdown

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/difference"
)

func untilOf(m *v1alpha1.NodeMaintenance) string {
	d := m.Spec.Deadline
	if d == nil {
		return " without a deadline"
	}
	return fmt.Sprintf(" until %s, %s %ds before", d.Time.UTC().Format(time.TimeOnly), d.OnDeadline, d.DeleteBeforeSeconds)
}

func sinceStart(s Snapshot, known time.Duration) Snapshot {
	s.Agent.Status.Shutdown.StartTime = &metav1.Time{Time: noon.Add(-known)}
	return s
}

func (s Snapshot) before(text string) Snapshot {
	var err error
	if s.DeleteBefore, err = ParseDeleteBefore(text); err != nil {
		panic(err)
	}
	return s
}

func (s Snapshot) delay(seconds int32) Snapshot {
	s.Agent.Status.Shutdown.DelaySeconds = seconds
	return s
}

func scheduledSoon() Snapshot {
	return says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeDrain, 15*time.Minute)
}

const (
	minute = "Drain until 12:01:00, Delete 18s before"
	none   = "Drain without a deadline"
)

// What is left is deleted early enough for a graceful end, and by a time that is meant.
func TestUntilWhenPodsHaveTime(t *testing.T) {
	t.Parallel()
	year := 365 * 24 * time.Hour
	for name, test := range map[string]struct {
		snapshot Snapshot
		want     string
	}{
		"a minute":                       {preparing(), minute},
		"five seconds":                   {says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, 5*time.Second).delay(5), "Drain until 12:00:05, Delete 10s before"},
		"ten minutes":                    {preparing().delay(600), "Drain until 12:01:00, Delete 180s before"},
		"half an hour, of which 5m go":   {preparing().delay(1800), "Drain until 12:01:00, Delete 300s before"},
		"half of it":                     {preparing().before("50%"), "Drain until 12:01:00, Delete 30s before"},
		"all of it":                      {preparing().before("100%"), "Drain until 12:01:00, Delete 60s before"},
		"a time of its own":              {preparing().before("45s"), "Drain until 12:01:00, Delete 45s before"},
		"a quarter of an hour of it":     {preparing().before("15m"), "Drain until 12:01:00, Delete 900s before"},
		"a delay that nobody says":       {preparing().delay(0), "Drain until 12:01:00, Delete 10s before"},
		"a delay that cannot be":         {preparing().delay(-5), "Drain until 12:01:00, Delete 10s before"},
		"a delay of 68 years":            {preparing().delay(math.MaxInt32), "Drain until 12:01:00, Delete 300s before"},
		"half of 68 years":               {preparing().delay(math.MaxInt32).before("50%"), "Drain until 12:01:00, Delete 300s before"},
		"little of the hour":             {sinceStart(scheduledSoon(), 8*time.Hour).before("1%"), "Drain until 12:15:00, Delete 36s before"},
		"scheduled just now":             {sinceStart(scheduledSoon(), 0), "Drain until 12:15:00, Delete 270s before"},
		"scheduled this morning":         {sinceStart(scheduledSoon(), 8*time.Hour), "Drain until 12:15:00, Delete 300s before"},
		"scheduled nobody knows when":    {scheduledSoon(), "Drain until 12:15:00, Delete 300s before"},
		"scheduled from the future":      {sinceStart(scheduledSoon(), -year), "Drain until 12:15:00, Delete 10s before"},
		"now":                            {says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, 0), none},
		"ten years ago":                  {says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, -10*year), none},
		"in a second":                    {says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, time.Second), "Drain until 12:00:01, Delete 18s before"},
		"in a day":                       {says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, 24*time.Hour), "Drain until 12:00:00, Delete 18s before"},
		"in a day and a second":          {says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, 24*time.Hour+time.Second), none},
		"at a time that nobody says":     {preparing().with(func(s *Snapshot) { s.Agent.Status.Shutdown.DeadlineTime = nil }), none},
		"the clock is skewed":            {preparing().with(func(s *Snapshot) { s.ClockSkewed = true }), none},
		"where the kubelet stops them":   {says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeReport, time.Minute), "Cordon without a deadline"},
		"... and it is only scheduled":   {says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeReport, 15*time.Minute), "Drain until 12:15:00, Delete 300s before"},
		"only pods of no DaemonSet":      {preparing().with(func(s *Snapshot) { s.Depth = v1alpha1.PodTypeDefault }), minute + ", Default"},
		"and those that are static, too": {preparing().with(func(s *Snapshot) { s.Depth = v1alpha1.PodTypeStatic }), minute + ", Static"},
	} {
		m := Decide(test.snapshot).Create
		got := string(m.Spec.Stage) + untilOf(m)
		if m.Spec.DrainDepth != v1alpha1.PodTypeDaemonSet {
			got += ", " + string(m.Spec.DrainDepth)
		}
		difference.None(t, name, test.want, got)
	}
}

func from(before, now Snapshot) Snapshot {
	now.Existing = Decide(before).Create
	return now
}

const (
	isShuttingDown = ""
	put            = "change: Drain until 12:02:00, Delete 18s before" + isShuttingDown
	withNoDeadline = "change: Drain without a deadline" + isShuttingDown
)

var followings = map[string]struct {
	snapshot Snapshot
	want     string
}{
	"the same again":  {made(preparing()), nothing},
	"it is put off":   {made(says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, 2*time.Minute)), put},
	"it comes sooner": {made(says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, 30*time.Second)), "change: Drain until 12:00:30, Delete 18s before" + isShuttingDown},
	"a scheduled one begins early": {
		from(scheduledSoon(), preparing()), "change: Drain until 12:01:00, Delete 18s before" + isShuttingDown,
	},
	"a scheduled one is put off a little": {from(scheduledSoon(), says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeDrain, 20*time.Minute)), "change: Drain until 12:20:00, Delete 300s before"},
	"a scheduled one begins, and the kubelet stops the pods": {
		from(scheduledSoon(), says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeReport, time.Minute)),
		"change: Drain until 12:01:00, Wait 18s before" + isShuttingDown,
	},
	"the kubelet stops the pods of late": {
		made(says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeReport, -time.Minute)), "change: Drain until 12:01:00, Wait 18s before" + isShuttingDown,
	},
	"the kubelet stops the pods, and goes on":      {from(says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeReport, time.Minute), says(v1alpha1.ShutdownReleased, v1alpha1.ShutdownModeReport, time.Minute)), nothing},
	"the kubelet did, and the next one is drained": {from(says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeReport, time.Minute), says(v1alpha1.ShutdownScheduled, v1alpha1.ShutdownModeReport, 15*time.Minute)), "change: Drain until 12:15:00, Delete 300s before"},
	"now":                           {made(says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, 0)), nothing},
	"ten years ago":                 {made(says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, -10*365*24*time.Hour)), nothing},
	"in ten years":                  {made(says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, 10*365*24*time.Hour)), withNoDeadline},
	"the time is not said":          {made(preparing()).with(func(s *Snapshot) { s.Agent.Status.Shutdown.DeadlineTime = nil }), withNoDeadline},
	"our clock is skewed":           {made(says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, time.Second)).with(func(s *Snapshot) { s.ClockSkewed = true }), nothing},
	"our clock is trusted again":    {from(preparing().with(func(s *Snapshot) { s.ClockSkewed = true }), preparing()), "change: Drain until 12:01:00, Delete 18s before" + isShuttingDown},
	"it is let go":                  {made(says(v1alpha1.ShutdownReleased, v1alpha1.ShutdownModeDrain, time.Minute)), nothing},
	"a person has it wait":          {made(says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, 2*time.Minute)).with(waits), "change: Drain until 12:02:00, Wait 18s before" + isShuttingDown},
	"a person has it given back":    {made(says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, 2*time.Minute)).with(givesBack), "change: Drain until 12:02:00, GiveBack 18s before" + isShuttingDown},
	"a person has completed it":     {made(says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, 2*time.Minute)).with(completed), nothing},
	"a person has made it":          {made(preparing()).with(func(s *Snapshot) { s.Existing.Spec.Stage, s.Existing.Spec.Reason = v1alpha1.StageIdle, "mine" }), nothing},
	"it is somebody else's":         {made(says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, 2*time.Minute)).with(func(s *Snapshot) { s.Existing.Labels = nil }), notOurs},
	"it is being deleted":           {made(says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, 2*time.Minute)).with(func(s *Snapshot) { s.Existing.DeletionTimestamp = &metav1.Time{Time: noon} }), nothing},
	"its agent reports an old boot": {booted(made(says(v1alpha1.ShutdownPreparing, v1alpha1.ShutdownModeDrain, 2*time.Minute)), time.Second), "nothing; again in 29s"},
}

const notOurs = "nothing; NodeShutdownDetected"

func givesBack(s *Snapshot) { s.Existing.Spec.Deadline.OnDeadline = v1alpha1.DeadlineGiveBack }

func waits(s *Snapshot) { s.Existing.Spec.Deadline.OnDeadline = v1alpha1.DeadlineWait }

func completed(s *Snapshot) { s.Existing.Spec.Stage = v1alpha1.StageComplete }

func TestAMaintenanceFollowsItsNode(t *testing.T) {
	t.Parallel()
	for name, test := range followings {
		before := test.snapshot.Existing.DeepCopy()
		d := Decide(test.snapshot)
		difference.None(t, name, test.want, told(t, name, d))
		if diff := cmp.Diff(before, test.snapshot.Existing); diff != "" {
			t.Errorf("%s: what was observed has changed:\n%s", name, diff)
		}
		if d.Follow == nil {
			continue
		}
		test.snapshot.Existing = d.Follow
		if again := Decide(test.snapshot).Follow; again != nil {
			t.Errorf("%s: it is changed again, to%s", name, untilOf(again))
		}
	}
}

func TestDeleteBefore(t *testing.T) {
	t.Parallel()
	const refusal = "must be from 1% to 100% of the time until the node goes down, or from 10s to 24h, such as 30% or 45s"
	for text, want := range map[string]string{
		"30%": "", "1%": "", "100%": "", "10s": "", "24h": "", "1h30m": "",
		"0%": refusal, "101%": refusal, "-1%": refusal, "%": refusal, "30": refusal, "": refusal, "9s": refusal, "24h1s": refusal, "-1m": refusal, "30 %": refusal,
		"3e1%": refusal, "99999999999999999999%": refusal,
	} {
		_, err := ParseDeleteBefore(text)
		if got := fmt.Sprint(err); got != want && (err != nil || want != "") {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	for text, fine := range map[string]bool{"Default": true, "DaemonSet": true, "Static": true, "": false, "daemonset": false, "All": false} {
		if _, err := ParseDepth(text); (err == nil) != fine {
			t.Errorf("depth %q: error %v, want it taken: %v", text, err, fine)
		}
	}
}
