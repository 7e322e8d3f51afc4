package evacuation_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

var now = time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC)

func at(offset time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(offset)} }

// webPod is a pod with two evacuators, mover before backup.
func webPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-0", UID: "0f1e",
			Labels: map[string]string{"app": "web"},
			Annotations: map[string]string{
				v1alpha1.EvacuatorAnnotationPrefix + "backup.example.com": "10",
				v1alpha1.EvacuatorAnnotationPrefix + "mover.example.com":  "20",
			},
		},
		Spec: corev1.PodSpec{NodeName: "node-one"},
	}
}

func barePod() *corev1.Pod {
	pod := webPod()
	pod.Annotations = nil
	return pod
}

func ownedBy(kind string, pod *corev1.Pod) *corev1.Pod {
	controller := true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "agent", Controller: &controller}}
	return pod
}

// scene is a snapshot that a story begins with and changes.
type scene func(*evacuation.Snapshot)

func of(pod *corev1.Pod, changes ...scene) evacuation.Snapshot {
	evacuators, _ := podclass.Evacuators(pod)
	s := evacuation.Snapshot{
		Now: now, Pod: pod, Evacuators: evacuators,
		Evacuation: evacuation.New(pod, v1alpha1.NodeMaintenanceInstigator, evacuators),
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func active(class string, progress *metav1.Time) scene {
	return func(s *evacuation.Snapshot) {
		s.Evacuation.Status.ActiveEvacuatorClass = class
		s.Evacuation.Status.EvacuationProgressTimestamp = progress
	}
}

func completed(s *evacuation.Snapshot) { s.Evacuation.Status.ActiveEvacuatorCompleted = true }

func forbidden(s *evacuation.Snapshot) {
	s.Evacuation.Status.EvacuationCancellationPolicy = v1alpha1.CancellationForbid
}

func finalizers(list ...string) scene {
	return func(s *evacuation.Snapshot) { s.Evacuation.Finalizers = list }
}

func podGone(s *evacuation.Snapshot) { s.Pod = nil }

func podReplaced(s *evacuation.Snapshot) { s.Pod.UID = "another" }

func terminating(s *evacuation.Snapshot) { s.Pod.DeletionTimestamp = at(time.Minute) }

func finished(s *evacuation.Snapshot) { s.Pod.Status.Phase = corev1.PodSucceeded }

func deleted(s *evacuation.Snapshot) { s.Evacuation.DeletionTimestamp = at(-time.Minute) }

func misnamed(s *evacuation.Snapshot) { s.Evacuation.Name = "anything" }

func unresolved(s *evacuation.Snapshot) { s.Evacuation.Spec.Evacuators = nil }

func refusedBefore(s *evacuation.Snapshot) {
	s.Evacuation.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionEvictionRefused, Status: metav1.ConditionTrue, Reason: string(v1alpha1.BlockerPDBExhausted),
	}}
}

// verdict is what a test asserts of a decision.
type verdict struct {
	State     evacuation.State
	Written   bool   // the status, with a message
	Active    string // status.activeEvacuatorClass, if the status is written
	Resolved  int
	Drop      []string
	Delete    bool
	Evict     bool
	LookAgain time.Duration
	Events    string
}

func summary(d evacuation.Decision) verdict {
	v := verdict{
		State: d.State, Resolved: len(d.Evacuators),
		Drop: d.DropFinalizers, Delete: d.Delete, Evict: d.Evict, LookAgain: d.RequeueAfter,
	}
	if d.Status != nil {
		v.Written, v.Active = d.Status.Message != "", d.Status.ActiveEvacuatorClass
	}
	var reasons []string
	for _, e := range d.Events {
		reasons = append(reasons, e.Reason)
	}
	v.Events = strings.Join(reasons, ",")
	return v
}

type story struct {
	snapshot evacuation.Snapshot
	want     verdict
}

