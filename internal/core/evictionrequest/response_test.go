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
	"ebbtide.dev/ebbtide/test/golden"
)

const surger = v1alpha1.DeploymentSurgeResponder

var surges = []v1alpha1.Evacuator{{EvacuatorClass: v1alpha1.DeploymentEvacuatorClass, Priority: 10000, Role: "controller"}}

func at(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(d)} }

// active returns an Eviction in which a responder of ours became active at noon.
func active(t *testing.T, responder string) *evictionrequest.ResponseSnapshot {
	s := newStage(t)
	var named []string
	if responder == surger {
		named = []string{surger + " 10000"}
	}
	pod := s.pod("web-0", named...)
	s.ask("example.com/a", pod)
	s.settle()
	e := s.eviction("pod-1-web-0")
	return &evictionrequest.ResponseSnapshot{
		Now: noon, Eviction: e, Pod: pod, Responder: responder, Clock: noon, Evacuators: surges,
	}
}

// asked has the evacuation under way.
func asked(s *evictionrequest.ResponseSnapshot) {
	s.Evacuation = evacuation.ForResponder(evacuation.New(s.Pod, v1alpha1.LifecycleInstigator, s.Evacuators),
		evacuation.Cause{Name: s.Eviction.Name, UID: s.Eviction.UID, Responder: s.Responder})
	s.Evacuation.Status = v1alpha1.EvacuationStatus{
		ActiveEvacuatorClass: v1alpha1.DeploymentEvacuatorClass, EvacuationProgressTimestamp: at(0), Message: "Pod web-0 serves on.",
	}
}

// change prepares a snapshot.
type change = func(*evictionrequest.ResponseSnapshot)

// then makes changes one after the other.
func then(changes ...change) change {
	return func(s *evictionrequest.ResponseSnapshot) {
		for _, change := range changes {
			change(s)
		}
	}
}

// told is what our responder has said before.
func told(when time.Duration, words string) change {
	return func(s *evictionrequest.ResponseSnapshot) {
		own := evictionrequest.ResponderOf(&s.Eviction.Status, s.Responder)
		own.HeartbeatTime, own.Message = at(when), &words
	}
}

func unsurged(s *evictionrequest.ResponseSnapshot) {
	asked(s)
	s.Evacuation.Status.ActiveEvacuatorCompleted = true
	s.Evacuation.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSurged, Status: metav1.ConditionFalse, Message: "Gave up on web-0."}}
}

type response struct {
	prepare   func(*evictionrequest.ResponseSnapshot)
	requests  bool
	reports   bool
	completes bool
	again     time.Duration
}

// after lets time pass, and what evacuators have reported meanwhile is fresh.
func after(d time.Duration) change {
	return func(s *evictionrequest.ResponseSnapshot) { s.Now, s.Clock = noon.Add(d), noon.Add(d) }
}

func unchanged(*evictionrequest.ResponseSnapshot) {}

func detached(s *evictionrequest.ResponseSnapshot) {
	s.Pod.Annotations = map[string]string{v1alpha1.SurgeAnnotation: "{}"}
}

func noEvacuators(s *evictionrequest.ResponseSnapshot) { s.Evacuators = nil }

// byMaintenance has a maintenance ask for the evacuation.
func byMaintenance(s *evictionrequest.ResponseSnapshot) {
	s.Evacuation = evacuation.New(s.Pod, v1alpha1.NodeMaintenanceInstigator, nil)
}

func terminating(until time.Duration) change {
	return func(s *evictionrequest.ResponseSnapshot) { s.Pod.DeletionTimestamp = at(until) }
}

// refused is an eviction that was refused so often.
func refused(times int32) change {
	return func(s *evictionrequest.ResponseSnapshot) {
		s.Evacuation.Status.Message, s.Evacuation.Status.FailedEvictionCounter = "Eviction refused: no", times
	}
}

