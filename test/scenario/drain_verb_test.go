package scenario

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

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

func (w *world) deleteBudget(name string) {
	w.t.Helper()
	budget := &policyv1.PodDisruptionBudget{}
	budget.Namespace, budget.Name = w.ns, name
	w.must("delete budget "+name, w.client.Delete(w.ctx, budget))
}

// In a cluster that has never seen Ebbtide nothing can be asked for, and it is said how that
// is changed. The nodes stay as they are.
func TestPluginWithoutEbbtideSuggestsToInstallIt(t *testing.T) {
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
