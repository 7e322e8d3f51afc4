package scenario

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/cli"
	"ebbtide.dev/ebbtide/test/cluster"
)

// what differs from run to run in what the plugin prints.
var (
	lasted  = regexp.MustCompile(`\bin \d+m?s`)
	program = strings.NewReplacer("go run ./cmd/kubectl-ebbtide", "kubectl ebbtide")
)

// said is what a person sees of a run of the plugin.
type said struct {
	Code        int
	Out, ErrOut string
}

// plugin runs kubectl ebbtide, again while no manager answers, which may just have been killed.
// Names are shown without what makes them this world's own.
func (w *world) plugin(ctx context.Context, args ...string) said {
	w.t.Helper()
	var got said
	w.eventually("the manager to answer kubectl ebbtide", func() (bool, any) {
		streams, _, out, told := genericiooptions.NewTestIOStreams()
		code := cli.Run(ctx, append(args, "--kubeconfig", w.cluster.Kubeconfig), streams)
		shown := func(text string) string {
			text = program.Replace(strings.NewReplacer(w.prefix, "", " --kubeconfig "+w.cluster.Kubeconfig, "", w.ns, "NS").Replace(text))
			return lasted.ReplaceAllString(text, "in TIME")
		}
		got = said{code, shown(out.String()), shown(told.String())}
		return !strings.Contains(got.ErrOut, "no manager of Ebbtide answers"), got
	})
	return got
}

// forgetting removes the maintenance of a story afterwards.
func (w *world) forgetting(name string) string {
	w.t.Cleanup(func() { w.forget(name) })
	return w.name(name)
}

