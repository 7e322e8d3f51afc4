package daemonset_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/daemonset"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

var (
	begun = metav1.NewTime(time.Date(2026, time.March, 1, 6, 55, 0, 0, time.UTC))
	now   = metav1.NewTime(begun.Add(5 * time.Minute))
)

// aPod is a pod of DaemonSet log with a grace period of a minute.
func aPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "log-x", UID: "uid", Labels: map[string]string{"app": "log"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "log", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "one", Priority: new(int32(5000)), TerminationGracePeriodSeconds: new(int64(60))},
	}
}

const (
	upTo5000 = `[{"podPriority":5000,"podType":"DaemonSet"},{"podPriority":5000,"podType":"Static"}]`
	upTo4999 = `[{"podPriority":4999,"podType":"DaemonSet"},{"podPriority":5000,"podType":"Static"}]`
)

// aNode is held by maintenance m and records these targets.
func aNode(targets string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one", Annotations: map[string]string{
		v1alpha1.CordonAnnotation:       `{"wasUnschedulable":false,"holders":["m"]}`,
		v1alpha1.DrainTargetsAnnotation: targets,
	}}}
}

func aMaintenance() *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "m"},
		Spec:       v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageDrain, Reason: "OS upgrade"},
	}
}

// aSnapshot is our turn to move a pod that its node targets.
func aSnapshot() *daemonset.Snapshot {
	pod := aPod()
	e := evacuation.New(pod, v1alpha1.NodeMaintenanceInstigator, nil)
	e.Status = v1alpha1.EvacuationStatus{
		ActiveEvacuatorClass: v1alpha1.DaemonSetEvacuatorClass, EvacuationProgressTimestamp: &begun, Message: "Evacuator is to move the pod.",
	}
	return &daemonset.Snapshot{
		Now: now.Time, Evacuation: e, Pod: pod, Node: aNode(upTo5000), Maintenances: []*v1alpha1.NodeMaintenance{aMaintenance()},
	}
}

const terminates = "log is terminating the pod due to node maintenance (OS upgrade)."

func announced(s *daemonset.Snapshot) {
	s.Evacuation.Status.ExpectedEvacuationFinishTime = &begun
	s.Evacuation.Status.Message = terminates
}

func TestAPodIsAnnouncedAndDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*daemonset.Snapshot)
		grace  time.Duration
	}{
		"as in the KEP":    {func(*daemonset.Snapshot) {}, time.Minute},
		"no reason":        {func(s *daemonset.Snapshot) { s.Maintenances[0].Spec.Reason = "" }, time.Minute},
		"no maintenance":   {func(s *daemonset.Snapshot) { s.Maintenances = nil }, time.Minute},
		"no grace period":  {func(s *daemonset.Snapshot) { s.Pod.Spec.TerminationGracePeriodSeconds = nil }, 30 * time.Second},
		"a label mistaken": {func(s *daemonset.Snapshot) { s.Pod.Labels[v1alpha1.DrainLabel] = "soon" }, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := aSnapshot()
			test.change(s)
			before := s.Evacuation.DeepCopy()
			d := daemonset.Decide(*s)
			finish := metav1.NewTime(now.Add(test.grace))
			want := before.Status.DeepCopy()
			want.EvacuationProgressTimestamp, want.ExpectedEvacuationFinishTime, want.Message = &now, &finish, d.Status.Message
			golden.Message(t, d.Status.Message)
			if diff := cmp.Diff(want, d.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if !d.Delete || len(d.Events) != 1 || d.Events[0].Message != d.Status.Message {
				t.Errorf("decided %+v, want the pod deleted and that told", d)
			}
			if diff := cmp.Diff(before, s.Evacuation); diff != "" {
				t.Errorf("Decide changed its input:\n%s", diff)
			}
		})
	}
}

func TestADeletionIsAnnouncedOnce(t *testing.T) {
	s := aSnapshot()
	announced(s)
	if d := daemonset.Decide(*s); d.Status != nil || !d.Delete {
		t.Errorf("decided %+v, want the deletion tried and no status written", d)
	}
	s.Pod.DeletionTimestamp = &now
	if d := daemonset.Decide(*s); d.Status != nil || d.Delete {
		t.Errorf("decided %+v about a pod that leaves, want nothing", d)
	}
}

