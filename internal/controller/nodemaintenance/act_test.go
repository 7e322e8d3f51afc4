package nodemaintenance

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

var errRefused = errors.New("the webhook of somebody else says no")

// refuseWrites refuses the writes that contain the words.
func refuseWrites(words string) func(string) error {
	return func(write string) error {
		if strings.Contains(write, words) {
			return errRefused
		}
		return nil
	}
}

// cordonOf decides a cordon of the node and the evacuation of its pods.
func (w *world) cordonOf(name string, pods ...*corev1.Pod) maintenance.NodeDecision {
	node := w.node(name)
	return maintenance.NodeDecision{
		Node: node, Maintenances: []string{"upgrade"}, Evacuate: requests(pods...),
		Cordon: &cordon.Change{Unschedulable: true, Ledger: `{"holders":["upgrade"]}`},
		Events: []event.Event{{
			Regarding: corev1.ObjectReference{Kind: "Node", Name: name}, Reason: "Cordoned", Message: "for upgrade",
		}},
	}
}

func requests(pods ...*corev1.Pod) []maintenance.Request {
	asked := make([]maintenance.Request, 0, len(pods))
	for _, pod := range pods {
		asked = append(asked, maintenance.Request{Pod: pod})
	}
	return asked
}

// cordons says of each node whether it is cordoned, and with which ledger.
func (w *world) cordons(names ...string) map[string]string {
	state := map[string]string{}
	for _, name := range names {
		node := w.node(name)
		state[name] = fmt.Sprintf("%t %s", node.Spec.Unschedulable, node.Annotations[v1alpha1.CordonAnnotation])
	}
	return state
}

func TestAFailedCordonStopsOnlyItsNode(t *testing.T) {
	t.Parallel()
	podOne, podTwo := aPod("pod-one", "one"), aPod("pod-two", "two")
	w := newWorld(t, aNode("one"), aNode("two"), podOne, podTwo)
	w.api.Refuse = refuseWrites("Node one")
	all := records{"upgrade": {stored: aMaintenance("upgrade", "old")}}

	r := w.manager()
	decided := []maintenance.NodeDecision{w.cordonOf("one", podOne), w.cordonOf("two", podTwo)}
	if ended := w.act(r, all, decided...); !errors.Is(ended.first, errRefused) || ended.due != atOnce {
		t.Errorf("act = %v and the next pass is due in %s, want the refusal and the next pass at once", ended.first, ended.due)
	}
	decided[1].Cordon, decided[1].Events = nil, nil
	if ended := w.act(r, all, decided...); ended.refused != 0 || ended.due == 0 {
		t.Errorf("%d writes were refused and the next pass is due in %s, want the cordon to rest", ended.refused, ended.due)
	}

	if diff := cmp.Diff(map[string]string{"one": "false ", "two": `true {"holders":["upgrade"]}`}, w.cordons("one", "two")); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"pod-two"}, w.evacuatedPods()); diff != "" {
		t.Errorf("evacuated pods (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Cordoned on Node/two: for upgrade"}, w.api.Events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if !all["upgrade"].unfinished.Load() {
		t.Error("the maintenance counts as finished, although one of its nodes is not")
	}
}

func TestAnUnrecordedMaintenanceStopsOnlyItsNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aNode("one"), aNode("two"))
	two := w.cordonOf("two")
	two.Maintenances = []string{"other"}

	w.act(w.manager(), records{"upgrade": {failed: true}, "other": {}}, w.cordonOf("one"), two)
	if diff := cmp.Diff(map[string]string{"one": "false ", "two": `true {"holders":["upgrade"]}`}, w.cordons("one", "two")); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

func TestADecisionOnAnOldNodeIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aNode("one"))
	decided := w.cordonOf("one")
	relabelled := w.node("one")
	relabelled.Labels["pool"] = "new"
	if err := w.api.Update(w.t.Context(), relabelled); err != nil {
		t.Fatalf("relabel the node: %v", err)
	}

	if ended := w.act(w.manager(), nil, decided); !apierrors.IsConflict(ended.stale) || ended.refused != 0 {
		t.Errorf("act = %v and %d refusals, want a conflict and nothing else", ended.stale, ended.refused)
	}
	if diff := cmp.Diff(map[string]string{"one": "false "}, w.cordons("one")); diff != "" {
		t.Errorf("node (-want +got):\n%s", diff)
	}
}