// An administrator drains a node, sees what is in the way, does something about it, comes
// back, and gives the node back.
func TestADrainThatIsBlockedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one")
	w.pods(nodes[0], pod{name: "web"}, pod{name: "db", neverEvicted: true})
	name := w.forgetting("kernel")

	got := w.plugin(w.ctx, "drain", nodes[0], "--name", name, "--timeout", "5s")
	for _, line := range []string{
		" kernel: ",
		"Timed out after 5s.\nkernel: ",
		"PodDisruptionBudget db can never allow a disruption: ",
		"kubectl -n NS patch poddisruptionbudget db ",
		"Watch it with\n  kubectl ebbtide watch kernel\n",
	} {
		if !strings.Contains(got.ErrOut, line) {
			t.Errorf("it does not tell %q in\n%s", line, got.ErrOut)
		}
	}
	if got.Code != 2 || got.Out != "NodeMaintenance kernel drains one\n" {
		t.Errorf("exit code %d, and it prints %q", got.Code, got.Out)
	}

	if got := w.plugin(w.ctx, "status", nodes[0]); got.Code != 2 || !strings.HasPrefix(got.Out, "NodeMaintenance kernel, ") || !strings.Contains(got.Out, "PDBUnsatisfiable") {
		t.Errorf("status of the node: %+v", got)
	}
	if got := w.plugin(w.ctx, "watch", "node/"+nodes[0], "--timeout=1s"); got.Code != 2 || !strings.Contains(got.ErrOut, "Timed out after 1s.\nkernel: ") {
		t.Errorf("watching the node: %+v", got)
	}
	w.awaitEvent("one", v1alpha1.EventBlocked)
	w.awaitEvent("kernel", v1alpha1.EventBlocked)
	w.deleteBudget("db")
	want := said{Out: "NodeMaintenance kernel drains one\nDrained one in TIME. Return to service with\n  kubectl ebbtide complete kernel\n"}
	got = w.plugin(w.ctx, "drain", "nodemaintenance/"+name)
	if !strings.HasPrefix(got.ErrOut, "NodeMaintenance kernel is already in stage Drain\n") {
		t.Errorf("it tells %q", got.ErrOut)
	}
	got.ErrOut = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.assertUnschedulable(nodes[0], true)

	if diff := cmp.Diff(said{Out: "NodeMaintenance kernel is complete; schedulable again: one\n"}, w.plugin(w.ctx, "complete", nodes[0])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.assertUnschedulable(nodes[0], false)
	if got := w.plugin(w.ctx, "status", nodes[0]); got.Code != 1 || !strings.HasPrefix(got.ErrOut, "error: no maintenance holds node \"one\". ") {
		t.Errorf("status of a node that nobody holds: %+v", got)
	}
	want = said{Out: "NodeMaintenance kernel is complete; schedulable again: one\n", ErrOut: "NodeMaintenance kernel is already complete\n"}
	if diff := cmp.Diff(want, w.plugin(w.ctx, "complete", name)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What was planned, and cordoned, is started by its name.
func TestAPlannedMaintenanceIsStartedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one", "two")
	w.pods(nodes[0], pod{name: "web"})
	w.maintain("plan", v1alpha1.StageIdle, nodes)
	name := w.name("plan")

	if got := w.plugin(w.ctx, "cordon", "nm/"+name); got.Code != 0 || !strings.HasPrefix(got.Out, "NodeMaintenance plan keeps nodes with kubernetes.io/hostname In one,two cordoned\n") {
		t.Errorf("%+v", got)
	}
	w.assertUnschedulable(nodes[0], true)
	w.assertUnschedulable(nodes[1], true)
	if got := w.plugin(w.ctx, "drain", "--name", name); got.Code != 1 || !strings.HasPrefix(got.ErrOut, "error: 2 nodes would be drained at the same time: one and two. ") {
		t.Errorf("%+v", got)
	}
	if got := w.plugin(w.ctx, "drain", "--name", name, "--all-at-once"); got.Code != 0 || !strings.Contains(got.Out, "\nDrained nodes with kubernetes.io/hostname In one,two in TIME. ") {
		t.Errorf("%+v", got)
	}
	w.awaitGone("web")
	if got := w.plugin(w.ctx, "uncordon", nodes[0], nodes[1]); got.Code != 0 || got.Out != "NodeMaintenance plan is complete; schedulable again: one and two\n" {
		t.Errorf("%+v", got)
	}
	want := said{Code: 1, ErrOut: "error: NodeMaintenance plan is in stage Complete and cannot go back. Create another one with\n  kubectl ebbtide drain NODE\n"}
	if diff := cmp.Diff(want, w.plugin(w.ctx, "drain", "nm/"+name)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Two people drain the same node. Each is told of the other, and the node comes back when
// both are through.
func TestTwoDrainsOfANodeFromTheCommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes := w.nodes("one")
	w.cordon(nodes[0], true)
	w.forgetting("disk")
	w.forgetting("kernel")
	if got := w.plugin(w.ctx, "drain", nodes[0], "--name", w.name("disk")); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	got := w.plugin(w.ctx, "drain", nodes[0], "--name", w.name("kernel"))
	if got.Code != 0 || !strings.HasPrefix(got.ErrOut, "NodeMaintenance disk already holds one: the plans are combined, and the nodes are released when both are complete\n") {
		t.Errorf("%+v", got)
	}
	want := said{Code: 1, ErrOut: "error: node \"one\" is held by disk and kernel; specify one of them, or add --yes to complete the node for all\n"}
	if diff := cmp.Diff(want, w.plugin(w.ctx, "complete", nodes[0])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = said{Out: "NodeMaintenance disk is complete\n", ErrOut: "one stays cordoned, as it is held by NodeMaintenance kernel\n"}
	if diff := cmp.Diff(want, w.plugin(w.ctx, "complete", w.name("disk"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = said{Out: "NodeMaintenance kernel is complete\n", ErrOut: "one stays cordoned, as it was cordoned before. Uncordon it with\n  kubectl uncordon one\n"}
	if diff := cmp.Diff(want, w.plugin(w.ctx, "complete", w.name("kernel"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.assertUnschedulable(nodes[0], true)
}

func (w *world) deleteBudget(name string) {
	w.t.Helper()
	budget := &policyv1.PodDisruptionBudget{}
	budget.Namespace, budget.Name = w.ns, name
	w.must("delete budget "+name, w.client.Delete(w.ctx, budget))
}

// In a cluster that has never seen Ebbtide nothing can be asked for, and it is said how that
// is changed. The nodes stay as they are.
func TestWithoutEbbtideTheCommandLineSaysHowToInstallIt(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t, cluster.Spec{Workload: true})
	nodes := w.nodes("one")
	missing := said{Code: 1, ErrOut: "error: Ebbtide is not installed in this cluster, or is too old (ebbtide.dev is not served). Install it with\n" +
		"  helm upgrade --install ebbtide charts/ebbtide --namespace ebbtide-system --create-namespace --set image.repository=REGISTRY/ebbtide --wait\n" +
		"or choose another cluster with --context\n"}
	for _, args := range [][]string{{"drain", nodes[0]}, {"cordon", nodes[0]}, {"drain", "nm/plan"}, {"complete", "plan"}} {
		if diff := cmp.Diff(missing, w.plugin(w.ctx, args...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args[0], diff)
		}
	}
	w.assertUnschedulable(nodes[0], false)
}
