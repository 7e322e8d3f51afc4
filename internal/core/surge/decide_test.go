package surge_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/test/golden"
)

var now = time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// scene is a snapshot that a story begins with and changes: Deployment web with
// so many available pods, web-0 the oldest, in one ReplicaSet web-abc.
type scene struct {
	surge.Snapshot
}

func web(replicas int) *scene {
	s := &scene{surge.Snapshot{Now: now, Mode: surge.Annotated, Name: "web"}}
	s.Deployment = &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(replicas)),
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1))}},
		},
	}
	s.ReplicaSets = []*appsv1.ReplicaSet{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-abc", UID: "uid-abc"},
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(replicas))},
	}}
	for range replicas {
		s.newcomer(true)
	}
	return s
}

// newcomer adds the next pod of the ReplicaSet.
func (s *scene) newcomer(available bool) *scene {
	number := len(s.Pods)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("web-%d", number), UID: types.UID(fmt.Sprintf("uid-%d", number)),
			CreationTimestamp: ago(time.Hour - time.Duration(number)*time.Minute),
			Labels:            map[string]string{"app": "web", hashLabel: "abc"},
			OwnerReferences:   owner(s.ReplicaSets[0]),
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	setReady(pod, available, now.Add(-time.Minute))
	s.Pods = append(s.Pods, pod)
	return s
}

// evacuated gives us the turn to move a pod.
func (s *scene) evacuated(number int) *scene {
	e := evacuation.New(s.Pods[number], v1alpha1.NodeMaintenanceInstigator, nil)
	e.CreationTimestamp = ago(time.Minute)
	e.Status.ActiveEvacuatorClass = v1alpha1.DeploymentEvacuatorClass
	e.Status.EvacuationProgressTimestamp = new(ago(5 * time.Second))
	s.Evacuations = append(s.Evacuations, e)
	return s
}

// detached is the state after a pod was detached and released so long ago.
func (s *scene) detached(number int, since time.Duration) *scene {
	pod := s.Pods[number]
	pod.Labels[hashLabel] = "detached-by-ebbtide"
	pod.OwnerReferences = nil
	pod.Annotations = map[string]string{v1alpha1.SurgeAnnotation: fmt.Sprintf(
		`{"pod":%q,"deployment":{"name":"web","uid":"uid-web"},"replicaSet":{"name":"web-abc","uid":"uid-abc"},"hash":"abc","since":%q,"need":%d}`,
		pod.UID, ago(since).Format(time.RFC3339), *s.Deployment.Spec.Replicas)}
	return s
}

func (s *scene) with(change func(*scene)) *scene {
	change(s)
	return s
}

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

// summary is what a decision does, one line for every write; testdata/messages.txt has the words.
func summary(t *testing.T, d surge.Decision) []string {
	t.Helper()
	var lines []string
	for _, move := range d.Moves {
		for i := range move {
			golden.Message(t, line(&move[i]), move[i].Message)
			lines = append(lines, line(&move[i]))
		}
	}
	if d.RequeueAfter > 0 {
		lines = append(lines, "again in "+d.RequeueAfter.String())
	}
	return lines
}

func line(w *surge.Write) string {
	var what string
	switch {
	case w.Evacuation != nil && w.Status.ActiveEvacuatorCompleted:
		what = "complete"
	case w.Evacuation != nil:
		what = "report"
	case w.Changed == nil:
		what = "delete " + w.Pod.Name
	default:
		what = fmt.Sprintf("%s: %s", w.Pod.Name, changes(w.Pod, w.Changed))
	}
	for _, e := range w.Events {
		what += " +" + e.Reason
	}
	if w.Result != "" {
		what += fmt.Sprintf(" (%s)", w.Result)
	}
	return what
}

// changes shows labels and annotations that differ, by the last part of their keys.
func changes(before, after *corev1.Pod) string {
	var differ []string
	for _, pair := range []struct{ before, after map[string]string }{{before.Labels, after.Labels}, {before.Annotations, after.Annotations}} {
		for key, value := range pair.after {
			if pair.before[key] != value {
				differ = append(differ, fmt.Sprintf("%s=%s", key[strings.LastIndex(key, "/")+1:], value))
			}
		}
		for key := range pair.before {
			if _, kept := pair.after[key]; !kept {
				differ = append(differ, key[strings.LastIndex(key, "/")+1:]+"-")
			}
		}
	}
	slices.Sort(differ)
	return strings.Join(differ, " ")
}

