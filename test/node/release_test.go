package node

import (
	"strings"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/image"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

const (
	// values are those of README.md.
	values = " --namespace " + system + " --set image.repository=registry.example.com/ebbtide --wait --timeout 2m"
)

// held has the drain of a node without managers wait for a budget that lets nobody go.
func (s *stage) held(t *testing.T, maintenance string) (node string, let func()) {
	t.Helper()
	s.settled(t)
	node = s.withoutManager(t)
	namespace := s.Namespace(t)
	s.serveOn(t, namespace, node, program{name: "held", grace: 2 * time.Second})
	budget := s.budget(t, namespace, "held", 0)
	s.maintain(t, maintenance, node)
	s.says(t, maintenance, v1alpha1.BlockerPDBUnsatisfiable)
	return node, func() {
		if err := s.Client.Delete(t.Context(), budget); err != nil {
			t.Fatal(err)
		}
	}
}

// upgrade replaces an earlier release in the middle of a drain that waits for a budget,
// goes back, and replaces it again. The drain goes on behind it all.
func (s *stage) upgrade(t *testing.T) {
	old := t.TempDir()
	s.run(t, "git archive "+prebuilt.Earlier+" charts | tar -x -C "+old)
	// The chart has the rights of its own manager only. That release has no agent.
	s.importImage(t, prebuilt.Earlier, image.Image{Binaries: built(t, "ebbtide-earlier")})
	s.run(t, "helm upgrade ebbtide "+old+"/charts/ebbtide"+values+" --set image.tag="+prebuilt.Earlier)
	_, let := s.held(t, "upgrade")
	for _, step := range []string{"helm upgrade ebbtide charts/ebbtide" + values, "helm rollback ebbtide --namespace " + system + " --wait", "helm upgrade ebbtide charts/ebbtide" + values} {
		s.run(t, step)
		s.settled(t)
		s.says(t, "upgrade", v1alpha1.BlockerPDBUnsatisfiable)
	}
	let()
	t.Logf("drained %s after the budget was gone", s.drained(t, "upgrade"))
	s.complete(t, "upgrade")
}

// uninstall takes the release away in the middle of a drain that cannot go on. That is
// refused, and by whom it is held is said; whoever wants it all the same has the
// maintenance ended, and nothing is left of Ebbtide but its kinds and that maintenance.
func (s *stage) uninstall(t *testing.T) {
	node, _ := s.held(t, "unfinished")
	uninstall := "helm uninstall ebbtide --namespace " + system + " --wait --timeout 4m"
	out, err := s.shell(t, uninstall)
	t.Logf("while a maintenance goes on: %v\n%s", err, out)
	if err == nil || !strings.Contains(out, "unfinished") {
		t.Errorf("helm uninstall ends with %v, want it refused because of the maintenance", err)
	}
	s.settled(t)
	// Helm takes the release for half gone, and for a deployed one again after a rollback to itself.
	s.run(t, "helm rollback ebbtide --namespace "+system+" $(helm history ebbtide --namespace "+system+" | tail -1 | cut -f1)")
	s.run(t, "helm upgrade ebbtide charts/ebbtide"+values+" --set uninstall.onMaintenances=Complete")
	s.run(t, uninstall)

	object, err := getNode(t.Context(), s.Cluster, node)
	if err != nil || object.Spec.Unschedulable || len(object.Spec.Taints) > 0 {
		t.Errorf("node %s is left with %+v, %v", node, object.Spec, err)
	}
	left := s.run(t, "kubectl get nodes,pods,poddisruptionbudgets,daemonsets,deployments,replicasets,leases,secrets,evacuations,drainrecords --all-namespaces -o json "+
		`| grep -o '"[a-z.-]*ebbtide.dev[a-z/-]*":' | sort | uniq -c || true`)
	if left != "" {
		t.Errorf("keys of Ebbtide are left:\n%s", left)
	}
	if out := s.run(t, "kubectl get nodemaintenances -o jsonpath='{range .items[*]}{.metadata.name} {.spec.stage} {.metadata.finalizers}{end}'"); out != "unfinished Complete " {
		t.Errorf("maintenances are left as %q", out)
	}
	s.run(t, "kubectl delete nodemaintenances --all")
}
