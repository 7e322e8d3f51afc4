package evictionrequest_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const surger = v1alpha1.DeploymentSurgeResponder

var surges = []v1alpha1.Evacuator{{EvacuatorClass: v1alpha1.DeploymentEvacuatorClass, Priority: 10000, Role: "controller"}}

func at(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(d)} }

// turning is an Eviction in a turn of ours that began at noon.
func turning(t *testing.T, responder string) *evictionrequest.TurnSnapshot {
	s := newStage(t)
	var named []string
	if responder == surger {
		named = []string{surger + " 10000"}
	}
	pod := s.pod("web-0", named...)
	s.ask("example.com/a", pod)
	s.settle()
	e := s.eviction("pod-1-web-0")
	return &evictionrequest.TurnSnapshot{
		Now: noon, Eviction: e, Pod: pod, Responder: responder, Clock: noon, Evacuators: surges,
	}
}

// asked has the evacuation under way.
func asked(s *evictionrequest.TurnSnapshot) {
	s.Evacuation = evacuation.InTurn(evacuation.New(s.Pod, v1alpha1.LifecycleInstigator, s.Evacuators),
		evacuation.Turn{Name: s.Eviction.Name, UID: s.Eviction.UID, Responder: s.Responder})
	s.Evacuation.Status = v1alpha1.EvacuationStatus{
		ActiveEvacuatorClass: v1alpha1.DeploymentEvacuatorClass, EvacuationProgressTimestamp: at(0), Message: "Pod web-0 serves on.",
	}
}

// told is what our responder has said before.
func told(s *evictionrequest.TurnSnapshot, when time.Duration, words string) {
	own := evictionrequest.ResponderOf(&s.Eviction.Status, s.Responder)
	own.HeartbeatTime, own.Message = at(when), &words
}

func unsurged(s *evictionrequest.TurnSnapshot) {
	asked(s)
	s.Evacuation.Status.ActiveEvacuatorCompleted = true
	s.Evacuation.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSurged, Status: metav1.ConditionFalse, Message: "Gave up on web-0."}}
}

type turn struct {
	prepare   func(*evictionrequest.TurnSnapshot)
	ask       bool
	says      string
	completes bool
	again     time.Duration
}

// later lets time pass, and what evacuators have reported meanwhile is fresh.
func after(d time.Duration, s *evictionrequest.TurnSnapshot) {
	s.Now, s.Clock = noon.Add(d), noon.Add(d)
}

