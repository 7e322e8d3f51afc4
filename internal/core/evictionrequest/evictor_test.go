package evictionrequest_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// evicting is an Eviction in the evictor's turn, which began at noon.
func evicting(t *testing.T) evictionrequest.EvictorSnapshot {
	s := newStage(t)
	pod := s.pod("web-0")
	s.ask("example.com/a", pod)
	s.settle()
	return evictionrequest.EvictorSnapshot{Now: noon, Eviction: s.eviction("pod-1-web-0"), Pod: pod}
}

func refused(words string, times int32) *evacuation.Refusal {
	return &evacuation.Refusal{Outcome: evacuation.Outcome{Result: evacuation.Budgeted, Type: v1alpha1.BlockerPDBExhausted, Budget: "web", Message: words}, Times: times}
}

const later = "; tried again as soon as the budget allows it, which is asked at least once a minute."

// own is what the evictor has reported before.
func own(s *evictionrequest.EvictorSnapshot) *lifecyclev1alpha1.ResponderStatus {
	return &s.Eviction.Status.Responders[0]
}

func at(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(d)} }

// evictorTurns are what is so in the evictor's turn, and what it does then.
var evictorTurns = map[string]struct {
	prepare func(*evictionrequest.EvictorSnapshot)
	evict   bool
	says    string
	done    bool
	again   time.Duration
}{
	"it evicts before it says anything": {func(*evictionrequest.EvictorSnapshot) {}, true, "", false, 3 * time.Minute},
	"it says that it is there":          {func(s *evictionrequest.EvictorSnapshot) { s.Now = noon.Add(3 * time.Minute) }, true, "Pod web-0 is being evicted.", false, 0},
	"a refusal that is new is told": {
		func(s *evictionrequest.EvictorSnapshot) { s.Now, s.Refusal = noon.Add(2*time.Second), refused("no", 1) },
		true, "Eviction refused 1 time: no" + later, false, 0,
	},
	"other words wait a little": {
		func(s *evictionrequest.EvictorSnapshot) {
			s.Now, s.Refusal = noon.Add(15*time.Second), refused("no, thanks", 2)
			own(s).HeartbeatTime, own(s).Message = at(2*time.Second), new("Eviction refused 7 times: no"+later)
		},
		true, "", false, 7 * time.Second,
	},
	"other words are told, and the count goes on": {
		func(s *evictionrequest.EvictorSnapshot) {
			s.Now, s.Refusal = noon.Add(22*time.Second), refused("no, thanks", 2)
			own(s).HeartbeatTime, own(s).Message = at(2*time.Second), new("Eviction refused 7 times: no"+later)
		},
		true, "Eviction refused 9 times: no, thanks" + later, false, 0,
	},
	"the same words wait for the heartbeat": {
		func(s *evictionrequest.EvictorSnapshot) {
			s.Now, s.Refusal = noon.Add(time.Minute), refused("no", 2)
			own(s).HeartbeatTime, own(s).Message = at(2*time.Second), new("Eviction refused 7 times: no"+later)
		},
		true, "", false, 2*time.Minute + 2*time.Second,
	},
	"a count that nobody can count to": {
		func(s *evictionrequest.EvictorSnapshot) {
			s.Now, s.Refusal = noon.Add(time.Hour), refused("no", 2)
			own(s).Message = new("Eviction refused 99999999999999999999999 times: no" + later)
		},
		true, "Eviction refused 2147483647 times: no" + later, false, 0,
	},
	"what was said once is said on": {
		func(s *evictionrequest.EvictorSnapshot) { s.Now, own(s).Message = noon.Add(time.Hour), new("hello") }, true, "hello", false, 0,
	},
	"a pod that terminates is not evicted again": {
		func(s *evictionrequest.EvictorSnapshot) { s.Pod.DeletionTimestamp = at(30 * time.Second) }, false, "", false, 3 * time.Minute,
	},
	"one that terminates for long": {
		func(s *evictionrequest.EvictorSnapshot) {
			s.Now, s.Pod.DeletionTimestamp = noon.Add(4*time.Minute), at(time.Hour)
		},
		false, "Pod web-0 is evicted and terminates; it has until 2026-11-23T13:00:00Z.", false, 0,
	},
	"it is gone": {func(s *evictionrequest.EvictorSnapshot) { s.Pod = nil }, false, "Pod web-0 is gone.", true, 0},
	"it has ended": {
		func(s *evictionrequest.EvictorSnapshot) { s.Pod.Status.Phase = corev1.PodSucceeded }, false, "Pod web-0 has ended: Succeeded.", true, 0,
	},
	"a pod of a DaemonSet": {
		func(s *evictionrequest.EvictorSnapshot) {
			s.Pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Controller: new(true)}}
		}, false, "DaemonSet pods are not evicted: a NodeMaintenance removes them", true, 0,
	},
	"a mirror of a static pod": {
		func(s *evictionrequest.EvictorSnapshot) { podclass.MakeMirror(s.Pod, "node") },
		false, "Static pods are not evicted: a NodeMaintenance takes them down", true, 0,
	},
	"it has reported":            {func(s *evictionrequest.EvictorSnapshot) { s.Pod, own(s).CompletionTime = nil, at(0) }, false, "", false, 0},
	"it is not its turn yet":     {func(s *evictionrequest.EvictorSnapshot) { s.Eviction.Status.TargetResponders[0].State = "Inactive" }, false, "", false, 0},
	"its turn was ended":         {func(s *evictionrequest.EvictorSnapshot) { s.Eviction.Status.TargetResponders[0].State = "Canceled" }, false, "", false, 0},
	"it is none of its business": {func(s *evictionrequest.EvictorSnapshot) { s.Eviction.Status = lifecyclev1alpha1.EvictionStatus{} }, false, "", false, 0},
	"the Eviction is over": {
		func(s *evictionrequest.EvictorSnapshot) {
			s.Eviction.Status.Conditions[0].Status = metav1.ConditionTrue
		}, false, "", false, 0,
	},
}

