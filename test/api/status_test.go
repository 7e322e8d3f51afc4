package api

import (
	"encoding/json"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/view"
	"ebbtide.dev/ebbtide/test/cluster"
)

// shows wants these words of a status, in this order, whatever blanks are between them.
func shows(t *testing.T, text string, want ...string) {
	t.Helper()
	rest := strings.Join(strings.Fields(text), " ")
	for _, words := range want {
		_, after, found := strings.Cut(rest, words)
		if !found {
			t.Fatalf("want %q in this:\n%s", words, text)
		}
		rest = after
	}
}

func TestTheStatusOfAMaintenanceThatIsHeldUp(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	namespace, name, node := c.Namespace(t), c.Pool()+"-kernel", c.Pool()+"-node-1"
	d := newDraining(t, c, name)
	locked := webIsUsedUp()
	locked.Type, locked.Object.Namespace, locked.Message = v1alpha1.BlockerPDBLocked, namespace, "It is locked by user/anna."
	d.becomes("Blocked", "PDBLocked", has(node, 2, locked), has(c.Pool()+"-node-2", 0))
	web := podOn(namespace, node, "web-1", "web")
	must(t, c.Client.Create(t.Context(), web))
	refused(t, c.Client, web, "", "web is used up.")
	if err := c.Client.Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "web", Annotations: map[string]string{v1alpha1.LockAnnotation: `{"holder":"user/anna","acquiredAt":"2026-01-01T00:00:00Z","renewedAt":"2100-01-01T00:00:00Z","expiresAt":"2100-01-01T00:00:00Z","reason":"compaction"}`},
	}}); err != nil {
		t.Fatal(err)
	}
	out, told, code := plugin(t, c, "status", name)
	shows(t, out, "NodeMaintenance "+name+", stage Drain since ", "blocked, 1/2 nodes drained, 2 pods left, 1 blocked. ETA: unknown yet.",
		"Blockers: PodDisruptionBudget/"+namespace+"/web (PDBLocked): 1 pod It is locked by user/anna. What helps: Wait.",
		"Nodes: "+node+": blocked, 2 pods left, 1 blocked. Evacuating "+namespace+"/web-1 refused since ", "PDBExhausted: web is used up. and 1 more pod",
		"Drained: "+c.Pool()+"-node-2", "Locks: "+namespace+"/web is locked by user/anna", ": compaction")
	if code != 2 || told != "" {
		t.Errorf("exit code %d, and it tells %q", code, told)
	}
	assertForPrograms(t, c, name)
	table, told, code := plugin(t, c, "status")
	shows(t, table, "NAME STAGE STATE DRAINED PODS LEFT BLOCKED ETA REASON AGE", name+" Drain blocked 1/2 2 1 unknown - ", "See the blockers with")
	if code != 0 || told != "" {
		t.Errorf("exit code %d, and it tells %q", code, told)
	}
	assertPartlyForbidden(t, c, name, namespace)
}

// assertForPrograms wants the model as JSON and YAML, and names.
func assertForPrograms(t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	var asJSON, asYAML view.Status
	text, _, code := plugin(t, c, "status", "nm/"+name, "-o", "json")
	if err := json.Unmarshal([]byte(text), &asJSON); err != nil || code != 2 {
		t.Fatalf("%v, exit code %d:\n%s", err, code, text)
	}
	text, _, _ = plugin(t, c, "status", "nodemaintenance", name, "-o", "yaml")
	if err := yaml.Unmarshal([]byte(text), &asYAML); err != nil {
		t.Fatal(err)
	}
	if asJSON.Kind != "MaintenanceStatus" || asJSON.APIVersion != "cli.ebbtide.dev/v1alpha1" || asJSON.PodsBlocked != 1 || asYAML.Name != name || len(asYAML.Nodes) != 2 {
		t.Errorf("%+v\n%+v", asJSON, asYAML)
	}
	if names, _, _ := plugin(t, c, "status", "-o", "name"); !strings.Contains(names, "nodemaintenance.ebbtide.dev/"+name+"\n") {
		t.Errorf("names: %q", names)
	}
}

// assertPartlyForbidden wants what somebody may not read to be said, and the rest to be shown.
func assertPartlyForbidden(t *testing.T, c *cluster.Cluster, name, namespace string) {
	t.Helper()
	half, _ := c.User(t, rbacv1.PolicyRule{APIGroups: []string{"ebbtide.dev"}, Resources: []string{"nodemaintenances"}, Verbs: []string{"get", "list"}})
	out, told, code := plugin(t, c, "status", name, "--as", half)
	shows(t, out, "blocked, 1/2 nodes drained, 2 pods left", "blocked, 2 pods left, 1 blocked. Evacuating", "Drained: ")
	shows(t, told, "Incomplete: ")
	if !strings.Contains(told, "get poddisruptionbudget "+namespace+"/web: ") || !strings.Contains(told, "list pods of node ") || code != 2 {
		t.Errorf("exit code %d, and it tells %q", code, told)
	}
	nobody, _ := c.User(t)
	if _, told, code := plugin(t, c, "status", "--as", nobody); code != 4 || !strings.Contains(told, "you may not list nodemaintenances.ebbtide.dev in the whole cluster") {
		t.Errorf("%d %q", code, told)
	}
}

func TestTheStatusOfWhatIsOverOrNotThere(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	name := c.Pool() + "-kernel"
	done := object(t, maintenance(name, anyNode+"\nstage: Complete"))
	keep(t, c.Client, done)
	d := &draining{t, c, &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	d.Status.StageStatuses = []v1alpha1.StageStatus{{Name: v1alpha1.StageComplete}}
	if err := c.Client.Get(t.Context(), keyOf(name), d.NodeMaintenance); err != nil {
		t.Fatal(err)
	}
	d.Status.StageStatuses = []v1alpha1.StageStatus{{Name: v1alpha1.StageComplete}}
	if err := c.Client.Status().Update(t.Context(), d.NodeMaintenance); err != nil {
		t.Fatal(err)
	}
	if out, told, _ := plugin(t, c, "status"); strings.Contains(out, name) || !strings.Contains(out+told, " complete") {
		t.Errorf("it is shown:\n%s%s", out, told)
	}
	out, _, _ := plugin(t, c, "status", "--all")
	shows(t, out, name+" Complete complete 0/0 0 0 - ")
	out, _, code := plugin(t, c, "status", name)
	if shows(t, out, "NodeMaintenance "+name+", stage Complete", "complete."); code != 0 {
		t.Errorf("exit code %d", code)
	}
	(&desk{Cluster: c, t: t}).transcript("status-refused.txt", "status POOL-kernell", "status a b", "status a --all", "status node/a", "status node/A", "status a -o html")
}
