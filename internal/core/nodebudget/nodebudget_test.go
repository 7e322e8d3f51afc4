package nodebudget_test

import (
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodebudget"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

// budget limits the nodes of a pool to those that it lists, by node and UID.
func budget(name, pool string, working ...string) *v1alpha1.NodeBudget {
	b := &v1alpha1.NodeBudget{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec.AppliesTo = v1alpha1.NodeBudgetOfAll
	b.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{pool}}},
	}}}
	for i := 0; i < len(working); i += 2 {
		b.Status.Working = append(b.Status.Working, v1alpha1.BudgetNode{Name: working[i], NodeMaintenanceUID: types.UID(working[i+1])})
	}
	return b
}

func with(b *v1alpha1.NodeBudget, change func(*v1alpha1.NodeBudget)) *v1alpha1.NodeBudget {
	change(b)
	return b
}

func ofRollouts(b *v1alpha1.NodeBudget) { b.Spec.AppliesTo = v1alpha1.NodeBudgetOfRollouts }

func deleting(b *v1alpha1.NodeBudget) { b.DeletionTimestamp = &metav1.Time{} }

func invalid(b *v1alpha1.NodeBudget) {
	b.Spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Operator = "Near"
}

// many are as many budgets of rollouts.
func many(count int) (all []*v1alpha1.NodeBudget) {
	for n := range count {
		all = append(all, with(budget(fmt.Sprintf("b-%d", n), "db"), ofRollouts))
	}
	return all
}

// Node one is of pool web, and the maintenance with UID m wants it.
func TestHoldingNamesTheBudgetThatHasNotAdmittedTheNode(t *testing.T) {
	t.Parallel()
	const none, unnamed = "-", ""
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{"pool": "web"}}}
	for name, test := range map[string]struct {
		budgets []*v1alpha1.NodeBudget
		by      []types.UID
		want    string
	}{
		"no budget":                              {want: none},
		"no node is admitted":                    {budgets: []*v1alpha1.NodeBudget{budget("web", "web")}, want: "web"},
		"another node is admitted":               {budgets: []*v1alpha1.NodeBudget{budget("web", "web", "two", "m")}, want: "web"},
		"the node is admitted":                   {budgets: []*v1alpha1.NodeBudget{budget("web", "web", "two", "n", "one", "m")}, want: none},
		"it is not selected":                     {budgets: []*v1alpha1.NodeBudget{budget("db", "db")}, want: none},
		"the selector is invalid":                {budgets: []*v1alpha1.NodeBudget{with(budget("db", "db"), invalid)}, want: "db"},
		"invalid, but admitted":                  {budgets: []*v1alpha1.NodeBudget{with(budget("db", "db", "one", "m"), invalid)}, want: none},
		"there is no selector":                   {budgets: []*v1alpha1.NodeBudget{with(budget("db", "db"), func(b *v1alpha1.NodeBudget) { b.Spec.NodeSelector = nil })}, want: "db"},
		"admitted for another maintenance":       {budgets: []*v1alpha1.NodeBudget{budget("web", "web", "one", "n")}, want: "web"},
		"admitted for the second of two":         {budgets: []*v1alpha1.NodeBudget{budget("web", "web", "one", "n")}, by: []types.UID{"m", "n"}, want: none},
		"of a rollout":                           {budgets: []*v1alpha1.NodeBudget{budget("web", "web", "one", "")}, want: "web"},
		"of a rollout, and a UID is unknown":     {budgets: []*v1alpha1.NodeBudget{budget("web", "web", "one", "")}, by: []types.UID{""}, want: "web"},
		"both of two admit it":                   {budgets: []*v1alpha1.NodeBudget{budget("web", "web", "one", "m"), budget("all", "web", "one", "m")}, want: none},
		"the first of two admits it":             {budgets: []*v1alpha1.NodeBudget{budget("a", "web", "one", "m"), budget("b", "web")}, want: "b"},
		"the second of two admits it":            {budgets: []*v1alpha1.NodeBudget{budget("a", "web"), budget("b", "web", "one", "m")}, want: "a"},
		"two admit other maintenances":           {budgets: []*v1alpha1.NodeBudget{budget("a", "web", "one", "m"), budget("b", "web", "one", "n")}, want: "b"},
		"the first by name is shown":             {budgets: []*v1alpha1.NodeBudget{budget("b", "web"), budget("a", "web")}, want: "a"},
		"the budget is being deleted":            {budgets: []*v1alpha1.NodeBudget{with(budget("web", "web"), deleting)}, want: none},
		"it applies to rollouts":                 {budgets: []*v1alpha1.NodeBudget{with(budget("web", "web"), ofRollouts)}, want: none},
		"it says nothing":                        {budgets: []*v1alpha1.NodeBudget{with(budget("web", "web"), func(b *v1alpha1.NodeBudget) { b.Spec.AppliesTo = "" })}, want: none},
		"one of 64 applies":                      {budgets: append(many(63), budget("web", "web", "one", "m")), want: none},
		"one of 65 applies":                      {budgets: append(many(64), budget("web", "web", "one", "m")), want: unnamed},
		"none of 65 applies":                     {budgets: many(65), want: none},
		"one of 65 applies and is being deleted": {budgets: append(many(64), with(budget("web", "web"), deleting)), want: none},
	} {
		t.Run(name, func(t *testing.T) {
			if test.by == nil {
				test.by = []types.UID{"m"}
			}
			set := nodebudget.Compile(test.budgets)
			got := none
			if hold := set.Holding(node, test.by); hold != nil {
				got = hold.Budget
				golden.Message(t, hold.Message)
			}
			if got != test.want {
				t.Errorf("it is held by %q, want %q", got, test.want)
			}
			if test.want != none && set.Empty() {
				t.Error("the set is empty")
			}
		})
	}
}

func TestOnlyBudgetsThatApplyFillASet(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set  nodebudget.Set
		want bool
	}{
		"the zero value":          {nodebudget.Set{}, true},
		"no budgets":              {nodebudget.Compile(nil), true},
		"budgets of rollouts":     {nodebudget.Compile(many(3)), true},
		"one that applies":        {nodebudget.Compile([]*v1alpha1.NodeBudget{budget("web", "web")}), false},
		"too many":                {nodebudget.Compile(append(many(64), budget("web", "web"))), false},
		"they could not be read":  {nodebudget.Unread("timeout"), false},
		"deleted in the meantime": {nodebudget.Compile([]*v1alpha1.NodeBudget{with(budget("web", "web"), deleting)}), true},
	} {
		if got := test.set.Empty(); got != test.want {
			t.Errorf("%s: empty is %t, want %t", name, got, test.want)
		}
	}
}

func TestUnreadBudgetsHoldEveryNode(t *testing.T) {
	t.Parallel()
	set := nodebudget.Unread("the API server does not answer")
	hold := set.Holding(&corev1.Node{}, []types.UID{"m"})
	if hold == nil || hold.Budget != "" || !set.Unread() {
		t.Fatalf("it is held by %+v, unread is %t", hold, set.Unread())
	}
	golden.Message(t, hold.Message)
	if nodebudget.Compile(append(many(64), budget("web", "web"))).Unread() {
		t.Error("too many budgets count as unread")
	}
}

func TestMoreThanMaxBudgetsAreTooMany(t *testing.T) {
	t.Parallel()
	if text := nodebudget.TooMany(nodebudget.Max); text != "" {
		t.Errorf("%d are too many: %s", nodebudget.Max, text)
	}
	golden.Message(t, nodebudget.TooMany(nodebudget.Max+1))
}
