package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/cli"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// stamped are lines that begin with a time.
var stamped = regexp.MustCompile(`^\d\d:\d\d:\d\dZ (.*)$`)

// watching is kubectl ebbtide watch at work.
type watching struct {
	t     *testing.T
	lines chan string
	code  chan int
	end   context.CancelFunc
	said  *strings.Builder
}

// follow begins to watch, and ends with the test at the latest.
func follow(t *testing.T, c *cluster.Cluster, args ...string) *watching {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	in, out := io.Pipe()
	w := &watching{t: t, lines: make(chan string, 100), code: make(chan int, 1), end: cancel, said: &strings.Builder{}}
	go func() {
		for read := bufio.NewScanner(in); read.Scan(); {
			w.lines <- read.Text()
		}
		close(w.lines)
	}()
	go func() {
		code := cli.Run(ctx, append([]string{"watch", "--kubeconfig", c.Kubeconfig}, args...), genericiooptions.IOStreams{Out: out, ErrOut: w.said})
		_ = out.Close()
		w.code <- code
	}()
	return w
}

// sees wants these lines next.
func (w *watching) sees(want ...string) {
	w.t.Helper()
	for _, line := range want {
		got := patience.Receive(w.t, fmt.Sprintf("the line %q", line), w.lines)
		if found := stamped.FindStringSubmatch(got); found == nil || found[1] != line {
			w.t.Fatalf("it prints %q, want %q after a time", got, line)
		}
	}
}

// ends wants the end, with no other line before and this exit code.
func (w *watching) ends(code int) (said string) {
	w.t.Helper()
	got := patience.Receive(w.t, "the end of the command", w.code)
	for line := range w.lines {
		w.t.Errorf("it prints %q, too", line)
	}
	if got != code {
		w.t.Errorf("exit code %d, want %d: %s", got, code, w.said)
	}
	return w.said.String()
}

// draining is a maintenance in Drain for which the test is the controller.
type draining struct {
	t *testing.T
	c *cluster.Cluster
	*v1alpha1.NodeMaintenance
}

func newDraining(t *testing.T, c *cluster.Cluster, name string) *draining {
	t.Helper()
	created := object(t, maintenance(name, anyNode+"\nstage: Drain"))
	keep(t, c.Client, created)
	d := &draining{t, c, &v1alpha1.NodeMaintenance{}}
	d.Name = name
	return d
}

// becomes writes its status.
func (d *draining) becomes(condition, reason string, nodes ...v1alpha1.NodeMaintenanceNodeStatus) {
	d.t.Helper()
	if err := d.c.Client.Get(d.t.Context(), keyOf(d.Name), d.NodeMaintenance); err != nil {
		d.t.Fatal(err)
	}
	d.Status = v1alpha1.NodeMaintenanceStatus{NodeCount: int32(len(nodes)), NodeStatuses: nodes, StageStatuses: d.Status.StageStatuses}
	if len(d.Status.StageStatuses) == 0 {
		now := metav1.Now()
		d.Status.StageStatuses = []v1alpha1.StageStatus{{Name: v1alpha1.StageDrain, StartTimestamp: &now}}
	}
	if condition != "" {
		d.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Now()}}
	}
	if err := d.c.Client.Status().Update(d.t.Context(), d.NodeMaintenance); err != nil {
		d.t.Fatal(err)
	}
}

// has is a node with pods that leave, and what holds them up.
func has(name string, pods int32, blockers ...v1alpha1.Blocker) v1alpha1.NodeMaintenanceNodeStatus {
	said := v1alpha1.NodeMaintenanceNodeStatus{NodeRef: v1alpha1.NodeReference{Name: name}, PodsEvacuating: pods, State: v1alpha1.NodeStateDraining, DrainMessage: "Evacuating", Blockers: blockers}
	if pods == 0 {
		said.State, said.DrainMessage = v1alpha1.NodeStateDrained, "Drained."
	}
	return said
}

// webIsUsedUp is a budget that holds one pod up.
func webIsUsedUp() v1alpha1.Blocker {
	return v1alpha1.Blocker{
		Type: v1alpha1.BlockerPDBExhausted, PodCount: 1, Message: "The disruption budget web needs 2 healthy pods and has 2 currently.", Suggestion: "Wait.",
		Object: v1alpha1.BlockerObject{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Namespace: "shop", Name: "web"},
	}
}

