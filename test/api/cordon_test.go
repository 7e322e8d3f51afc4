package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	coremaintenance "ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/test/cluster"
)

// operator is a person who may change nodes, and what the API server says to them.
type operator struct {
	admin, user, manager client.Client
	*warnings
}

func newOperator(t *testing.T) operator {
	t.Helper()
	server := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installPolicies(t, server)
	name, _ := server.User(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch", "update"}})
	o := operator{admin: server.Client, manager: server.Mighty(t, cluster.Account.User()), warnings: &warnings{}}
	o.user = o.as(t, server, name)
	return o
}

// as is the client of a user whose warnings the operator reads.
func (o operator) as(t *testing.T, server *cluster.Cluster, name string, groups ...string) client.Client {
	t.Helper()
	return as(t, server, rest.ImpersonationConfig{UserName: name, Groups: append(groups, "system:authenticated")}, o.warnings)
}

// node is a cordoned node with this ledger; an empty one is none.
func (o operator) node(t *testing.T, name, ledger string) *unstructured.Unstructured {
	t.Helper()
	annotations := map[string]string{"example.com/note": "any"}
	if ledger != "" {
		annotations[v1alpha1.CordonAnnotation] = ledger
	}
	return create(t, o.manager, fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata:
  name: %s
  annotations:
%s
spec: {unschedulable: true}`, name, pairs(annotations, "    ")))
}

// cordon does what kubectl does.
func (o operator) cordon(t *testing.T, by client.Client, node *unstructured.Unstructured, unschedulable bool) error {
	t.Helper()
	return patch(t, by, node, fmt.Sprintf("spec: {unschedulable: %v}", unschedulable))
}

// ledgerOf is what the manager writes on a node that these maintenances hold.
func ledgerOf(t *testing.T, names ...string) string {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "held"}}
	snapshot := coremaintenance.Snapshot{Now: time.Now(), Nodes: []*corev1.Node{node}, Pods: map[string][]coremaintenance.Pod{"held": nil}}
	for _, name := range names {
		snapshot.Maintenances = append(snapshot.Maintenances, &v1alpha1.NodeMaintenance{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.NodeMaintenanceSpec{
				Stage: v1alpha1.StageCordon,
				NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"held"}}},
				}}},
			},
		})
	}
	nodes := coremaintenance.Decide(snapshot).Nodes
	if len(nodes) != 1 || nodes[0].Cordon == nil {
		t.Fatalf("no node is cordoned: %+v", nodes)
	}
	return nodes[0].Cordon.Ledger
}

// advice is how maintenances are ended or changed.
func advice(it, names string) string {
	return "; to end " + it + ": kubectl patch nodemaintenance " + names + ` --type=merge -p '{"spec":{"stage":"Complete"}}'` +
		"; to leave out this node only, change spec.nodeSelector: kubectl edit nodemaintenance " + names
}

// unreadableHolder is said of a ledger that names nobody.
const unreadableHolder = `is under maintenance and is cordoned again, for a NodeMaintenance whose name cannot be read from its annotation ` +
	`ebbtide.dev/cordon; "kubectl get nodemaintenances" lists them; end it by setting its spec.stage to Complete`

// Whoever uncordons a node under maintenance is told who will cordon it again and
// how to end that, whatever the ledger says; the node is written all the same.
func TestUncordonUnderMaintenanceIsWarnedOf(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	longName := strings.Repeat("n", 253)
	several := "is under maintenance and is cordoned again, for NodeMaintenances a, b, c"
	for name, test := range map[string]struct{ ledger, want string }{
		"nobody":       {"", ""},
		"one":          {ledgerOf(t, "kernel-update"), "is under maintenance and is cordoned again, for NodeMaintenance kernel-update" + advice("it", "kernel-update")},
		"three":        {ledgerOf(t, "c", "b", "a"), several + advice("them", "a b c")},
		"many":         {ledgerOf(t, "d", "c", "b", "a"), several + " and others" + advice("them", "a b c")},
		"by-hand":      {"{ \"holders\" :\n[ \"a.b\" ] }", "is under maintenance and is cordoned again, for NodeMaintenance a.b" + advice("it", "a.b")},
		"three-long":   {ledgerOf(t, longName, longName[1:], longName[2:]), "is under maintenance and is cordoned again, for NodeMaintenances " + longName[2:] + ", " + longName[1:] + ", " + longName + advice("them", longName[2:]+" "+longName[1:]+" "+longName)},
		"no-holders":   {`{"wasUnschedulable":false,"holders":[]}`, unreadableHolder},
		"no-json":      {"}", unreadableHolder},
		"empty":        {" ", unreadableHolder},
		"odd-names":    {`{"holders":["a;rm -rf","$(b)"]}`, unreadableHolder},
		"flags":        {`{"holders":["--all","-f"]}`, unreadableHolder},
		"a-flag":       {`{"holders":["a","--all"]}`, "is under maintenance and is cordoned again, for NodeMaintenance a" + advice("it", "a")},
		"numbers":      {`{"holders":[1,2]}`, unreadableHolder},
		"a-long-name":  {`{"holders":["` + longName + `n"]}`, unreadableHolder},
		"late":         {`{"x":"` + strings.Repeat("x", 17000) + `","holders":["a"]}`, unreadableHolder},
		"huge":         {`{"holders":[` + strings.Repeat(`"a",`, 60000) + `"a"]}`, "is under maintenance and is cordoned again, for NodeMaintenances a, a, a and others" + advice("them", "a a a")},
		"huge-garbage": {strings.Repeat(`"holders":["`, 20000), unreadableHolder},
	} {
		t.Run(name, func(t *testing.T) {
			node := o.node(t, "under-"+name, test.ledger)
			if err := o.cordon(t, o.user, node, false); err != nil {
				t.Fatalf("refused: %v", err)
			}
			var want []string
			if test.want != "" {
				want = []string{"node under-" + name + " " + test.want}
			}
			if diff := cmp.Diff(want, o.take()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			live := &corev1.Node{}
			if err := o.admin.Get(t.Context(), client.ObjectKeyFromObject(node), live); err != nil || live.Spec.Unschedulable {
				t.Errorf("the node is cordoned: %v, %v", live.Spec.Unschedulable, err)
			}
		})
	}
}

// What is no change of a cordon is nobody's business, and what the manager does is its own.
func TestMessagesOfChangesOfANode(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	server := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	manager := o.as(t, server, "system:serviceaccount:"+cluster.Account.Namespace+":"+cluster.Account.Name, "system:masters")
	node := o.node(t, "changed", ledgerOf(t, "upgrade"))
	anyway := []string{"node changed is under maintenance and cordoned anyway, for NodeMaintenance upgrade, at whose end it becomes what it was before: " +
		"cordon it then if it is to stay cordoned" + advice("it", "upgrade")}
	again := []string{"node changed is under maintenance and is cordoned again, for NodeMaintenance upgrade" + advice("it", "upgrade")}
	o.play(t, node,
		step{o.user, "metadata: {labels: {pool: a}}", nil},
		step{o.user, "spec: {unschedulable: true}", nil},
		step{o.user, "spec: {taints: [{key: a, effect: NoSchedule}]}", nil},
		step{manager, "spec: {unschedulable: false}", nil},
		step{o.user, "metadata: {labels: {pool: b}}", nil},
		step{o.user, "spec: {unschedulable: true}", anyway},
		step{o.user, "spec: {unschedulable: null}", again},
		step{manager, "spec: {unschedulable: true}", nil},
		step{o.user, "{metadata: {annotations: {ebbtide.dev/cordon: null}}, spec: {unschedulable: false}}", again},
		step{o.user, "spec: {unschedulable: true}", nil})
}
