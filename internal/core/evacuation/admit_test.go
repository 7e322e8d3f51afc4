package evacuation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/test/difference"
)

const nowText = "2026-03-01T08:00:00Z"

func noEvacuation(s *evacuation.Snapshot) { s.Evacuation = nil }

func noPod(s *evacuation.Snapshot) { s.Pod, s.Evacuation = nil, nil }

func expected(offset time.Duration) scene {
	return func(s *evacuation.Snapshot) { s.Evacuation.Status.ExpectedEvacuationFinishTime = at(offset) }
}

func TestACallOfTheEvictionAPIIsAdmitted(t *testing.T) {
	mirror := barePod()
	podclass.MakeMirror(mirror, "node")
	tests := map[string]struct {
		snapshot evacuation.Snapshot
		attempt  string
	}{
		"no such pod":                         {snapshot: of(webPod(), noPod)},
		"no evacuator":                        {snapshot: of(barePod(), noEvacuation)},
		"no evacuator, and it is evicted":     {snapshot: of(barePod())},
		"a mirror pod":                        {snapshot: of(mirror, noEvacuation)},
		"a mirror pod under a maintenance":    {snapshot: of(mirror, active(v1alpha1.KubeletEvacuatorClass, at(0)))},
		"a DaemonSet pod with none but ours":  {snapshot: of(ownedBy("DaemonSet", barePod()), noEvacuation)},
		"the same under a maintenance":        {snapshot: of(ownedBy("DaemonSet", barePod()), active(v1alpha1.DaemonSetEvacuatorClass, at(0)))},
		"it terminates":                       {snapshot: of(webPod(), terminating, noEvacuation)},
		"it has finished":                     {snapshot: of(webPod(), finished, noEvacuation)},
		"the last evacuator has completed":    {snapshot: of(webPod(), active("backup.example.com", at(0)), completed)},
		"the last evacuator is silent":        {snapshot: of(webPod(), active("backup.example.com", at(-time.Hour)))},
		"evicted by a maintenance":            {snapshot: of(webPod(), active("backup.example.com", at(0)), completed, called(-time.Minute), finalizers(ours))},
		"evicted in the name of its callers":  {of(webPod(), active("backup.example.com", at(0)), completed, called(-time.Minute)), nowText},
		"the same, noted a moment ago":        {snapshot: of(webPod(), active("backup.example.com", at(0)), completed, called(-29*time.Second))},
		"the same, not noted for a long time": {of(webPod(), active("backup.example.com", at(0)), completed, called(-time.Hour)), nowText},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := evacuation.Admit(evacuation.Call{Snapshot: tc.snapshot})
			difference.None(t, "verdict", evacuation.Verdict{Admitted: true, Attempt: tc.attempt}, got)
		})
	}
}

// Drainers call by name, and stop when the pod is not found.
func TestACallerWhosePodHasGoneIsDone(t *testing.T) {
	pod := webPod()
	pod.Spec.NodeName = "other"
	got := evacuation.Admit(evacuation.Call{Snapshot: of(pod, noEvacuation), Meant: "earlier"})
	want := evacuation.Verdict{Gone: true, Message: "pod web-0 with UID earlier is gone; the pod of this name on node other has come after it"}
	difference.None(t, "verdict", want, got)
	got = evacuation.Admit(evacuation.Call{Snapshot: of(pod, noEvacuation), Meant: "earlier", Only: evacuation.PodVersion{UID: pod.UID}})
	if got.Gone {
		t.Errorf("verdict %+v for a call that names this very pod", got)
	}
}

// moves is what a caller is told while an evacuator is at it.
func moves(class, facts string) string {
	return "evacuation in progress: " + class + " moves pod web-0 (" + facts + "); try again until the pod is gone"
}

type waiting struct {
	snapshot evacuation.Snapshot
	want     evacuation.Verdict
}

func checkWaiting(t *testing.T, tests map[string]waiting) {
	t.Helper()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := tc.snapshot.Evacuation.DeepCopy()
			got := evacuation.Admit(evacuation.Call{Snapshot: tc.snapshot, Only: evacuation.PodVersion{UID: tc.snapshot.Pod.UID, ResourceVersion: tc.snapshot.Pod.ResourceVersion}})
			difference.None(t, "verdict", tc.want, got)
			if diff := cmp.Diff(before, tc.snapshot.Evacuation); diff != "" {
				t.Errorf("the snapshot was changed:\n%s", diff)
			}
		})
	}
}

