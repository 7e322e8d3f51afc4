package maintenance_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

const (
	daemonSetsAway = `[{"podPriority":2147483647,"podType":"DaemonSet"}] and the taint`
	cordonOnly     = v1alpha1.StageCordon
)

// goesDown adds the maintenance of a node whose kubelet ends all pods itself.
func (w *world) goesDown(node string) *v1alpha1.NodeMaintenance {
	m := w.maintenance(maintenance.ShutdownName(node), cordonOnly, nil, node)
	m.Labels = map[string]string{v1alpha1.CreatedByLabel: v1alpha1.CreatedByNodeAgent}
	return m
}

// The kubelet ends all pods. Nobody is asked to leave, and no pod of a DaemonSet is made
// again until the node is up.
func TestDaemonSetsStayAwayFromANodeThatGoesDown(t *testing.T) {
	w := newWorld(t, "one", "two")
	w.runners.DaemonSets = true
	m := w.goesDown("one")
	w.run("one", 2, 0)
	w.run("one", 2, 2000001000, ofDaemonSet)
	for range 2 {
		for _, d := range w.pass().Nodes {
			if len(d.Evacuate)+len(d.Delete)+len(d.Withdraw) > 0 {
				t.Errorf("pods of %s are asked to leave: %+v", d.Node.Name, d)
			}
		}
		if diff := cmp.Diff(daemonSetsAway, shows(w.find("one"))); diff != "" {
			t.Errorf("the node shows (-want +got):\n%s", diff)
		}
	}
	if len(w.evacuations) > 0 || !w.find("one").Spec.Unschedulable || shows(w.find("two")) != "" {
		t.Errorf("%d evacuations, node one is cordoned: %v, node two shows %q", len(w.evacuations), w.find("one").Spec.Unschedulable, shows(w.find("two")))
	}
	if again := only(w.pass().Nodes); again.Cordon != nil {
		t.Errorf("the node is written to again: %+v", again.Cordon)
	}

	m.Spec.Stage = v1alpha1.StageComplete
	w.pass()
	if node := w.find("one"); shows(node) != "" || node.Spec.Unschedulable {
		t.Errorf("given back, the node shows %q, cordoned: %v", shows(node), node.Spec.Unschedulable)
	}
}

// Only what the manager makes for a shutdown keeps DaemonSets away without draining.
func TestNoOtherCordonKeepsDaemonSetsAway(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.NodeMaintenance){
		"without the label":         func(m *v1alpha1.NodeMaintenance) { m.Labels = nil },
		"with another label":        func(m *v1alpha1.NodeMaintenance) { m.Labels[v1alpha1.CreatedByLabel] = "me" },
		"by another name":           func(m *v1alpha1.NodeMaintenance) { m.Name = "mine" },
		"by the name of another":    func(m *v1alpha1.NodeMaintenance) { m.Name = maintenance.ShutdownName("two") },
		"of two nodes":              func(m *v1alpha1.NodeMaintenance) { m.Spec.NodeSelector = named("one", "two") },
		"that has not begun":        func(m *v1alpha1.NodeMaintenance) { m.Spec.Stage = v1alpha1.StageIdle },
		"of a selector that is bad": func(m *v1alpha1.NodeMaintenance) { m.Spec.NodeSelector = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "one", "two")
			change(w.goesDown("one"))
			w.pass()
			if one, two := shows(w.find("one")), shows(w.find("two")); one != "" || two != "" {
				t.Errorf("node one shows %q and node two %q, want nothing", one, two)
			}
		})
	}
}

// A drain that goes on beside it keeps away what it would, and the pods of DaemonSets, too.
func TestANodeThatGoesDownInItsDrain(t *testing.T) {
	for depth, want := range map[v1alpha1.PodType]string{
		v1alpha1.PodTypeDefault: daemonSetsAway,
		v1alpha1.PodTypeStatic:  allAway + " and the taint",
	} {
		w := newWorld(t, "one")
		w.maintenance("kernel-update", drain, nil, "one").Spec.DrainDepth = depth
		w.pass()
		m := w.goesDown("one")
		w.pass()
		if diff := cmp.Diff(want, shows(w.find("one"))); diff != "" {
			t.Errorf("with a drain down to %s (-want +got):\n%s", depth, diff)
		}
		// A selector that nobody understands any more takes nothing back.
		m.Spec.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Operator = "Near"
		w.pass()
		if got := shows(w.find("one")); !strings.HasPrefix(got, strings.TrimSuffix(want, " and the taint")) {
			t.Errorf("while the selector is not understood it shows %q, want %q still", got, want)
		}
	}
}

func TestNamesOfShutdowns(t *testing.T) {
	a, b := strings.Repeat("n", 252)+"a", strings.Repeat("n", 252)+"b"
	if maintenance.ShutdownName(a) == maintenance.ShutdownName(b) {
		t.Errorf("two nodes with long names share %s", maintenance.ShutdownName(a))
	}
	// Attack: a node is named as the name of the other one's maintenance ends.
	_, copied, _ := strings.Cut(maintenance.ShutdownName(a), "node-shutdown")
	for _, node := range []string{copied[1:], copied} {
		if maintenance.ShutdownName(node) == maintenance.ShutdownName(a) {
			t.Errorf("nodes %s and %s share %s", node, a, maintenance.ShutdownName(a))
		}
	}
	for n := range 40 {
		dotted := strings.Repeat("n", 200+n) + strings.Repeat(".n", 4)
		if name := maintenance.ShutdownName(dotted); len(validation.IsDNS1123Subdomain(name)) > 0 {
			t.Errorf("%s is no name", name)
		}
	}
	w := newWorld(t)
	for _, node := range []string{"one", a, b} {
		if got := maintenance.OfShutdown(w.goesDown(node)); got != node {
			t.Errorf("the maintenance is of node %q, want %q", got, node)
		}
	}
}
