package evacuation_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// told has the Evacuation have said of the responders what it is.
func told(is metav1.ConditionStatus, words string) scene {
	return func(s *evacuation.Snapshot) {
		meta.SetStatusCondition(&s.Evacuation.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionEvictionRequested, Status: is, Reason: v1alpha1.ReasonResponderActive, Message: words,
		})
		s.Evacuation.Status.Message = words
	}
}

// progress is when something was last told of the one whose turn it is.
func progress(when time.Duration) scene {
	return func(s *evacuation.Snapshot) {
		s.Evacuation.Status.EvacuationProgressTimestamp = &metav1.Time{Time: now.Add(when)}
	}
}

// responders are what is known of those of the pod.
func responders(r evacuation.Responders) scene {
	return func(s *evacuation.Snapshot) {
		finalizers(v1alpha1.InstigatorFinalizerPrefix + "descheduler.example.com")(s)
		s.Responders = r
	}
}

// turnOf is that of a responder, who has last said something then.
func turnOf(says string, sign time.Duration) evacuation.Responders {
	return evacuation.Responders{
		Phase: evacuation.RespondersActive, Reason: v1alpha1.ReasonResponderActive, Words: "The leader's turn.", Says: says, Sign: now.Add(sign),
	}
}

var over = evacuation.Responders{Phase: evacuation.RespondersDone, Reason: v1alpha1.ReasonRespondersDone, Words: "All had their turns."}

// What an evacuation does while its pod has responders, "True/ResponderActive: message" of
// what it tells.
func TestRespondersComeFirst(t *testing.T) {
	const first = "True/ResponderActive"
	saved := turnOf("saving", 0)
	saved.Finish = &metav1.Time{Time: now.Add(time.Hour)}
	for name, test := range map[string]struct {
		s     evacuation.Snapshot
		state evacuation.State
		tells string
		again time.Duration
	}{
		"there are none":                       {of(barePod(), responders(evacuation.Responders{})), evacuation.StateEvicting, "", 0},
		"they are asked":                       {of(barePod(), responders(evacuation.Responders{Phase: evacuation.RespondersAwaited, RequeueAfter: time.Second})), evacuation.StateResponding, "", time.Second},
		"they cannot be asked yet":             {of(barePod(), responders(evacuation.Responders{Phase: evacuation.RespondersAwaited, Words: "Why."})), evacuation.StateResponding, "Why.", 0},
		"a turn begins":                        {of(barePod(), responders(turnOf("", 0))), evacuation.StateResponding, first, 0},
		"it says something at once":            {of(barePod(), responders(saved)), evacuation.StateResponding, first, 0},
		"another turn begins":                  {of(barePod(), responders(turnOf("", 0)), told("True", "Another's turn."), progress(-time.Second)), evacuation.StateResponding, first, 0},
		"nothing is new":                       {of(barePod(), responders(turnOf("", 0)), told("True", "The leader's turn."), progress(0)), evacuation.StateResponding, "", 0},
		"what it says waits a little":          {of(barePod(), responders(turnOf("saving", 0)), told("True", "The leader's turn."), progress(-5*time.Second)), evacuation.StateResponding, "", 15 * time.Second},
		"what it says is told":                 {of(barePod(), responders(turnOf("saving", 0)), told("True", "The leader's turn."), progress(-20*time.Second)), evacuation.StateResponding, first, 0},
		"when it will be ready is told":        {of(barePod(), responders(func() evacuation.Responders { r := turnOf("", -time.Minute); r.Finish = saved.Finish; return r }()), told("True", "The leader's turn."), progress(-20*time.Second)), evacuation.StateResponding, first, 0},
		"a sign of life is told":               {of(barePod(), responders(turnOf("", 0)), told("True", "The leader's turn."), progress(-20*time.Second)), evacuation.StateResponding, first, 0},
		"it was told of at a time to come":     {of(barePod(), responders(turnOf("saving", 0)), told("True", "The leader's turn."), progress(time.Hour)), evacuation.StateResponding, "", 20 * time.Second},
		"an evacuator has its report":          {of(barePod(), responders(turnOf("saving", 0)), active("mover", at(-time.Hour)), told("True", "The leader's turn.")), evacuation.StateResponding, "", 0},
		"they have had their turns":            {of(barePod(), responders(over), told("True", "The leader's turn."), progress(0)), evacuation.StateResponding, "False/RespondersDone", 0},
		"nobody could be asked":                {of(barePod(), responders(over)), evacuation.StateResponding, "False/RespondersDone", 0},
		"they are asked no more, for good":     {of(barePod(), responders(turnOf("", 0)), told("False", "All had their turns.")), evacuation.StateEvicting, "", 0},
		"requests are served no more":          {of(barePod(), responders(evacuation.Responders{}), told("True", "The leader's turn.")), evacuation.StateResponding, "False/NotServed", 0},
		"a maintenance asks for the pod":       {of(barePod(), responders(turnOf("", 0)), finalizers(v1alpha1.NodeMaintenanceInstigator, v1alpha1.InstigatorFinalizerPrefix+"a.example.com")), evacuation.StateEvicting, "", 0},
		"a responder of ours asks for it":      {of(barePod(), responders(turnOf("", 0)), finalizers(v1alpha1.LifecycleInstigator, v1alpha1.InstigatorFinalizerPrefix+"a.example.com")), evacuation.StateEvicting, "", 0},
		"only a responder of ours asks for it": {of(barePod(), responders(over), finalizers(v1alpha1.LifecycleInstigator)), evacuation.StateEvicting, "", 0},
	} {
		d := evacuation.Decide(test.s)
		if tells := telling(d); d.State != test.state || tells != test.tells || d.RequeueAfter != test.again || d.Evict != (d.State == evacuation.StateEvicting) {
			t.Errorf("%s: %s, tells %q, again after %s, want %s, %q, %s", name, d.State, tells, d.RequeueAfter, test.state, test.tells, test.again)
		}
	}
}