func TestWhatTheEvictorDoes(t *testing.T) {
	t.Parallel()
	for name, tc := range evictorTurns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := evicting(t)
			tc.prepare(&s)
			d := evictionrequest.DecideEvictor(s)
			says, done := "", false
			if d.Report != nil {
				says, done = *d.Report.Message, d.Report.CompletionTime != nil
				if d.Report.HeartbeatTime.Time.Before(s.Now.Truncate(time.Second)) {
					t.Errorf("it says so at %s, want %s", d.Report.HeartbeatTime, s.Now)
				}
			}
			if d.Evict != tc.evict || says != tc.says || done != tc.done || d.RequeueAfter != tc.again {
				t.Errorf("evicts %v, says %q, is done %v, comes again after %s; want %v, %q, %v, %s", d.Evict, says, done, d.RequeueAfter, tc.evict, tc.says, tc.done, tc.again)
			}
		})
	}
}

// What is reported stays within the API, whatever a webhook answers.
func TestTheEvictorsWordsAreBounded(t *testing.T) {
	t.Parallel()
	s := evicting(t)
	s.Now, s.Refusal = noon.Add(2*time.Second), refused(strings.Repeat("é", 40_000), 1)
	words := *evictionrequest.DecideEvictor(s).Report.Message
	if len(words) > 4000 || !utf8.ValidString(words) || !strings.HasSuffix(words, "é…") {
		t.Errorf("%d bytes that end in %q, want at most 4000 and a clean end", len(words), words[len(words)-9:])
	}
	s.Eviction.Status.Responders[0].HeartbeatTime, s.Eviction.Status.Responders[0].Message = &metav1.Time{Time: noon}, &words
	s.Now = noon.Add(time.Minute)
	if d := evictionrequest.DecideEvictor(s); d.Report != nil {
		t.Errorf("the same words are told again before the heartbeat: %d bytes", len(*d.Report.Message))
	}
}

// A clock that was put back gives no time before an earlier one, which would be refused.
func TestTheEvictorsTimesOnlyGrow(t *testing.T) {
	t.Parallel()
	s := evicting(t)
	s.Now, s.Pod = noon.Add(-3*time.Second), nil
	if d := evictionrequest.DecideEvictor(s); !d.Report.CompletionTime.Time.Equal(noon) {
		t.Errorf("it is done at %s, want %s, when its turn began", d.Report.CompletionTime, noon)
	}
}