// surgeResponses holds the acts of ebbtide.dev/deployment-surge.
var surgeResponses = map[string]response{
	"it asks for the evacuation":    {unchanged, true, false, false, 5 * time.Second},
	"it lets that go on":            {asked, false, false, false, 5 * time.Second},
	"it tells of what lasts":        {then(asked, after(5*time.Second)), false, true, false, 3 * time.Minute},
	"it says that it is there":      {then(asked, told(0, "Pod web-0 serves on."), after(3*time.Minute)), false, true, false, 3 * time.Minute},
	"news wait a little":            {then(asked, told(0, "before"), after(15*time.Second)), false, false, false, 5 * time.Second},
	"and are told":                  {then(asked, told(0, "before"), after(20*time.Second)), false, true, false, 3 * time.Minute},
	"a pod that cannot be replaced": {func(s *evictionrequest.ResponseSnapshot) { s.Unable = "Nobody's." }, false, true, true, 0},
	"or could not":                  {unsurged, false, true, true, 0},
	"unless somebody else asks": {then(unsurged, func(s *evictionrequest.ResponseSnapshot) {
		s.Evacuation.Finalizers = append(s.Evacuation.Finalizers, v1alpha1.NodeMaintenanceInstigator)
	}), false, false, false, 5 * time.Second},
	"one that is replaced is evicted by its evacuation": {then(asked, func(s *evictionrequest.ResponseSnapshot) { s.Evacuation.Status.ActiveEvacuatorCompleted = true }, detached), false, false, false, 5 * time.Second},
	"an evacuator that is silent for too long":          {then(asked, detached, told(29*time.Minute, "x"), after(30*time.Minute)), false, true, true, 0},
	"unless it was away with the manager":               {then(asked, detached, told(29*time.Minute, "x"), after(30*time.Minute), func(s *evictionrequest.ResponseSnapshot) { s.Fresh = evacuation.Lenience }), false, true, false, 3 * time.Minute},
	"that is known in advance":                          {then(asked, told(29*time.Minute, "Pod web-0 serves on."), after(29*time.Minute+30*time.Second)), false, false, false, 30 * time.Second},
	"the evacuation of a maintenance is joined": {then(asked, func(s *evictionrequest.ResponseSnapshot) {
		s.Evacuation.Finalizers = []string{v1alpha1.NodeMaintenanceInstigator}
	}), true, false, false, 5 * time.Second},
	"one of an earlier Eviction is taken over": {then(asked, func(s *evictionrequest.ResponseSnapshot) {
		s.Evacuation = evacuation.ForResponder(s.Evacuation, evacuation.Cause{Name: "pod-1-web-0", UID: "earlier", Responder: surger})
	}), true, false, false, 5 * time.Second},
	"a malformed cause is replaced": {then(asked, func(s *evictionrequest.ResponseSnapshot) {
		s.Evacuation.Annotations[v1alpha1.EvictionTurnAnnotation] = strings.Repeat("[", 1<<16)
	}), true, false, false, 5 * time.Second},
	"one that goes cannot be joined": {then(asked, after(5*time.Second), func(s *evictionrequest.ResponseSnapshot) {
		s.Evacuation.Finalizers, s.Evacuation.DeletionTimestamp = []string{"example.com/mine"}, at(0)
	}), false, true, false, 3 * time.Minute},
	"it terminates":        {then(asked, after(3*time.Minute), terminating(time.Hour)), false, true, false, 3 * time.Minute},
	"it is gone":           {then(asked, func(s *evictionrequest.ResponseSnapshot) { s.Pod = nil }), false, true, true, 0},
	"it has ended":         {func(s *evictionrequest.ResponseSnapshot) { s.Pod.Status.Phase = corev1.PodFailed }, false, true, true, 0},
	"it has reported":      {func(s *evictionrequest.ResponseSnapshot) { s.Eviction.Status.Responders[0].CompletionTime = at(0) }, false, false, false, 0},
	"it was canceled":      {func(s *evictionrequest.ResponseSnapshot) { s.Eviction.Status.TargetResponders[0].State = "Canceled" }, false, false, false, 0},
	"it is not active yet": {func(s *evictionrequest.ResponseSnapshot) { s.Eviction.Status.TargetResponders[0].State = "Inactive" }, false, false, false, 0},
	"the Eviction is over": {func(s *evictionrequest.ResponseSnapshot) {
		s.Eviction.Status.Conditions[0].Status = metav1.ConditionTrue
	}, false, false, false, 0},
	"nobody is asked":                {func(s *evictionrequest.ResponseSnapshot) { s.Eviction.Status = lifecyclev1alpha1.EvictionStatus{} }, false, false, false, 0},
	"a refusal is repeated":          {then(asked, after(5*time.Second), refused(7)), false, true, false, 3 * time.Minute},
	"and its count alone is no news": {then(asked, told(0, "Eviction refused: no"), after(20*time.Second), refused(8)), false, false, false, 160 * time.Second},
}

// evictorResponses holds the acts of the default evictor.
var evictorResponses = map[string]response{
	"a pod without evacuators is evacuated":      {noEvacuators, true, false, false, 3 * time.Minute},
	"and one with some":                          {unchanged, true, false, false, 5 * time.Second},
	"and one that is evacuated already":          {then(noEvacuators, byMaintenance), true, false, false, 3 * time.Minute},
	"also by an evacuation that was over":        {then(noEvacuators, byMaintenance, func(s *evictionrequest.ResponseSnapshot) { s.Evacuation.Finalizers = nil }), true, false, false, 3 * time.Minute},
	"who could not be replaced is evicted by it": {then(unsurged, after(5*time.Second)), false, true, false, 3 * time.Minute},
	"pods of DaemonSets are left alone": {func(s *evictionrequest.ResponseSnapshot) {
		s.Pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Controller: new(true)}}
	}, false, true, true, 0},
	"static pods, too": {func(s *evictionrequest.ResponseSnapshot) { podclass.MakeMirror(s.Pod, "node") }, false, true, true, 0},
	"a pod that ends":  {then(after(10*time.Second), terminating(30*time.Second)), false, false, false, 170 * time.Second},
}