func TestRefusedDeletionIsReportedOnceAndRetried(t *testing.T) {
	s := aSnapshot()
	announced(s)
	told := daemonset.Refuse(s.Evacuation, `admission webhook "guard" denied the request`)
	if told == nil {
		t.Fatal("no status is written, want one that tells of the refusal")
	}
	golden.Message(t, "refused", told.Message)
	s.Evacuation.Status = *told
	if again := daemonset.Refuse(s.Evacuation, `admission webhook "guard" denied the request`); again != nil {
		t.Errorf("the same refusal is written again: %+v", again)
	}
	if d := daemonset.Decide(*s); d.Status != nil || !d.Delete {
		t.Errorf("decided %+v, want the deletion tried again and no status written", d)
	}
	s.Pod.DeletionTimestamp = &now
	d := daemonset.Decide(*s)
	if d.Status == nil || d.Delete {
		t.Fatalf("decided %+v, want the message put right", d)
	}
	golden.Message(t, "put right", d.Status.Message)
	if long := daemonset.Refuse(s.Evacuation, strings.Repeat("x", 40_000)); len(long.Message) > 32_768 {
		t.Errorf("a message has %d bytes, more than the API takes", len(long.Message))
	}
}

// A pod that does not leave now stays, and its Evacuation says what it waits for.
func TestAPodWaits(t *testing.T) {
	for name, change := range map[string]func(*daemonset.Snapshot){
		"no maintenance":               func(s *daemonset.Snapshot) { s.Node.Annotations = nil },
		"above the target":             func(s *daemonset.Snapshot) { s.Node = aNode(upTo4999) },
		"a target that cannot be read": func(s *daemonset.Snapshot) { s.Node = aNode("}") },
		"a target that means nothing":  func(s *daemonset.Snapshot) { s.Node = aNode(`[{"podPriority":2147483647,"podType":"Daemons"}]`) },
		"no node":                      func(s *daemonset.Snapshot) { s.Node = nil },
		"retained":                     func(s *daemonset.Snapshot) { s.Pod.Labels[v1alpha1.DrainLabel] = "Skip" },
		"finishes by itself":           func(s *daemonset.Snapshot) { s.Pod.Labels[v1alpha1.DrainLabel] = "wait-completed" },
	} {
		t.Run(name, func(t *testing.T) {
			s := aSnapshot()
			announced(s)
			change(s)
			d := daemonset.Decide(*s)
			want := s.Evacuation.Status.DeepCopy()
			want.ExpectedEvacuationFinishTime, want.Message = nil, d.Status.Message
			golden.Message(t, d.Status.Message)
			if diff := cmp.Diff(want, d.Status); diff != "" || d.Delete {
				t.Errorf("deleted is %v, status (-want +got):\n%s", d.Delete, diff)
			}
			s.Evacuation.Status = *want
			if again := daemonset.Decide(*s); again.Status != nil {
				t.Errorf("the same message is written again: %+v", again)
			}
		})
	}
}

func TestNothingIsDone(t *testing.T) {
	for name, change := range map[string]func(*daemonset.Snapshot){
		"another's turn":          func(s *daemonset.Snapshot) { s.Evacuation.Status.ActiveEvacuatorClass = "mover.example.com" },
		"completed":               func(s *daemonset.Snapshot) { s.Evacuation.Status.ActiveEvacuatorCompleted = true },
		"nobody asks":             func(s *daemonset.Snapshot) { s.Evacuation.Finalizers = []string{"hold"} },
		"another name":            func(s *daemonset.Snapshot) { s.Evacuation.Name = "odd" },
		"no pod":                  func(s *daemonset.Snapshot) { s.Pod = nil },
		"a pod that has finished": func(s *daemonset.Snapshot) { s.Pod.Status.Phase = corev1.PodFailed },
		"it leaves and the maintenance has ended": func(s *daemonset.Snapshot) {
			announced(s)
			s.Pod.DeletionTimestamp, s.Node.Annotations = &now, nil
		},
		"silent for too long, and told so": func(s *daemonset.Snapshot) {
			s.Node.Annotations = nil
			s.Evacuation.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionEvictionRefused, Status: metav1.ConditionTrue}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := aSnapshot()
			change(s)
			if diff := cmp.Diff(daemonset.Decision{}, daemonset.Decide(*s)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// Whoever registers our class on another pod does not leave it without an eviction.
func TestAPodOfNoDaemonSetIsPassedOn(t *testing.T) {
	s := aSnapshot()
	s.Pod.OwnerReferences = nil
	d := daemonset.Decide(*s)
	if d.Delete || d.Status == nil || !d.Status.ActiveEvacuatorCompleted {
		t.Fatalf("decided %+v, want it completed", d)
	}
	golden.Message(t, d.Status.Message)
}