type story struct {
	scene *scene
	want  []string
}

func check(t *testing.T, stories map[string]story) {
	t.Helper()
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := summary(t, surge.Decide(story.scene.Snapshot))
			if diff := cmp.Diff(story.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// record is the annotation of a pod that was detached just now.
func record(number, need int) string {
	return fmt.Sprintf(`surge={"pod":"uid-%d","deployment":{"name":"web","uid":"uid-web"},"replicaSet":{"name":"web-abc","uid":"uid-abc"},"hash":"abc","since":"2026-03-01T08:00:00Z","need":%d}`, number, need)
}

const (
	detaches   = "pod-template-hash=detached-by-ebbtide "
	detachedBy = " +PodDetached"
)

func TestAPodIsDetached(t *testing.T) {
	t.Parallel()
	check(t, map[string]story{
		"the only one": {
			web(1).evacuated(0),
			[]string{"web-0: " + detaches + record(0, 1) + detachedBy},
		},
		"one of several, the oldest evacuation first": {
			web(3).evacuated(2).evacuated(1).with(func(s *scene) { s.Evacuations[1].CreationTimestamp = ago(time.Hour) }),
			[]string{"web-1: " + detaches + record(1, 3) + detachedBy, "again in 5s"},
		},
		"where others are broken, no more are needed than there were": {
			web(2).newcomer(false).evacuated(0),
			[]string{"web-0: " + detaches + record(0, 2) + detachedBy},
		},
		"two at a time": {
			web(2).evacuated(0).evacuated(1).with(func(s *scene) { s.Deployment.Spec.Strategy.RollingUpdate.MaxSurge = new(intstr.FromString("100%")) }),
			[]string{"web-0: " + detaches + record(0, 2) + detachedBy, "web-1: " + detaches + record(1, 2) + detachedBy},
		},
		"not when it leaves already": {
			web(1).evacuated(0).with(func(s *scene) { s.Pods[0].DeletionTimestamp = new(ago(0)) }), nil,
		},
		"not when it is another's turn": {
			web(1).evacuated(0).with(func(s *scene) { s.Evacuations[0].Status.ActiveEvacuatorClass = "mover.example.com" }), nil,
		},
		"not when nobody asks": {
			web(1).evacuated(0).with(func(s *scene) { s.Evacuations[0].Finalizers = nil }), nil,
		},
	})
}

func claim(modes ...corev1.PersistentVolumeAccessMode) func(*scene) {
	return func(s *scene) {
		s.Claims = []*corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: modes},
		}}
	}
}

func TestAPodThatCannotSurgeIsLeftToOthers(t *testing.T) {
	t.Parallel()
	refused := []string{"complete +NotSurged (ineligible)"}
	check(t, map[string]story{
		"Recreate": {
			web(1).evacuated(0).with(func(s *scene) { s.Deployment.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType }),
			refused,
		},
		"paused":   {web(1).evacuated(0).with(func(s *scene) { s.Deployment.Spec.Paused = true }), refused},
		"one node": {web(1).evacuated(0).with(claim(corev1.ReadWriteOnce)), refused},
		"one pod":  {web(1).evacuated(0).with(claim(corev1.ReadWriteOncePod)), refused},
		"off":      {web(1).evacuated(0).with(func(s *scene) { s.Mode = surge.Off }), refused},
		"gone":     {web(1).evacuated(0).with(func(s *scene) { s.Deployment = nil }), refused},
		"set gone": {web(1).evacuated(0).with(func(s *scene) { s.ReplicaSets = nil }), refused},
		"no hash":  {web(1).evacuated(0).with(func(s *scene) { delete(s.Pods[0].Labels, hashLabel) }), refused},
		"lost": {
			web(1).evacuated(0).detached(0, 0).with(func(s *scene) {
				s.Pods[0].OwnerReferences = owner(s.ReplicaSets[0])
				s.Pods[0].Annotations[v1alpha1.SurgeAnnotation] = "{"
			}),
			refused,
		},
	})
	alone := web(1).evacuated(0)
	if diff := cmp.Diff(refused, summary(t, surge.DecideAlone(now, alone.Evacuations[0]))); diff != "" {
		t.Errorf("a pod of nobody (-want +got):\n%s", diff)
	}
}