func check(t *testing.T, tests map[string]story) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := tc.snapshot.Evacuation.DeepCopy()
			d := evacuation.Decide(tc.snapshot)
			got := summary(d)
			keepMessages(t, d)
			difference.None(t, "decision", tc.want, got)
			if diff := cmp.Diff(before, tc.snapshot.Evacuation); diff != "" {
				t.Errorf("the snapshot was changed:\n%s", diff)
			}
		})
	}
}

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

// keepMessages compares the messages of a decision with testdata.
func keepMessages(t *testing.T, d evacuation.Decision) {
	t.Helper()
	golden.Message(t, string(d.State), d.Message)
	if d.Status != nil && d.Status.Message != d.Message {
		golden.Message(t, "status", d.Status.Message)
	}
	for _, e := range d.Events {
		if e.Message != d.Message {
			golden.Message(t, e.Reason, e.Message)
		}
	}
}

const ours = v1alpha1.NodeMaintenanceInstigator

func TestThePodIsDone(t *testing.T) {
	other := v1alpha1.InstigatorFinalizerPrefix + "autoscaler.example.com"
	done := verdict{State: evacuation.StateDone, Drop: []string{ours}, Delete: true}
	check(t, map[string]story{
		"gone":                     {of(webPod(), podGone), done},
		"another pod has its name": {of(webPod(), podReplaced), done},
		"it has finished":          {of(webPod(), finished), done},
		"all instigators let go, others hold": {
			of(webPod(), podGone, finalizers("example.com/audit", ours, other)),
			verdict{
				State: evacuation.StateDone, Written: true,
				Drop: []string{ours, other}, Delete: true,
			},
		},
		"a deletion that is under way is not repeated": {
			of(webPod(), podGone, deleted),
			verdict{State: evacuation.StateDone, Drop: []string{ours}},
		},
		"a cancellation may be forbidden, an end may not": {of(webPod(), podGone, forbidden), done},
	})
}

func TestEvacuationWithoutInstigatorEnds(t *testing.T) {
	check(t, map[string]story{
		"cancelled": {
			of(webPod(), finalizers()),
			verdict{State: evacuation.StateCancelled, Delete: true},
		},
		"cancelled and held by another finalizer": {
			of(webPod(), finalizers("example.com/audit"), deleted),
			verdict{State: evacuation.StateCancelled},
		},
		"forbidden: the evacuator goes on, nobody evicts": {
			of(webPod(), finalizers(), forbidden, active("backup.example.com", at(-time.Minute))),
			verdict{
				State: evacuation.StateForbidden, Active: "backup.example.com", Written: true, LookAgain: 29 * time.Minute,
			},
		},
		"forbidden and silent: the next one takes over": {
			of(webPod(), finalizers(), forbidden, active("mover.example.com", at(-time.Hour))), activates("backup.example.com", "EvacuatorReplaced"),
		},
		"nobody with a turn has forbidden it": {
			of(webPod(), finalizers(), forbidden),
			verdict{State: evacuation.StateCancelled, Delete: true},
		},
		"an instigator is left, although somebody deleted the object": {
			of(barePod(), deleted),
			verdict{State: evacuation.StateEvicting, Evict: true},
		},
	})
}

func TestPodsThatAreNotEvicted(t *testing.T) {
	mirror := barePod()
	podclass.MakeMirror(mirror, "node")
	check(t, map[string]story{
		"a pod that terminates": {
			of(barePod(), terminating),
			verdict{State: evacuation.StateTerminating},
		},
		"a pod under a wrong name": {
			of(barePod(), misnamed),
			verdict{
				State: evacuation.StateMismatched, Written: true,
			},
		},
		"a DaemonSet pod that its evacuator leaves alone": {
			of(ownedBy("DaemonSet", barePod()), active(v1alpha1.DaemonSetEvacuatorClass, at(0)), completed),
			verdict{
				State:   evacuation.StateUnevictable,
				Written: true,
				Active:  v1alpha1.DaemonSetEvacuatorClass,
			},
		},
		"a mirror pod whose agent is silent": {
			of(mirror, active(v1alpha1.KubeletEvacuatorClass, at(-time.Hour))),
			verdict{
				State:   evacuation.StateUnevictable,
				Written: true,
				Active:  v1alpha1.KubeletEvacuatorClass,
			},
		},
		"a mirror pod whose agent has just said something": {
			of(mirror, active(v1alpha1.KubeletEvacuatorClass, at(-time.Minute))),
			verdict{
				State:     evacuation.StateEvacuating,
				LookAgain: 29 * time.Minute,
			},
		},
	})
}