// surgeTurns are what is so in the turn of ebbtide.dev/deployment-surge.
var surgeTurns = map[string]turn{
	"it asks for the evacuation": {func(*evictionrequest.TurnSnapshot) {}, true, "", false, 5 * time.Second},
	"it lets that go on":         {asked, false, "", false, 5 * time.Second},
	"it tells of what lasts":     {func(s *evictionrequest.TurnSnapshot) { asked(s); after(5*time.Second, s) }, false, "Pod web-0 serves on.", false, 3 * time.Minute},
	"it says that it is there": {func(s *evictionrequest.TurnSnapshot) {
		asked(s)
		told(s, 0, "Pod web-0 serves on.")
		after(3*time.Minute, s)
	}, false, "Pod web-0 serves on.", false, 3 * time.Minute},
	"news wait a little":            {func(s *evictionrequest.TurnSnapshot) { asked(s); told(s, 0, "before"); after(15*time.Second, s) }, false, "", false, 5 * time.Second},
	"and are told":                  {func(s *evictionrequest.TurnSnapshot) { asked(s); told(s, 0, "before"); after(20*time.Second, s) }, false, "Pod web-0 serves on.", false, 3 * time.Minute},
	"a pod that cannot be replaced": {func(s *evictionrequest.TurnSnapshot) { s.Unable = "Nobody's." }, false, "Nobody's.", true, 0},
	"or could not":                  {unsurged, false, "Gave up on web-0.", true, 0},
	"unless somebody else asks": {func(s *evictionrequest.TurnSnapshot) {
		unsurged(s)
		s.Evacuation.Finalizers = append(s.Evacuation.Finalizers, v1alpha1.NodeMaintenanceInstigator)
	}, false, "", false, 5 * time.Second},
	"one that is replaced is evicted by its evacuation": {func(s *evictionrequest.TurnSnapshot) {
		asked(s)
		s.Evacuation.Status.ActiveEvacuatorCompleted = true
		s.Pod.Annotations = map[string]string{v1alpha1.SurgeAnnotation: "{}"}
	}, false, "", false, 5 * time.Second},
	"an evacuator that is silent for too long": {func(s *evictionrequest.TurnSnapshot) {
		asked(s)
		s.Pod.Annotations = map[string]string{v1alpha1.SurgeAnnotation: "{}"}
		told(s, 29*time.Minute, "x")
		after(30*time.Minute, s)
	}, false, "Pod web-0 is not replaced: evacuator deployment.apps.k8s.io has reported no progress since 2026-11-23T12:00:00Z.", true, 0},
	"unless it was away with the manager": {func(s *evictionrequest.TurnSnapshot) {
		asked(s)
		s.Pod.Annotations = map[string]string{v1alpha1.SurgeAnnotation: "{}"}
		told(s, 29*time.Minute, "x")
		after(30*time.Minute, s)
		s.Fresh = evacuation.Lenience
	}, false, "Pod web-0 serves on.", false, 3 * time.Minute},
	"that is known in advance": {func(s *evictionrequest.TurnSnapshot) {
		asked(s)
		told(s, 29*time.Minute, "Pod web-0 serves on.")
		after(29*time.Minute+30*time.Second, s)
	}, false, "", false, 30 * time.Second},
	"the evacuation of a maintenance is joined": {func(s *evictionrequest.TurnSnapshot) {
		asked(s)
		s.Evacuation.Finalizers = []string{v1alpha1.NodeMaintenanceInstigator}
	}, true, "", false, 5 * time.Second},
	"one of an earlier turn is taken over": {func(s *evictionrequest.TurnSnapshot) {
		asked(s)
		s.Evacuation = evacuation.InTurn(s.Evacuation, evacuation.Turn{Name: "pod-1-web-0", UID: "earlier", Responder: surger})
	}, true, "", false, 5 * time.Second},
	"what nobody can read is written anew": {func(s *evictionrequest.TurnSnapshot) {
		asked(s)
		s.Evacuation.Annotations[v1alpha1.EvictionTurnAnnotation] = strings.Repeat("[", 1<<16)
	}, true, "", false, 5 * time.Second},
	"one that goes cannot be joined": {func(s *evictionrequest.TurnSnapshot) {
		asked(s)
		after(5*time.Second, s)
		s.Evacuation.Finalizers, s.Evacuation.DeletionTimestamp = []string{"example.com/mine"}, at(0)
	}, false, "An earlier evacuation of pod web-0 is being deleted; it is asked for again when that is gone.", false, 3 * time.Minute},
	"it terminates": {func(s *evictionrequest.TurnSnapshot) {
		asked(s)
		after(3*time.Minute, s)
		s.Pod.DeletionTimestamp = at(time.Hour)
	}, false, "Pod web-0 is evicted and terminates; it has until 2026-11-23T13:00:00Z.", false, 3 * time.Minute},
	"it is gone":            {func(s *evictionrequest.TurnSnapshot) { asked(s); s.Pod = nil }, false, "Pod web-0 is gone.", true, 0},
	"it has ended":          {func(s *evictionrequest.TurnSnapshot) { s.Pod.Status.Phase = corev1.PodFailed }, false, "Pod web-0 has ended: Failed.", true, 0},
	"it has reported":       {func(s *evictionrequest.TurnSnapshot) { s.Eviction.Status.Responders[0].CompletionTime = at(0) }, false, "", false, 0},
	"its turn was ended":    {func(s *evictionrequest.TurnSnapshot) { s.Eviction.Status.TargetResponders[0].State = "Canceled" }, false, "", false, 0},
	"the turn has not come": {func(s *evictionrequest.TurnSnapshot) { s.Eviction.Status.TargetResponders[0].State = "Inactive" }, false, "", false, 0},
	"the Eviction is over":  {func(s *evictionrequest.TurnSnapshot) { s.Eviction.Status.Conditions[0].Status = metav1.ConditionTrue }, false, "", false, 0},
	"nobody is asked":       {func(s *evictionrequest.TurnSnapshot) { s.Eviction.Status = lifecyclev1alpha1.EvictionStatus{} }, false, "", false, 0},
	"a refusal is repeated": {func(s *evictionrequest.TurnSnapshot) {
		asked(s)
		after(5*time.Second, s)
		s.Evacuation.Status.Message, s.Evacuation.Status.FailedEvictionCounter = "Eviction refused: no", 7
	}, false, "Eviction refused: no", false, 3 * time.Minute},
	"and its count alone is no news": {func(s *evictionrequest.TurnSnapshot) {
		asked(s)
		told(s, 0, "Eviction refused: no")
		after(20*time.Second, s)
		s.Evacuation.Status.Message, s.Evacuation.Status.FailedEvictionCounter = "Eviction refused: no", 8
	}, false, "", false, 160 * time.Second},
}