func TestAskingForEvacuations(t *testing.T) {
	t.Parallel()
	pod := aPod("shop-1", "one")
	foreign := evacuation.New(pod, v1alpha1.InstigatorFinalizerPrefix+"autoscaler.example.com", nil)
	leaving := foreign.DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{Time: noon}
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "evacuations"}, "x", errors.New("namespace is terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}

	tests := map[string]struct {
		existing *v1alpha1.Evacuation
		refusal  error
		want     map[string][]string
		refused  int
	}{
		"a pod without an Evacuation gets one": {
			want: map[string][]string{"uid-of-shop-1-shop-1": {v1alpha1.NodeMaintenanceInstigator}},
		},
		"an Evacuation of somebody else is joined": {
			existing: foreign,
			want:     map[string][]string{"uid-of-shop-1-shop-1": {foreign.Finalizers[0], v1alpha1.NodeMaintenanceInstigator}},
		},
		"an Evacuation on its way out is waited for": {
			existing: leaving,
			want:     map[string][]string{"uid-of-shop-1-shop-1": {foreign.Finalizers[0]}},
		},
		"a namespace on its way out takes no Evacuation, and is not asked all the time": {
			refusal: terminating,
			want:    map[string][]string{},
			refused: 1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pod.DeepCopy())
			asked := requests(pod)
			if test.existing != nil {
				asked[0].Evacuation = w.existing(test.existing)
			}
			w.api.Refuse = func(string) error { return test.refusal }

			ended := w.act(w.manager(), nil, maintenance.NodeDecision{Node: aNode("one"), Evacuate: asked})
			if ended.refused != test.refused || ended.stale != nil {
				t.Errorf("%d writes were refused, the first with %v, and stale is %v, want %d", ended.refused, ended.first, ended.stale, test.refused)
			}
			got := map[string][]string{}
			for _, found := range w.evacuations() {
				got[found.Name] = found.Finalizers
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("evacuations and their instigators (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPassThatFailsBacksOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.manager()
	of := &group.Group{Maintenances: []string{"upgrade"}}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "one", errors.New("it has changed"))
	for what, failure := range map[string]error{"a failure": errRefused, "a conflict that lasts": conflict} {
		var pauses []time.Duration
		for range 15 {
			pauses = append(pauses, r.next(w.t.Context(), of, 0, failure))
		}
		want := []time.Duration{firstRetry, 2 * firstRetry, 4 * firstRetry, 8 * firstRetry}
		if diff := cmp.Diff(want, pauses[:4]); diff != "" {
			t.Errorf("pauses after %s (-want +got):\n%s", what, diff)
		}
		if last := pauses[14]; last != time.Minute {
			t.Errorf("in the end the pause after %s is %s, want a minute", what, last)
		}
		if got := r.next(w.t.Context(), of, time.Millisecond, failure); got != time.Millisecond {
			t.Errorf("the next pass is due in %s, want the sooner time at which something else is due", got)
		}
		if got := r.next(w.t.Context(), of, 0, nil); got != 0 {
			t.Errorf("after a pass without failures the next is due in %s, want never", got)
		}
	}
	if got := r.next(w.t.Context(), of, 0, errRefused); got != firstRetry {
		t.Errorf("after a success the first pause is %s, want %s", got, firstRetry)
	}
}

func TestRefusedNodeConditionsAreShownAndStopNothing(t *testing.T) {
	t.Parallel()
	pod := aPod("shop-1", "one")
	w := newWorld(t, aNode("one"), pod)
	w.api.Refuse = refuseWrites("patch status of Node")
	r := w.manager()
	decided := maintenance.NodeDecision{
		Node: w.node("one"), Evacuate: []maintenance.Request{{Pod: pod}},
		Conditions: []corev1.NodeCondition{{Type: v1alpha1.NodeDrainInProgress, Status: corev1.ConditionTrue}},
	}
	all := records{"upgrade": {stored: aMaintenance("upgrade", "old")}}
	decided.Maintenances = []string{"upgrade"}

	ended := w.act(r, all, decided)

	if all["upgrade"].unfinished.Load() {
		t.Error("the maintenance counts as unfinished for conditions that were refused")
	}
	if diff := cmp.Diff([]string{"shop-1"}, w.evacuatedPods()); diff != "" {
		t.Errorf("evacuated pods (-want +got):\n%s", diff)
	}
	if got := w.api.Events(); len(got) != 1 || !strings.HasPrefix(got[0], "ConditionsRefused on Node/one: ") {
		t.Errorf("events are %q, want the refusal", got)
	}
	if ended.due == 0 || ended.due > firstRefusal {
		t.Errorf("the conditions are due again in %s, want up to %s", ended.due, firstRefusal)
	}

	decided.Evacuate = nil
	w.api.Refuse = nil
	w.act(r, all, decided)
	if got := w.node("one").Status.Conditions; len(got) != 0 {
		t.Errorf("conditions %v are published without a pause after the refusal", got)
	}
	w.clock.Step(firstRefusal)
	w.act(r, all, decided)
	if got := w.node("one").Status.Conditions; len(got) != 1 || got[0].Type != v1alpha1.NodeDrainInProgress {
		t.Errorf("conditions = %v, want DrainInProgress", got)
	}
}

func TestAPassThatRunsOutOfTimeLeavesTheRestToTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, aNode("one"), aNode("two"))
	w.api.Refuse = func(string) error {
		w.clock.Step(actTime + time.Millisecond)
		return nil
	}
	r := w.manager()
	r.workers = 1
	all := records{"upgrade": {stored: aMaintenance("upgrade", "old")}}

	ended := w.act(r, all, w.cordonOf("one"), w.cordonOf("two"))

	if diff := cmp.Diff(map[string]string{"one": `true {"holders":["upgrade"]}`, "two": "false "}, w.cordons("one", "two")); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if ended.due != atOnce {
		t.Errorf("the next pass is due in %s, want at once", ended.due)
	}
	if !all["upgrade"].unfinished.Load() {
		t.Error("the maintenance counts as finished, although one of its nodes is not")
	}
}

// evacuatedPods are the pods that we asked to leave.
func (w *world) evacuatedPods() []string {
	var names []string
	for _, found := range w.evacuations() {
		names = append(names, found.Spec.PodRef.Name)
	}
	return names
}

// existing stores an Evacuation, on its way out if it has a deletion time.
func (w *world) existing(wanted *v1alpha1.Evacuation) *v1alpha1.Evacuation {
	w.t.Helper()
	stored := wanted.DeepCopy()
	stored.DeletionTimestamp = nil
	if err := w.api.Create(w.t.Context(), stored); err != nil {
		w.t.Fatalf("create the evacuation: %v", err)
	}
	if wanted.DeletionTimestamp != nil {
		if err := w.api.Delete(w.t.Context(), stored); err != nil {
			w.t.Fatalf("delete the evacuation: %v", err)
		}
	}
	w.get(stored, stored.Namespace, stored.Name)
	return stored
}
