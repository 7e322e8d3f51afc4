package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/golden"
)

var clusterBegan = metav1.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func clusterSnapshot(change func(*ClusterSnapshot)) ClusterSnapshot {
	s := ClusterSnapshot{
		Cluster: &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "east", Generation: 3, Finalizers: []string{v1alpha1.ClusterFinalizer},
		}},
		Reachable: metav1.Condition{
			Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable, Message: "The cluster is responding.", LastTransitionTime: clusterBegan,
		},
	}
	change(&s)
	return s
}

func deletedCluster(machines ...*v1alpha1.Machine) func(*ClusterSnapshot) {
	return func(s *ClusterSnapshot) {
		deleted := metav1.NewTime(clusterBegan.Add(time.Hour))
		s.Cluster.DeletionTimestamp, s.Machines = &deleted, machines
	}
}

func ofCluster(name string, change ...func(*v1alpha1.Machine)) *v1alpha1.Machine {
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	for _, c := range change {
		c(machine)
	}
	return machine
}

func goes(m *v1alpha1.Machine) { m.DeletionTimestamp = &clusterBegan }

func TestFinalizersOfACluster(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		snapshot  ClusterSnapshot
		add, drop bool
		deleting  bool
	}{
		"new":  {snapshot: clusterSnapshot(func(s *ClusterSnapshot) { s.Cluster.Finalizers = nil }), add: true},
		"held": {snapshot: clusterSnapshot(func(s *ClusterSnapshot) { s.Machines = []*v1alpha1.Machine{ofCluster("a")} })},
		"deleted without Machines": {
			snapshot: clusterSnapshot(deletedCluster()), drop: true,
		},
		"deleted without us": {
			snapshot: clusterSnapshot(func(s *ClusterSnapshot) {
				deletedCluster()(s)
				s.Cluster.Finalizers = []string{"example.com/theirs"}
			}),
		},
		"deleted with Machines that nobody deletes": {
			snapshot: clusterSnapshot(deletedCluster(ofCluster("d"), ofCluster("c"), ofCluster("b", goes), ofCluster("a", goes))),
			deleting: true,
		},
		"deleted with Machines that go": {
			snapshot: clusterSnapshot(deletedCluster(ofCluster("b", goes), ofCluster("a", goes))),
			deleting: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := DecideCluster(test.snapshot)
			if d.AddFinalizer != test.add || d.DropFinalizer != test.drop {
				t.Errorf("add the finalizer: %v, drop it: %v, want %v and %v", d.AddFinalizer, d.DropFinalizer, test.add, test.drop)
			}
			want := []metav1.Condition{{
				Type: v1alpha1.ConditionReachable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable,
				Message: "The cluster is responding.", LastTransitionTime: clusterBegan, ObservedGeneration: 3,
			}}
			if test.deleting {
				deleting := &d.Status.Conditions[len(d.Status.Conditions)-1]
				golden.Message(t, deleting.Reason, deleting.Message)
				deleting.Message = ""
				want = append(want, metav1.Condition{
					Type: v1alpha1.ConditionDeleting, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMachinesLeft,
					LastTransitionTime: metav1.NewTime(clusterBegan.Add(time.Hour)), ObservedGeneration: 3,
				})
			}
			if diff := cmp.Diff(v1alpha1.ClusterStatus{ObservedGeneration: 3, Conditions: want}, d.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// What was seen once counts for good: a cluster without control-plane Machines
// is lost only if it ever had some.
func TestControlPlaneMachinesAreRemembered(t *testing.T) {
	t.Parallel()
	controlPlane := ofCluster("cp", func(m *v1alpha1.Machine) { m.Labels = map[string]string{v1alpha1.ControlPlaneLabel: ""} })
	tests := map[string]struct {
		machines []*v1alpha1.Machine
		seen     bool
		want     bool
	}{
		"none":          {[]*v1alpha1.Machine{ofCluster("worker")}, false, false},
		"one":           {[]*v1alpha1.Machine{ofCluster("worker"), controlPlane}, false, true},
		"one that left": {nil, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := DecideCluster(clusterSnapshot(func(s *ClusterSnapshot) {
				s.Machines, s.Cluster.Status.ControlPlaneMachinesSeen = test.machines, test.seen
			}))
			if d.Status.ControlPlaneMachinesSeen != test.want {
				t.Errorf("seen = %v, want %v", d.Status.ControlPlaneMachinesSeen, test.want)
			}
		})
	}
}

// The time of condition Reachable is that of the connection, and moves with the
// status only.
func TestSinceWhenAClusterIsUnreachable(t *testing.T) {
	t.Parallel()
	lost := clusterSnapshot(func(s *ClusterSnapshot) {
		s.Cluster.Status = DecideCluster(clusterSnapshot(func(*ClusterSnapshot) {})).Status
		s.Reachable = metav1.Condition{
			Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnreachable, Message: "no answer in time",
			LastTransitionTime: metav1.NewTime(clusterBegan.Add(time.Minute)),
		}
	})
	d := DecideCluster(lost)
	want := lost.Reachable
	want.Type, want.ObservedGeneration = v1alpha1.ConditionReachable, 3
	if diff := cmp.Diff([]metav1.Condition{want}, d.Status.Conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// A restart forgets what a cluster has done; its status does not, until there is a
// connection again or another spec to try.
func TestHoldOffOfAClusterAfterABreach(t *testing.T) {
	t.Parallel()
	before := &v1alpha1.ClusterHoldOff{BreachCount: 2, EndTime: metav1.NewTime(clusterBegan.Add(time.Minute))}
	after := &v1alpha1.ClusterHoldOff{BreachCount: 3, EndTime: metav1.NewTime(clusterBegan.Add(time.Hour))}
	tests := map[string]struct {
		reason string
		told   *v1alpha1.ClusterHoldOff
		behind bool
		want   *v1alpha1.ClusterHoldOff
	}{
		"nobody has used it since the restart":  {reason: v1alpha1.ReasonNotInUse, want: before},
		"nobody has used it, but it is changed": {reason: v1alpha1.ReasonNotInUse, behind: true},
		"it has done it again":                  {reason: v1alpha1.ReasonLimitExceeded, told: after, want: after},
		"it answers":                            {reason: v1alpha1.ReasonReachable},
		"it does not answer":                    {reason: v1alpha1.ReasonUnreachable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := DecideCluster(clusterSnapshot(func(s *ClusterSnapshot) {
				s.Reachable.Reason, s.HoldOff = test.reason, test.told
				s.Cluster.Status.HoldOff, s.Cluster.Status.ObservedGeneration = before, s.Cluster.Generation
				if test.behind {
					s.Cluster.Status.ObservedGeneration--
				}
			}))
			if diff := cmp.Diff(test.want, got.Status.HoldOff); diff != "" {
				t.Errorf("hold-off (-want +got):\n%s", diff)
			}
		})
	}
}
