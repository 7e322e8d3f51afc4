package maintenance_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// refusing has the API server refuse writes for half a minute from now on.
func (w *world) refusing(words string, writes ...maintenance.Write) maintenance.Snapshot {
	snapshot := w.snapshot()
	snapshot.Refused = map[maintenance.Write]maintenance.Refusal{}
	for _, write := range writes {
		snapshot.Refused[write] = maintenance.Refusal{Since: w.now.Add(-time.Minute), Again: w.now.Add(30 * time.Second), Message: words}
	}
	return snapshot
}

func evacuationOf(pod types.UID) maintenance.Write {
	return maintenance.Write{Kind: maintenance.WriteEvacuation, Pod: pod}
}

const quota = `evacuations.ebbtide.dev "x" is forbidden: exceeded quota: few`

func blockersOf(d maintenance.Decision, at int) []string {
	var all []string
	for _, node := range d.Maintenances[at].Status.NodeStatuses {
		for _, b := range node.Blockers {
			all = append(all, fmt.Sprintf("%s: %s %d %s", node.NodeRef.Name, b.Type, b.PodCount, b.Message))
		}
	}
	return all
}

func TestARefusedEvacuationIsNamedAndHoldsNobodyElseUp(t *testing.T) {
	w := newWorld(t, "one", "two")
	m := w.maintenance("m", drain, nil, "one", "two")
	pods := append(w.run("one", 2, 0, ofJob), w.run("two", 1, 0)...)
	snapshot := w.refusing(quota, evacuationOf(pods[0].UID))

	d := maintenance.Decide(snapshot)

	if diff := cmp.Diff(names(pods[1:]), requestedBy(d)); diff != "" {
		t.Errorf("asked to leave (-want +got):\n%s", diff)
	}
	if d.RequeueAfter != 30*time.Second {
		t.Errorf("the next try is in %s, want 30s", d.RequeueAfter)
	}
	want := []string{"one: EvacuationRefused 1 The Evacuation of pod default/pod-0001 is refused: " + quota + ". It is tried again at 07:00:30 UTC."}
	if diff := cmp.Diff(want, blockersOf(d, 0)); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}
	c := meta.FindStatusCondition(d.Maintenances[0].Status.Conditions, v1alpha1.ConditionBlocked)
	if c.Reason != "EvacuationRefused" || !strings.Contains(c.Message, quota) {
		t.Errorf("Blocked is %+v", c)
	}
	if got := d.Blocked["one"][v1alpha1.BlockerEvacuationRefused]; got != 1 {
		t.Errorf("%d blocked pods are counted, want 1", got)
	}

	w.now = w.now.Add(30 * time.Second)
	snapshot.Now = w.now
	d = maintenance.Decide(snapshot)
	if got := requestedBy(d); len(got) != 3 {
		t.Errorf("asked to leave are %v, want the refused one again", got)
	}
	if got := blockersOf(d, 0); len(got) != 1 {
		t.Errorf("blockers are %v, want the refusal until it is forgotten", got)
	}
	if len(m.Status.NodeStatuses) != 0 {
		t.Error("the snapshot was changed")
	}
}

// What there is to say about a pod is said with its own write, however often others
// are refused before.
func TestAPodIsWarnedOfWithItsEvacuationOnly(t *testing.T) {
	w := newWorld(t, "one")
	w.maintenance("m", drain, nil, "one")
	pod := w.run("one", 1, 0, labelled(v1alpha1.DrainLabel, "nonsense"))[0]
	for range 10 {
		for _, node := range maintenance.Decide(w.refusing(quota, evacuationOf(pod.UID))).Nodes {
			if said := reasons(told(node)); len(said) != 1 || said[0] != "Node/one NodeCordoned" {
				t.Errorf("said %v while nothing is done about the pod", said)
			}
		}
	}
	if said := reasons(w.pass().Nodes[0].Evacuate[0].Events); len(said) != 1 || said[0] != "Pod/pod-0001 DrainLabelIgnored" {
		t.Errorf("said %v with its Evacuation", said)
	}
}

func requestedBy(d maintenance.Decision) []string {
	var all []string
	for _, node := range d.Nodes {
		all = append(all, names(requested(node.Evacuate))...)
	}
	return all
}

func TestNoPodIsMovedFromANodeThatCannotBeCordoned(t *testing.T) {
	w := newWorld(t, "one", "two")
	w.maintenance("m", drain, nil, "one", "two")
	w.run("one", 1, 0)
	free := w.run("two", 1, 0)

	d := maintenance.Decide(w.refusing("no cordons", maintenance.Write{Kind: maintenance.WriteCordon, Node: "one"}))

	if diff := cmp.Diff(names(free), requestedBy(d)); diff != "" {
		t.Errorf("asked to leave (-want +got):\n%s", diff)
	}
	for _, node := range d.Nodes {
		if (node.Cordon == nil) != (node.Node.Name == "one") {
			t.Errorf("the cordon of node %s is %+v", node.Node.Name, node.Cordon)
		}
	}
	want := []string{"one: CordonRefused 0 The change of the cordon of node one is refused: no cordons. It is tried again at 07:00:30 UTC."}
	if diff := cmp.Diff(want, blockersOf(d, 0)); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}
	if c := meta.FindStatusCondition(d.Maintenances[0].Status.Conditions, v1alpha1.ConditionBlocked); c.Reason != "CordonRefused" {
		t.Errorf("Blocked is %+v", c)
	}
}