// silence is the time after which an evacuator is replaced.
const silence = 1800 * time.Second

// activates is the decision that an evacuator acts from now on.
func activates(class, event string) verdict {
	return verdict{State: evacuation.StateEvacuating, Active: class, Written: true, LookAgain: silence, Events: event}
}

// evicts is the decision when no evacuator is left.
var evicts = verdict{State: evacuation.StateEvicting, Evict: true, Events: "PodEvicted"}

func TestTurns(t *testing.T) {
	check(t, map[string]story{
		"evacuators are recorded before anything else": {
			of(webPod(), unresolved),
			verdict{State: evacuation.StateEvacuating, Resolved: 2},
		},
		"the highest priority goes first": {of(webPod()), activates("mover.example.com", "EvacuatorActivated")},
		"a slightly fast clock is believed": {
			of(webPod(), active("mover.example.com", at(time.Minute))),
			verdict{State: evacuation.StateEvacuating, LookAgain: 31 * time.Minute},
		},
		"a report from the future is not":    {of(webPod(), active("mover.example.com", at(61*time.Second))), activates("mover.example.com", "EvacuatorRestarted")},
		"one without a timestamp begins now": {of(webPod(), active("mover.example.com", nil)), activates("mover.example.com", "EvacuatorRestarted")},
	})
}

func TestHandOver(t *testing.T) {
	check(t, map[string]story{
		"completed and still there: the next one":      {of(webPod(), active("mover.example.com", at(0)), completed), activates("backup.example.com", "EvacuatorReplaced")},
		"silent for too long: the next one":            {of(webPod(), active("mover.example.com", at(-silence))), activates("backup.example.com", "EvacuatorReplaced")},
		"an unknown evacuator hands over to the first": {of(webPod(), active("stranger.example.com", at(0)), completed), activates("mover.example.com", "EvacuatorReplaced")},
		"the last one completed: eviction":             {of(webPod(), active("backup.example.com", at(0)), completed), evicts},
		"the last one is silent: eviction":             {of(webPod(), active("backup.example.com", at(-2*silence))), evicts},
		"the last one comes back: the eviction is put off": {
			of(webPod(), active("backup.example.com", at(-time.Minute)), refusedBefore),
			verdict{
				State: evacuation.StateEvacuating, Active: "backup.example.com", Written: true, LookAgain: 29 * time.Minute, Events: "EvacuatorReturned",
			},
		},
		"without evacuators: eviction": {of(barePod()), verdict{State: evacuation.StateEvicting, Evict: true}},
	})
}

func TestHandOverRestartsTheTurn(t *testing.T) {
	s := of(webPod(), active("mover.example.com", at(-time.Hour)), forbidden)
	s.Evacuation.Status.ExpectedEvacuationFinishTime = at(time.Hour)
	s.Evacuation.Status.FailedEvictionCounter = 3
	d := evacuation.Decide(s)
	want := &v1alpha1.EvacuationStatus{
		ActiveEvacuatorClass:         "backup.example.com",
		EvacuationProgressTimestamp:  at(0),
		EvacuationCancellationPolicy: v1alpha1.CancellationForbid,
		FailedEvictionCounter:        3,
		Message:                      d.Message,
	}
	difference.None(t, "status", want, d.Status)
}