// evictorEvacuates are what is so in the turn of the default evictor besides that.
var evictorEvacuates = map[string]turn{
	"a pod without evacuators is evacuated": {func(s *evictionrequest.TurnSnapshot) { s.Evacuators = nil }, true, "", false, 3 * time.Minute},
	"and one with some":                     {func(*evictionrequest.TurnSnapshot) {}, true, "", false, 5 * time.Second},
	"and one that is evacuated already": {func(s *evictionrequest.TurnSnapshot) {
		s.Evacuators = nil
		s.Evacuation = evacuation.New(s.Pod, v1alpha1.NodeMaintenanceInstigator, nil)
	}, true, "", false, 3 * time.Minute},
	"also by an evacuation that was over": {func(s *evictionrequest.TurnSnapshot) {
		s.Evacuators = nil
		s.Evacuation = evacuation.New(s.Pod, v1alpha1.NodeMaintenanceInstigator, nil)
		s.Evacuation.Finalizers = nil
	}, true, "", false, 3 * time.Minute},
	"who could not be replaced is evicted by it": {func(s *evictionrequest.TurnSnapshot) {
		unsurged(s)
		after(5*time.Second, s)
	}, false, "Pod web-0 serves on.", false, 3 * time.Minute},
	"pods of DaemonSets are left alone": {func(s *evictionrequest.TurnSnapshot) {
		s.Pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Controller: new(true)}}
	}, false, "DaemonSet pods are not evicted: a NodeMaintenance removes them", true, 0},
	"static pods, too": {func(s *evictionrequest.TurnSnapshot) { podclass.MakeMirror(s.Pod, "node") }, false, "Static pods are not evicted: a NodeMaintenance takes them down", true, 0},
	"a pod that ends": {func(s *evictionrequest.TurnSnapshot) {
		after(10*time.Second, s)
		s.Pod.DeletionTimestamp = at(30 * time.Second)
	}, false, "", false, 170 * time.Second},
}

func TestWhatOurRespondersDo(t *testing.T) {
	t.Parallel()
	for responder, turns := range map[string]map[string]turn{surger: surgeTurns, evictionrequest.DefaultEvictor: evictorEvacuates} {
		for name, test := range turns {
			t.Run(responder+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := turning(t, responder)
				test.prepare(s)
				d := evictionrequest.DecideTurn(*s)
				got := turn{ask: d.Ask != nil, again: d.RequeueAfter}
				if d.Report != nil {
					got.says, got.completes = *d.Report.Message, d.Report.CompletionTime != nil
				}
				if test.prepare = nil; !reflect.DeepEqual(got, test) {
					t.Errorf("it does %+v, want %+v", got, test)
				}
				asksFor(t, s, d.Ask)
			})
		}
	}
}

// asksFor checks in whose turn an evacuation is asked for.
func asksFor(t *testing.T, s *evictionrequest.TurnSnapshot, e *v1alpha1.Evacuation) {
	t.Helper()
	want := evacuation.Turn{Name: s.Eviction.Name, UID: s.Eviction.UID, Responder: s.Responder}
	if e != nil && (!evacuation.ForTurn(e) || evacuation.TurnOf(e) != want) {
		t.Errorf("it asks by %v for %+v", e.Finalizers, evacuation.TurnOf(e))
	}
}