func TestResponderActsOnItsEviction(t *testing.T) {
	t.Parallel()
	for responder, responses := range map[string]map[string]response{surger: surgeResponses, evictionrequest.DefaultEvictor: evictorResponses} {
		for name, test := range responses {
			t.Run(responder+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := active(t, responder)
				test.prepare(s)
				d := evictionrequest.DecideResponse(*s)
				got := response{requests: d.Evacuation != nil, reports: d.Report != nil, again: d.RequeueAfter}
				if got.reports {
					got.completes = d.Report.CompletionTime != nil
					golden.Message(t, *d.Report.Message)
				}
				if test.prepare = nil; !reflect.DeepEqual(got, test) {
					t.Errorf("it does %+v, want %+v", got, test)
				}
				isFor(t, s, d.Evacuation)
			})
		}
	}
}

// isFor checks the cause of an Evacuation.
func isFor(t *testing.T, s *evictionrequest.ResponseSnapshot, e *v1alpha1.Evacuation) {
	t.Helper()
	want := evacuation.Cause{Name: s.Eviction.Name, UID: s.Eviction.UID, Responder: s.Responder}
	if e != nil && (!evacuation.IsForResponder(e) || evacuation.CauseOf(e) != want) {
		t.Errorf("requested by %v for %+v", e.Finalizers, evacuation.CauseOf(e))
	}
}

// Messages of evacuators are as long as they like, and expect an end whenever they like.
func TestReportOfAnEvacuatorIsBounded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ finish, want *metav1.Time }{
		"soon":             {at(time.Hour), at(time.Hour)},
		"before it began":  {at(-time.Hour), nil},
		"in a lifetime":    {at(100 * 365 * 24 * time.Hour), nil},
		"when it was said": {at(time.Second), at(time.Second)},
	} {
		s := active(t, surger)
		asked(s)
		after(time.Minute)(s)
		s.Evacuation.Status.Message, s.Evacuation.Status.ExpectedEvacuationFinishTime = strings.Repeat("世", 10000), test.finish
		if name == "when it was said" {
			told(0, "x")(s)
			s.Eviction.Status.Responders[0].ExpectedCompletionTime = at(time.Second)
		}
		d := evictionrequest.DecideResponse(*s)
		if d.Report == nil || len(*d.Report.Message) > 4000 || !d.Report.ExpectedCompletionTime.Equal(test.want) {
			t.Errorf("%s: reports %+v", name, d.Report)
		}
	}
}

func TestForgedEvacuationIsNotBacked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*evictionrequest.ResponseSnapshot)
		want   bool
	}{
		"in its turn":    {func(*evictionrequest.ResponseSnapshot) {}, true},
		"of no Eviction": {func(s *evictionrequest.ResponseSnapshot) { s.Eviction = nil }, false},
		"of a namesake":  {func(s *evictionrequest.ResponseSnapshot) { s.Eviction.UID = "another" }, false},
		"of another pod": {func(s *evictionrequest.ResponseSnapshot) { s.Evacuation.Spec.PodRef.UID = "another" }, false},
		"of somebody else's turn": {func(s *evictionrequest.ResponseSnapshot) {
			s.Eviction.Status.TargetResponders[0].State = lifecyclev1alpha1.ResponderStateCompleted
		}, false},
		"of one that was cancelled": {func(s *evictionrequest.ResponseSnapshot) {
			s.Eviction.Status.Conditions[0].Status = metav1.ConditionTrue
		}, false},
		"of one that succeeded, as it ends itself": {func(s *evictionrequest.ResponseSnapshot) {
			s.Eviction.Status.Conditions[1].Status = metav1.ConditionTrue
		}, true},
		"without a word": {func(s *evictionrequest.ResponseSnapshot) { s.Evacuation.Annotations = nil }, false},
	} {
		s := active(t, surger)
		asked(s)
		test.change(s)
		if got := evictionrequest.IsBacked(s.Evacuation, s.Eviction, true); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// While Ebbtide is not the controller, the default evictor may be another program: what our other
// responder requested is released. Its own requests stay, as Ebbtide may be the controller again.
func TestAnotherEvictorBacksNoEvacuationOfOurs(t *testing.T) {
	t.Parallel()
	for responder, want := range map[string][2]bool{surger: {true, false}, evictionrequest.DefaultEvictor: {true, true}} {
		s := active(t, surger)
		s.Eviction.Status.TargetResponders[0].State = lifecyclev1alpha1.ResponderStateCompleted
		s.Eviction.Status.TargetResponders[1].State = lifecyclev1alpha1.ResponderStateActive
		s.Responder = responder
		asked(s)
		got := [2]bool{evictionrequest.IsBacked(s.Evacuation, s.Eviction, true), evictionrequest.IsBacked(s.Evacuation, s.Eviction, false)}
		if got != want {
			t.Errorf("%s: %t while it is the controller and while not, want %t", responder, got, want)
		}
	}
}

// A clock that was put back gives no time before an earlier one, which would be refused.
func TestReportTimesNeverDecrease(t *testing.T) {
	t.Parallel()
	s := active(t, evictionrequest.DefaultEvictor)
	s.Now, s.Pod = noon.Add(-3*time.Second), nil
	if d := evictionrequest.DecideResponse(*s); !d.Report.CompletionTime.Time.Equal(noon) {
		t.Errorf("it is done at %s, want %s, when its turn began", d.Report.CompletionTime, noon)
	}
}