// telling is what a decision says of responders.
func telling(d evacuation.Decision) string {
	if d.Status == nil {
		return ""
	}
	c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionEvictionRequested)
	if c == nil {
		return d.Status.Message
	}
	return string(c.Status) + "/" + c.Reason + ": " + d.Status.Message
}

// Times of a responder are told while it has its turn, and go with it; those of an evacuator stay.
func TestTheTimesOfAResponderAreItsOwn(t *testing.T) {
	saved := turnOf("saving", time.Minute)
	saved.Finish = &metav1.Time{Time: now.Add(time.Hour)}
	status := evacuation.Decide(of(barePod(), responders(saved))).Status
	if !status.EvacuationProgressTimestamp.Time.Equal(now.Add(time.Minute)) || !status.ExpectedEvacuationFinishTime.Equal(saved.Finish) {
		t.Errorf("progress %v, end %v; want a minute from now, as the responder says, and an hour", status.EvacuationProgressTimestamp, status.ExpectedEvacuationFinishTime)
	}
	ended := of(barePod(), responders(over))
	ended.Evacuation.Status = *status
	if after := evacuation.Decide(ended).Status; after.EvacuationProgressTimestamp != nil || after.ExpectedEvacuationFinishTime != nil {
		t.Errorf("after its turn there is progress %v and end %v, want none", after.EvacuationProgressTimestamp, after.ExpectedEvacuationFinishTime)
	}
	kept := evacuation.Decide(of(barePod(), responders(saved), active("mover", at(-time.Hour)))).Status
	if !kept.EvacuationProgressTimestamp.Time.Equal(now.Add(-time.Hour)) || kept.ExpectedEvacuationFinishTime != nil {
		t.Errorf("the evacuator's progress is %v, and its end %v", kept.EvacuationProgressTimestamp, kept.ExpectedEvacuationFinishTime)
	}
}

// Who calls the eviction API is told of responders by the Eviction. What the Evacuation has
// said of them does not let anybody through that evacuators have wait.
func TestACallerWaitsForEvacuatorsAfterResponders(t *testing.T) {
	want := evacuation.Admit(evacuation.Call{Snapshot: of(webPod(), finalizers(v1alpha1.EvictionInstigator))})
	got := evacuation.Admit(evacuation.Call{Snapshot: of(webPod(), finalizers(v1alpha1.EvictionInstigator), told("True", "The leader's turn."))})
	if want.Admitted || got.Admitted || got.Message != want.Message {
		t.Errorf("the verdict is %+v, want %+v", got, want)
	}
}