// What cannot be given back is said by the maintenance that wants to give it back, and
// holds its finalizer.
func TestARefusedReturnIsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		write func(*world) maintenance.Write
		want  string
	}{
		"the cordon": {
			func(*world) maintenance.Write { return maintenance.Write{Kind: maintenance.WriteCordon, Node: "one"} },
			"one: CordonRefused 0 The change of the cordon of node one is refused: no. It is tried again at 07:00:30 UTC.",
		},
		"an Evacuation": {
			func(w *world) maintenance.Write {
				return maintenance.Write{Kind: maintenance.WriteWithdrawal, Pod: w.pods["one"][0].UID}
			},
			"one: WithdrawalRefused 1 The withdrawal of Evacuation default/uid-0001-pod-0001 is refused: no. It is tried again at 07:00:30 UTC.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one")
			m := w.maintenance("m", drain, nil, "one")
			w.run("one", 1, 0)
			w.pass()
			m.Spec.Stage = complete
			w.record(&maintenance.Decide(w.snapshot()).Maintenances[0])

			d := maintenance.Decide(w.refusing("no", test.write(w)))

			if diff := cmp.Diff([]string{test.want}, blockersOf(d, 0)); diff != "" {
				t.Errorf("blockers (-want +got):\n%s", diff)
			}
			if d.Maintenances[0].DropFinalizer {
				t.Error("the maintenance is let go although something of it is left")
			}
			if len(d.Nodes) != 1 || (d.Nodes[0].Cordon == nil) == (len(d.Nodes[0].Withdraw) == 0) {
				t.Errorf("want the other write only, got %+v", d.Nodes)
			}
		})
	}
}

// A node that has left its maintenance has no entry in a status, but what cannot be
// taken back from it is named all the same.
func TestWhatCannotBeTakenBackFromANodeThatLeftIsNamed(t *testing.T) {
	w := newWorld(t, "one", "two")
	m := w.maintenance("m", drain, nil, "one", "two")
	pod := w.run("one", 1, 0)[0]
	w.pass()
	m.Spec.NodeSelector = named("two")

	d := maintenance.Decide(w.refusing("no", maintenance.Write{Kind: maintenance.WriteWithdrawal, Pod: pod.UID}))

	c := meta.FindStatusCondition(d.Maintenances[0].Status.Conditions, v1alpha1.ConditionBlocked)
	const want = "WithdrawalRefused: 1 pod on 1 node. Namespace/default: The withdrawal of Evacuation default/uid-0001-pod-0001 is refused: no."
	if c.Reason != "WithdrawalRefused" || !strings.HasPrefix(c.Message, want) {
		t.Errorf("Blocked is %s: %s, want %s", c.Reason, c.Message, want)
	}
}

func TestARefusedRecordIsNamed(t *testing.T) {
	w := newWorld(t, "one")
	inPlace(w.maintenance("m", drain, nil, "one"), 300)
	w.run("one", 1, 0, stays, label("app", "db"))
	w.budget("db")
	w.pass()

	d := maintenance.Decide(w.refusing("no", maintenance.Write{Kind: maintenance.WriteDrainRecord, Node: "one"}))

	if len(d.Nodes) > 0 && d.Nodes[0].DrainRecord != nil {
		t.Errorf("it is tried again at once: %+v", d.Nodes[0].DrainRecord)
	}
	want := []string{"one: RecordRefused 0 The DrainRecord of node one is refused: no. It is tried again at 07:00:30 UTC."}
	if diff := cmp.Diff(want, blockersOf(d, 0)); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}
}

// Thousands of refusals take a few lines of a status.
func TestManyRefusalsStayShort(t *testing.T) {
	w := newWorld(t, "one")
	w.maintenance("m", drain, nil, "one")
	var writes []maintenance.Write
	for _, pod := range w.run("one", 5000, 0) {
		writes = append(writes, evacuationOf(pod.UID))
	}

	d := maintenance.Decide(w.refusing(strings.Repeat("no", 5000), writes...))

	listed := d.Maintenances[0].Status.NodeStatuses[0].Blockers
	if len(listed) != 10 || len(listed[0].Message) > 1000 {
		t.Errorf("%d blockers, the first says %d bytes", len(listed), len(listed[0].Message))
	}
	if got := d.Blocked["one"][v1alpha1.BlockerEvacuationRefused]; got != 5000 {
		t.Errorf("%d blocked pods are counted, want all", got)
	}
}

// A pod that is asked by an EvictionRequest is said to be refused that, and not an Evacuation.
func TestARefusedEvictionRequestIsNamed(t *testing.T) {
	w, pod := ledWorld(t)

	d := maintenance.Decide(w.refusing("no requests here", evacuationOf(pod.UID)))

	want := []string{"n: EvacuationRefused 1 The EvictionRequest of pod default/pod-0001 is refused: no requests here. It is tried again at 07:00:30 UTC."}
	if diff := cmp.Diff(want, blockersOf(d, 0)); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}
	if got, want := d.Maintenances[0].Status.NodeStatuses[0].Blockers[0].Suggestion, "Let Ebbtide write EvictionRequests."; !strings.HasPrefix(got, want) {
		t.Errorf("what helps is %q, want %q", got, want)
	}
}