// Messages of evacuators are as long as they like, and expect an end whenever they like.
func TestWhatEvacuatorsSayIsBounded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ finish, want *metav1.Time }{
		"soon":             {at(time.Hour), at(time.Hour)},
		"before it began":  {at(-time.Hour), nil},
		"in a lifetime":    {at(100 * 365 * 24 * time.Hour), nil},
		"when it was said": {at(time.Second), at(time.Second)},
	} {
		s := turning(t, surger)
		asked(s)
		after(time.Minute, s)
		s.Evacuation.Status.Message, s.Evacuation.Status.ExpectedEvacuationFinishTime = strings.Repeat("世", 10000), test.finish
		if name == "when it was said" {
			told(s, 0, "x")
			s.Eviction.Status.Responders[0].ExpectedCompletionTime = at(time.Second)
		}
		d := evictionrequest.DecideTurn(*s)
		if d.Report == nil || len(*d.Report.Message) > 4000 || !d.Report.ExpectedCompletionTime.Equal(test.want) {
			t.Errorf("%s: reports %+v", name, d.Report)
		}
	}
}

// Who claims to ask for an evacuation in a turn of ours is believed only while it is one.
func TestEvacuationsThatNoTurnBacks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*evictionrequest.TurnSnapshot)
		want   bool
	}{
		"in its turn":    {func(*evictionrequest.TurnSnapshot) {}, true},
		"of no Eviction": {func(s *evictionrequest.TurnSnapshot) { s.Eviction = nil }, false},
		"of a namesake":  {func(s *evictionrequest.TurnSnapshot) { s.Eviction.UID = "another" }, false},
		"of another pod": {func(s *evictionrequest.TurnSnapshot) { s.Evacuation.Spec.PodRef.UID = "another" }, false},
		"of somebody else's turn": {func(s *evictionrequest.TurnSnapshot) {
			s.Eviction.Status.TargetResponders[0].State = lifecyclev1alpha1.ResponderStateCompleted
		}, false},
		"of one that was cancelled": {func(s *evictionrequest.TurnSnapshot) {
			s.Eviction.Status.Conditions[0].Status = metav1.ConditionTrue
		}, false},
		"of one that succeeded, as it ends itself": {func(s *evictionrequest.TurnSnapshot) {
			s.Eviction.Status.Conditions[1].Status = metav1.ConditionTrue
		}, true},
		"without a word": {func(s *evictionrequest.TurnSnapshot) { s.Evacuation.Annotations = nil }, false},
	} {
		s := turning(t, surger)
		asked(s)
		test.change(s)
		if got := evictionrequest.Backed(s.Evacuation, s.Eviction, true); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// While Ebbtide is not the controller, the evictor's turn may be another one's: what was asked
// for in ours before is let go, what was asked for in the evictor's own is not, as Ebbtide may
// only not know for a moment.
func TestTheTurnOfAnotherEvictorBacksNothingOfOurs(t *testing.T) {
	t.Parallel()
	for responder, want := range map[string][2]bool{surger: {true, false}, evictionrequest.DefaultEvictor: {true, true}} {
		s := turning(t, surger)
		s.Eviction.Status.TargetResponders[0].State = lifecyclev1alpha1.ResponderStateCompleted
		s.Eviction.Status.TargetResponders[1].State = lifecyclev1alpha1.ResponderStateActive
		s.Responder = responder
		asked(s)
		got := [2]bool{evictionrequest.Backed(s.Evacuation, s.Eviction, true), evictionrequest.Backed(s.Evacuation, s.Eviction, false)}
		if got != want {
			t.Errorf("%s: %t while it is the controller and while not, want %t", responder, got, want)
		}
	}
}

// A clock that was put back gives no time before an earlier one, which would be refused.
func TestTimesOfAResponderOnlyGrow(t *testing.T) {
	t.Parallel()
	s := turning(t, evictionrequest.DefaultEvictor)
	s.Now, s.Pod = noon.Add(-3*time.Second), nil
	if d := evictionrequest.DecideTurn(*s); !d.Report.CompletionTime.Time.Equal(noon) {
		t.Errorf("it is done at %s, want %s, when its turn began", d.Report.CompletionTime, noon)
	}
}
