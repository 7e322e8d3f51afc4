package group_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/test/difference"
)

func aNode(name string, labels map[string]string, holders ...string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if len(holders) > 0 {
		ledger := fmt.Sprintf(`{"wasUnschedulable":false,"holders":["%s"]}`, strings.Join(holders, `","`))
		node.Annotations = map[string]string{v1alpha1.CordonAnnotation: ledger}
	}
	return node
}

func aMaintenance(name string, terms ...corev1.NodeSelectorTerm) *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageDrain, NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: terms}},
	}
}

func label(operator corev1.NodeSelectorOperator, key string, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func named(name string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
	}}
}

func in(pool string) corev1.NodeSelectorTerm { return label(corev1.NodeSelectorOpIn, "pool", pool) }

func wantGroup(t *testing.T, x *group.Index, of group.Member, maintenances, nodes []string) {
	t.Helper()
	got := x.Of(of)
	want := &group.Group{Maintenances: maintenances, Nodes: nodes}
	difference.None(t, fmt.Sprintf("group of %s", of), want, got, cmpopts.IgnoreUnexported(group.Group{}), cmpopts.EquateEmpty())
}

func TestUnknownMemberIsAlone(t *testing.T) {
	t.Parallel()
	var x group.Index
	wantGroup(t, &x, group.Node("gone"), nil, []string{"gone"})
	wantGroup(t, &x, group.Maintenance("gone"), []string{"gone"}, nil)
	if x.DeleteNode("gone") != nil || x.DeleteMaintenance("gone") != nil || x.Selected("gone") {
		t.Error("somebody belongs to a node that is gone")
	}
	if got := x.Key(group.Node("gone")); got != group.Node("gone") {
		t.Errorf("key = %s, want the node itself", got)
	}
}

// Of two members of a group the key is the same once the group was looked at.
func TestTheKeyStandsForTheGroup(t *testing.T) {
	t.Parallel()
	var x group.Index
	x.SetNode(aNode("one", map[string]string{"pool": "old"}))
	x.SetMaintenance(aMaintenance("b", in("old")))
	x.SetMaintenance(aMaintenance("a", in("old")))
	if got := x.Key(group.Node("one")); got != group.Node("one") {
		t.Errorf("before anybody has looked the key is %s", got)
	}
	x.Of(group.Node("one"))
	for _, member := range []group.Member{group.Node("one"), group.Maintenance("a"), group.Maintenance("b")} {
		if got := x.Key(member); got != group.Maintenance("a") {
			t.Errorf("key of %s = %s, want maintenance a", member, got)
		}
	}
	x.DeleteMaintenance("a")
	if got := x.Of(group.Node("one")).Key(); got != group.Maintenance("b") {
		t.Errorf("without a the key is %s, want maintenance b", got)
	}
}

// chance changes a small world at random, and tells an index and a list of it.
type chance struct {
	*rand.Rand

	index        group.Index
	nodes        map[string]*corev1.Node
	maintenances map[string]*v1alpha1.NodeMaintenance
}

func (c *chance) step() []group.Member {
	name := string(rune('a' + c.IntN(6)))
	switch c.IntN(4) {
	case 0:
		if c.IntN(3) == 0 {
			delete(c.nodes, name)
			return c.index.DeleteNode(name)
		}
		fallthrough
	case 1:
		labels := map[string]string{"pool": string(rune('p' + c.IntN(3)))}
		if c.IntN(2) == 0 {
			labels["zone"] = string(rune('x' + c.IntN(2)))
		}
		var holders []string
		for range c.IntN(3) {
			holders = append(holders, string(rune('a'+c.IntN(6))))
		}
		c.nodes[name] = aNode(name, labels, holders...)
		return c.index.SetNode(c.nodes[name])
	case 2:
		if c.IntN(3) == 0 {
			delete(c.maintenances, name)
			return c.index.DeleteMaintenance(name)
		}
		fallthrough
	default:
		terms := []corev1.NodeSelectorTerm{}
		for range c.IntN(3) {
			terms = append(terms, c.term())
		}
		m := aMaintenance(name, terms...)
		if c.IntN(6) == 0 {
			m.Spec.Stage = v1alpha1.StageComplete
			m.Status.StageStatuses = []v1alpha1.StageStatus{{Name: v1alpha1.StageComplete}}
		}
		c.maintenances[name] = m
		return c.index.SetMaintenance(m)
	}
}

func (c *chance) term() corev1.NodeSelectorTerm {
	switch c.IntN(5) {
	case 0:
		return named(string(rune('a' + c.IntN(6))))
	case 1:
		return label(corev1.NodeSelectorOpNotIn, "pool", "p")
	case 2:
		return label(corev1.NodeSelectorOpExists, "zone")
	case 3:
		return corev1.NodeSelectorTerm{}
	default:
		return in(string(rune('p' + c.IntN(3))))
	}
}

// related returns who belongs to whom, by trying all.
func (c *chance) related(m *v1alpha1.NodeMaintenance, node *corev1.Node) bool {
	if maintenance.Finished(m) {
		return false
	}
	selector := maintenance.Selector(m)
	return selector != nil && selector.Match(node) || slices.Contains(cordon.Holders(node), m.Name)
}

// groupOf grows a group until nobody belongs to it who is not in it.
func groupOf(member group.Member, pairs map[[2]group.Member]bool) (maintenances, nodes []string) {
	in := map[group.Member]bool{member: true}
	for grown := true; grown; {
		grown = false
		for pair := range pairs {
			if in[pair[0]] != in[pair[1]] {
				in[pair[0]], in[pair[1]], grown = true, true, true
			}
		}
	}
	for member := range in {
		if member.Node {
			nodes = append(nodes, member.Name)
		} else {
			maintenances = append(maintenances, member.Name)
		}
	}
	slices.Sort(maintenances)
	slices.Sort(nodes)
	return maintenances, nodes
}

// pairs are all that belong together directly.
func (c *chance) pairs() map[[2]group.Member]bool {
	pairs := map[[2]group.Member]bool{}
	for _, m := range c.maintenances {
		for _, node := range c.nodes {
			if c.related(m, node) {
				pairs[[2]group.Member{group.Maintenance(m.Name), group.Node(node.Name)}] = true
			}
		}
	}
	return pairs
}

func TestGroupsAgainstBruteForce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		c := &chance{
			Rand:  rand.New(rand.NewPCG(seed, 1)),
			nodes: map[string]*corev1.Node{}, maintenances: map[string]*v1alpha1.NodeMaintenance{},
		}
		for range 40 {
			before := c.pairs()
			left := c.step()
			now := c.pairs()
			for pair := range before {
				if !now[pair] && !slices.Contains(left, pair[0]) && !slices.Contains(left, pair[1]) {
					t.Errorf("nobody is told that %s and %s are apart", pair[0], pair[1])
				}
			}
			c.check(t, now)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

// check compares the group of each member with what the pairs make of it.
func (c *chance) check(t *testing.T, pairs map[[2]group.Member]bool) {
	t.Helper()
	var members []group.Member
	for name := range c.nodes {
		members = append(members, group.Node(name))
	}
	for name := range c.maintenances {
		members = append(members, group.Maintenance(name))
	}
	for _, member := range members {
		maintenances, nodes := groupOf(member, pairs)
		wantGroup(t, &c.index, member, maintenances, nodes)
	}
}
