package cluster

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/workload"
	"ebbtide.dev/ebbtide/test/fault"
)

type says workload.State

func (s says) State(types.NamespacedName) workload.State { return workload.State(s) }

var answers = says{
	Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReachable, Message: "The cluster is responding.",
	Since: time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC),
}

func east() *v1alpha1.Cluster {
	return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "east", Finalizers: []string{v1alpha1.ClusterFinalizer},
	}}
}

func machine(name string) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       v1alpha1.MachineSpec{ClusterName: "east"},
	}
}

type world struct {
	t   *testing.T
	api *fault.Server
	r   *reconciler
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	api := fault.NewServer(t, objects...)
	return &world{t, api, &reconciler{client: api.Manager, live: api, connections: answers}}
}

func (w *world) reconcile() error {
	w.t.Helper()
	_, err := w.r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(east())})
	return err
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stored() *v1alpha1.Cluster {
	w.t.Helper()
	stored := east()
	if err := w.api.Get(w.t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
		w.must(client.IgnoreNotFound(err))
		return nil
	}
	return stored
}

func TestANewClusterIsHeldAndDescribed(t *testing.T) {
	t.Parallel()
	fresh := east()
	fresh.Finalizers, fresh.Generation = nil, 2
	w := newWorld(t, fresh, machine("one"))
	for range 2 {
		w.must(w.reconcile())
	}
	got := w.stored()
	want := v1alpha1.ClusterStatus{ObservedGeneration: 2, Conditions: []metav1.Condition{{
		Type: v1alpha1.ConditionReachable, Status: metav1.ConditionTrue, ObservedGeneration: 2,
		Reason: v1alpha1.ReasonReachable, Message: "The cluster is responding.", LastTransitionTime: metav1.NewTime(answers.Since.Local()),
	}}}
	if diff := cmp.Diff(want, got.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if !slices.Contains(got.Finalizers, v1alpha1.ClusterFinalizer) {
		t.Errorf("finalizers = %v, want ours", got.Finalizers)
	}
	if diff := cmp.Diff([]string{"patch Cluster east", "patch status of Cluster east"}, w.api.Writes()); diff != "" {
		t.Errorf("the second pass has nothing to write; writes (-want +got):\n%s", diff)
	}
}

// A manager that dies behind any of its writes is continued by the next one.
func TestAManagerThatDiesBehindAWrite(t *testing.T) {
	t.Parallel()
	for dies := range 4 {
		fresh := east()
		fresh.Finalizers = nil
		controlPlane := machine("cp")
		controlPlane.Labels = map[string]string{v1alpha1.ControlPlaneLabel: ""}
		w := newWorld(t, fresh, controlPlane)
		w.api.KillAfter(dies)
		pass := func() {
			if err := w.reconcile(); err != nil && !errors.Is(err, fault.ErrKilled) {
				t.Fatal(err)
			}
			if w.api.Killed() {
				w.api.Revive()
				w.must(w.reconcile())
			}
		}
		pass()
		w.must(w.api.Delete(t.Context(), controlPlane))
		pass()
		if !w.stored().Status.ControlPlaneMachinesSeen {
			t.Errorf("a death behind write %d: the control plane is forgotten", dies)
		}
		w.must(w.api.Delete(t.Context(), east()))
		pass()
		if got := w.stored(); got != nil {
			t.Errorf("a death behind write %d: the Cluster is held with %+v", dies, got)
		}
	}
}

func TestAClusterGoesWhenItsMachinesAreGone(t *testing.T) {
	t.Parallel()
	other := machine("other")
	other.Spec.ClusterName = "west"
	w := newWorld(t, east(), machine("one"), other)
	w.must(w.api.Delete(t.Context(), east()))

	w.must(w.reconcile())

	var got metav1.Condition
	for _, condition := range w.stored().Status.Conditions {
		if condition.Type == v1alpha1.ConditionDeleting {
			got = condition
		}
	}
	want := "Waiting for Machines to be deleted: one. Delete these: one."
	if got.Status != metav1.ConditionTrue || got.Reason != v1alpha1.ReasonMachinesLeft || got.Message != want {
		t.Errorf("condition = %+v, want %q", got, want)
	}
	w.must(w.api.Delete(t.Context(), machine("one")))
	w.must(w.reconcile())
	if left := w.stored(); left != nil {
		t.Errorf("the Cluster is held: %+v", left)
	}
	w.must(w.reconcile())
}

// The cache may not show a Machine yet.
func TestAClusterIsNotLetGoOnAnOldCache(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		exists []client.Object
		refuse error
		want   string
	}{
		"a new Machine":           {[]client.Object{machine("new")}, nil, ""},
		"nobody knows":            {nil, errors.New("down"), "observe: list the Machines: down"},
		"a new one, nobody knows": {[]client.Object{machine("new")}, errors.New("down"), "observe: list the Machines: down"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, east())
			live := fault.NewServer(t, test.exists...)
			live.Refuse = func(string) error { return test.refuse }
			w.r.live = live.Manager
			w.must(w.api.Delete(t.Context(), east()))

			err := w.reconcile()

			if got := text(err); got != test.want {
				t.Errorf("reconcile = %q, want %q", got, test.want)
			}
			if w.stored() == nil {
				t.Error("the Cluster was let go")
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestARefusedWriteIsTriedAgain(t *testing.T) {
	t.Parallel()
	fresh := east()
	fresh.Finalizers = nil
	for refused, want := range map[string]string{
		"patch Cluster east":           "add the finalizer: no",
		"patch status of Cluster east": "write the status of the Cluster: no",
	} {
		w := newWorld(t, fresh)
		w.api.Refuse = func(request string) error {
			if request == refused {
				return errors.New("no")
			}
			return nil
		}
		if got := text(w.reconcile()); got != want {
			t.Errorf("%s: reconcile = %q, want %q", refused, got, want)
		}
		w.api.Refuse = nil
		w.must(w.reconcile())
		if got := w.stored(); len(got.Finalizers) != 1 || len(got.Status.Conditions) != 1 {
			t.Errorf("%s: the next pass has left %+v", refused, got)
		}
	}
}