func TestACallJoinsAnEvacuation(t *testing.T) {
	joins := func(message string) evacuation.Verdict {
		return evacuation.Verdict{Message: message, Attempt: nowText, Join: true}
	}
	fresh := moves("mover.example.com", "asked for at 2026-03-01T07:59:59Z, last progress at 2026-03-01T08:00:00Z")
	checkWaiting(t, map[string]waiting{
		"a maintenance's evacuator is at it": {
			of(webPod(), created(-10*time.Minute), active("mover.example.com", at(-time.Minute)), expected(time.Hour)),
			joins(moves("mover.example.com", "asked for at 2026-03-01T07:50:00Z, last progress at 2026-03-01T07:59:00Z, expected to end at 2026-03-01T09:00:00Z")),
		},
		"nobody has begun":                         {of(webPod(), created(-time.Second)), joins(fresh)},
		"nobody has begun and nothing is resolved": {of(webPod(), created(-time.Second), unresolved), joins(fresh)},
		"nobody asked any more, and it may not be cancelled": {
			of(webPod(), created(-time.Hour), active("mover.example.com", at(0)), forbidden, finalizers()),
			joins(moves("mover.example.com", "asked for at 2026-03-01T07:00:00Z, last progress at 2026-03-01T08:00:00Z")),
		},
	})
}

func TestACallIsRepeated(t *testing.T) {
	message := moves("mover.example.com", "asked for at 2026-03-01T07:00:00Z, last progress at 2026-03-01T08:00:00Z")
	turn := active("mover.example.com", at(0))
	checkWaiting(t, map[string]waiting{
		"its note is old": {
			of(webPod(), created(-time.Hour), turn, called(-30*time.Second)), evacuation.Verdict{Message: message, Attempt: nowText},
		},
		"its note is from the future": {
			of(webPod(), created(-time.Hour), turn, called(time.Hour)), evacuation.Verdict{Message: message, Attempt: nowText},
		},
		"somebody deleted the evacuation": {
			of(webPod(), created(-time.Hour), turn, called(0), deleted), evacuation.Verdict{Message: message},
		},
		"the next one takes over": {
			of(webPod(), created(-time.Hour), active("mover.example.com", at(-time.Hour)), called(0)),
			evacuation.Verdict{Message: moves("backup.example.com", "asked for at 2026-03-01T07:00:00Z, last progress at 2026-03-01T08:00:00Z")},
		},
		"an earlier evacuation is going": {
			of(webPod(), deleted, finalizers("example.com/audit")),
			evacuation.Verdict{Message: "an earlier evacuation of pod web-0 is being deleted and held by example.com/audit; try again when it is gone"},
		},
	})
}

func TestTheFirstCallAsksForAnEvacuation(t *testing.T) {
	s := of(webPod())
	want := evacuation.New(s.Pod, v1alpha1.EvictionInstigator, s.Evacuators)
	metav1.SetMetaDataAnnotation(&want.ObjectMeta, v1alpha1.EvictionAttemptAnnotation, nowText)
	noEvacuation(&s)
	got := evacuation.Admit(evacuation.Call{Snapshot: s})
	if diff := cmp.Diff(evacuation.Verdict{
		Message: "evacuation in progress: mover.example.com is asked to move pod web-0; try again until the pod is gone",
		Create:  want,
	}, got); diff != "" {
		t.Errorf("verdict (-want +got):\n%s", diff)
	}
}

// A DaemonSet pod that somebody else can move waits for that one, but then not for us.
func TestADaemonSetPodWithAnotherEvacuatorWaits(t *testing.T) {
	early := ownedBy("DaemonSet", barePod())
	early.Annotations = map[string]string{v1alpha1.EvacuatorAnnotationPrefix + "mover.example.com": "20000"}
	for name, tc := range map[string]struct {
		snapshot evacuation.Snapshot
		want     bool
	}{
		"others come after ours":                 {of(ownedBy("DaemonSet", webPod()), noEvacuation), false},
		"others come after ours, ours is active": {of(ownedBy("DaemonSet", webPod()), active(v1alpha1.DaemonSetEvacuatorClass, at(0))), false},
		"another one comes first":                {of(early.DeepCopy(), noEvacuation), false},
		"another one is active":                  {of(early.DeepCopy(), active("mover.example.com", at(0))), false},
		"another one has completed":              {of(early.DeepCopy(), active("mover.example.com", at(0)), completed), true},
		"only ours is left":                      {of(early.DeepCopy(), active(v1alpha1.DaemonSetEvacuatorClass, at(0))), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := evacuation.Admit(evacuation.Call{Snapshot: tc.snapshot}); got.Admitted != tc.want {
				t.Errorf("verdict %+v, want admitted %v", got, tc.want)
			}
		})
	}
}