func TestAPodThatCanSurgeIsNotRefused(t *testing.T) {
	t.Parallel()
	detaches := []string{"web-0: " + detaches + record(0, 1) + detachedBy}
	check(t, map[string]story{
		"whose volume all nodes can mount": {web(1).evacuated(0).with(claim(corev1.ReadWriteMany)), detaches},
		"or one node as well":              {web(1).evacuated(0).with(claim(corev1.ReadWriteOnce, corev1.ReadWriteMany)), detaches},
		"with what somebody left in our annotation": {
			web(1).evacuated(0).with(func(s *scene) { s.Pods[0].Annotations = map[string]string{v1alpha1.SurgeAnnotation: "{"} }), detaches,
		},
	})
}

func TestAPodWaitsForItsReplacement(t *testing.T) {
	t.Parallel()
	silent := func(s *scene) { s.Evacuations[0].Status.EvacuationProgressTimestamp = new(ago(10 * time.Second)) }
	check(t, map[string]story{
		"quietly at first": {
			web(1).evacuated(0).detached(0, time.Minute).newcomer(false), []string{"again in 5s"},
		},
		"then it says for whom": {
			web(1).evacuated(0).detached(0, time.Minute).newcomer(false).with(silent),
			[]string{"report", "again in 5m0s"},
		},
		"or that nobody comes": {
			web(1).evacuated(0).detached(0, time.Minute).with(silent),
			[]string{"report", "again in 5m0s"},
		},
		"for minReadySeconds": {
			web(1).evacuated(0).detached(0, time.Minute).newcomer(true).with(func(s *scene) { s.Deployment.Spec.MinReadySeconds = 63 }),
			[]string{"again in 3s"},
		},
		"until it is available": {
			web(1).evacuated(0).detached(0, time.Minute).newcomer(true),
			[]string{"complete (completed)"},
		},
		"or until fewer are wanted": {
			web(2).evacuated(0).detached(0, time.Minute).with(func(s *scene) { s.Deployment.Spec.Replicas = new(int32(1)) }),
			[]string{"complete (completed)"},
		},
		"and its ReplicaSet has let it go": {
			web(1).evacuated(0).detached(0, time.Minute).newcomer(true).with(func(s *scene) { s.Pods[0].OwnerReferences = owner(s.ReplicaSets[0]) }),
			[]string{"again in 5s"},
		},
		"but not by one that is about to be removed": {
			web(1).evacuated(0).detached(0, time.Minute).newcomer(true).with(func(s *scene) { s.ReplicaSets[0].Spec.Replicas = new(int32(0)) }),
			[]string{"again in 5s"},
		},
		"and then for its eviction": {
			web(1).evacuated(0).detached(0, time.Hour).newcomer(true).with(func(s *scene) { s.Evacuations[0].Status.ActiveEvacuatorCompleted = true }), nil,
		},
		"while it keeps its turn": {
			web(1).evacuated(0).detached(0, 9*time.Minute).newcomer(false).with(func(s *scene) {
				s.Evacuations[0].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSurged, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonWaitingForReplacement}}
				s.Evacuations[0].Status.EvacuationProgressTimestamp = new(ago(5 * time.Minute))
			}),
			[]string{"report", "again in 1m0s"},
		},
	})
}

func TestOthersWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	silent := func(s *scene) { s.Evacuations[1].Status.EvacuationProgressTimestamp = new(ago(10 * time.Second)) }
	check(t, map[string]story{
		"and say for whom": {
			web(2).evacuated(0).evacuated(1).detached(0, time.Minute).with(silent),
			[]string{"report", "again in 5s"},
		},
		"a pod that leaves makes room": {
			web(2).evacuated(1).detached(0, time.Minute).with(func(s *scene) { s.Pods[0].DeletionTimestamp = new(ago(0)) }).newcomer(true),
			[]string{"web-1: " + detaches + record(1, 2) + detachedBy},
		},
		"a pod that is replaced serves nobody else": {
			web(2).evacuated(0).evacuated(1).detached(0, time.Hour).detached(1, time.Minute).newcomer(true).newcomer(false),
			[]string{"complete (completed)", "again in 5s"},
		},
		"nothing is begun while claims cannot be read": {
			web(1).evacuated(0).with(func(s *scene) {
				s.Unread = "get volume claim data: forbidden"
				s.Evacuations[0].Status.EvacuationProgressTimestamp = new(ago(time.Minute))
			}),
			[]string{"report", "again in 5m0s"},
		},
	})
}
