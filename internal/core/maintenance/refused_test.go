package maintenance_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

func blockersOf(d maintenance.Decision) string {
	var all []string
	for _, node := range d.Maintenances[0].Status.NodeStatuses {
		for _, b := range node.Blockers {
			all = append(all, fmt.Sprintf("%s %s %d", node.NodeRef.Name, b.Type, b.PodCount))
		}
	}
	return strings.Join(all, ", ")
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

func TestNodeThatCannotBeCordonedKeepsItsPods(t *testing.T) {
	w := newWorld(t, "one", "two")
	w.maintenance("m", drain, nil, "one", "two")
	w.run("one", 1, 0)
	free := w.run("two", 1, 0)

	d := w.decide(w.refusing("no cordons", maintenance.Write{Kind: maintenance.WriteCordon, Node: "one"}))

	if diff := cmp.Diff(names(free), requestedBy(d)); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	for _, node := range d.Nodes {
		if (node.Cordon == nil) != (node.Node.Name == "one") {
			t.Errorf("the cordon of node %s is %+v", node.Node.Name, node.Cordon)
		}
	}
	if got := blockersOf(d); got != "one CordonRefused 0" {
		t.Errorf("blockers are %s", got)
	}
}

func TestRefusedWithdrawalBlocksAMaintenanceThatLeftTheNode(t *testing.T) {
	w := newWorld(t, "one", "two")
	m := w.maintenance("m", drain, nil, "one", "two")
	pod := w.run("one", 1, 0)[0]
	w.pass()
	m.Spec.NodeSelector = named("two")
	d := w.decide(w.refusing("no", maintenance.Write{Kind: maintenance.WriteWithdrawal, Pod: pod.UID}))
	m.Status = d.Maintenances[0].Status
	if got := conditionOf(m, v1alpha1.ConditionBlocked); got != "True WithdrawalRefused" {
		t.Errorf("Blocked is %s", got)
	}
}

func TestRefusedDrainRecordIsABlocker(t *testing.T) {
	w := newWorld(t, "one")
	inPlace(w.maintenance("m", drain, nil, "one"), 300)
	w.run("one", 1, 0, stays, label("app", "db"))
	w.budget("db")
	w.pass()
	d := w.decide(w.refusing("no", maintenance.Write{Kind: maintenance.WriteDrainRecord, Node: "one"}))
	if got := blockersOf(d); got != "one RecordRefused 0" || len(d.Nodes) > 0 && d.Nodes[0].DrainRecord != nil {
		t.Errorf("blockers are %s, the nodes %+v; want no retry yet", got, d.Nodes)
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

func TestRefusedEvictionRequestIsABlocker(t *testing.T) {
	w, pod := ledWorld(t)
	d := w.decide(w.refusing("no requests here", evacuationOf(pod.UID)))
	if got := blockersOf(d); got != "n EvacuationRefused 1" {
		t.Errorf("blockers are %s", got)
	}
}