const webHolds = "1 pod blocked by PodDisruptionBudget/shop/web (PDBExhausted): The disruption budget web needs 2 healthy pods and has 2 currently. What helps: Wait."

func TestAMaintenanceIsWatchedUntilItIsDrained(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	name := c.Pool() + "-kernel"
	d := newDraining(t, c, name)
	d.becomes("", "", has("node-1", 3), has("node-2", 1))
	w := follow(t, c, name)
	w.sees(name + ": stage Drain, draining, 0 of 2 nodes drained, 4 pods left")
	d.becomes("", "", has("node-1", 2), has("node-2", 1))
	w.sees("node-1: 2 pods left")
	d.becomes("Blocked", "PDBExhausted", has("node-1", 1, webIsUsedUp()), has("node-2", 0))
	w.sees(name+": stage Drain, blocked, 1 of 2 nodes drained, 1 pod left, 1 blocked", "node-1: 1 pod left", "node-1: "+webHolds, "node-2: drained")
	d.becomes("Drained", "Drained", has("node-1", 0), has("node-2", 0))
	w.sees(name+": stage Drain, drained, 2 of 2 nodes drained", "node-1: drained")
	if said := w.ends(0); said != "" {
		t.Errorf("it says %q", said)
	}
}

func TestWhoStopsWatchingIsToldThatTheDrainGoesOn(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	name := c.Pool() + "-kernel"
	d := newDraining(t, c, name)
	d.becomes("Blocked", "PDBExhausted", has("node-1", 1, webIsUsedUp()))
	brief := name + ": stage Drain, blocked, 0 of 1 node drained, 1 pod left, 1 blocked"
	comeBack := "The drain continues in the background. Watch it with\n  "
	w := follow(t, c, name)
	w.sees(brief, "node-1: "+webHolds)
	w.end()
	if said := w.ends(130); !strings.HasPrefix(said, comeBack) || !strings.Contains(said, " watch "+name+" --kubeconfig "+c.Kubeconfig+"\n") {
		t.Errorf("it says %q", said)
	}
	late := follow(t, c, name, "--timeout=1s")
	late.sees(brief, "node-1: "+webHolds)
	if said := late.ends(2); !strings.HasPrefix(said, "Timed out after 1s.\n"+brief+"\n  "+webHolds+"\n"+comeBack) {
		t.Errorf("it says %q", said)
	}
}

func TestAMaintenanceThatIsDeletedOrNotThere(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	name := c.Pool() + "-kernel"
	d := newDraining(t, c, name)
	d.becomes("", "", has("node-1", 3))
	if said := follow(t, c, name[:len(name)-1]+"k").ends(1); !strings.HasPrefix(said, "error: NodeMaintenance not found: \""+name[:len(name)-1]+"k\" (did you mean "+name+"?). List them with\n") {
		t.Errorf("it says %q", said)
	}
	w := follow(t, c, name)
	w.sees(name + ": stage Drain, draining, 0 of 1 node drained, 3 pods left")
	if err := c.Client.Delete(t.Context(), d.NodeMaintenance); err != nil {
		t.Fatal(err)
	}
	if said := w.ends(1); said != "error: NodeMaintenance "+name+" was deleted before its nodes were drained; last status: stage Drain, draining, 0 of 1 node drained, 3 pods left\n" {
		t.Errorf("it says %q", said)
	}
	if _, said, code := plugin(t, c, "watch", "Kernel_1"); code != 1 || !strings.HasPrefix(said, `error: NodeMaintenance not found: "Kernel_1"`) {
		t.Errorf("%d %q", code, said)
	}
	nobody, _ := c.User(t, rbacv1.PolicyRule{APIGroups: []string{"ebbtide.dev"}, Resources: []string{"nodemaintenances"}, Verbs: []string{"list"}})
	other := newDraining(t, c, c.Pool()+"-other")
	other.becomes("", "", has("node-1", 3))
	forbidden := follow(t, c, other.Name, "--as", nobody)
	forbidden.sees(other.Name + ": stage Drain, draining, 0 of 1 node drained, 3 pods left")
	if said := forbidden.ends(4); !strings.Contains(said, "you may not watch nodemaintenances.ebbtide.dev in the whole cluster") {
		t.Errorf("it says %q", said)
	}
}

func keyOf(name string) client.ObjectKey { return client.ObjectKey{Name: name} }
