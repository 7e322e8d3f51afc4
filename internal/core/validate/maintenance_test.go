package validate_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/validate"
	"ebbtide.dev/ebbtide/test/difference"
)

// fleet are two nodes of the control plane, cp-1 and cp-2, and three others.
func fleet() []*corev1.Node {
	var nodes []*corev1.Node
	for _, name := range []string{"w-2", "cp-1", "w-1", "cp-2", "w-3"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"rack": name[len(name)-1:], corev1.LabelHostname: name,
		}}}
		if strings.HasPrefix(name, "cp-") {
			node.Labels["node-role.kubernetes.io/control-plane"] = ""
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// of is a maintenance of the nodes with one of these values of a label.
func of(stage v1alpha1.NodeMaintenanceStage, key string, values ...string) *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{Spec: v1alpha1.NodeMaintenanceSpec{
		Stage: stage,
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}},
		}}},
	}}
}

func everything(stage v1alpha1.NodeMaintenanceStage) *v1alpha1.NodeMaintenance {
	return of(stage, "rack", "1", "2", "3")
}

// without is a maintenance that gives nodes back before the others.
func without(m *v1alpha1.NodeMaintenance, nodes ...string) *v1alpha1.NodeMaintenance {
	for _, node := range nodes {
		m.Spec.CompletedNodes = append(m.Spec.CompletedNodes, v1alpha1.NodeReference{Name: node})
	}
	return m
}

func TestCompletedNodesOfOtherMaintenancesAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		old, new *v1alpha1.NodeMaintenance
		want     string
	}{
		"one of its nodes":           {of("Drain", "rack", "1"), without(of("Drain", "rack", "1"), "w-1"), ""},
		"another":                    {of("Drain", "rack", "1"), without(of("Drain", "rack", "1"), "w-1", "w-2"), "w-2"},
		"several that do not exist":  {of("Drain", "rack", "1"), without(of("Drain", "rack", "1"), "w-9", "w-8"), "w-8, w-9"},
		"one that is gone since":     {without(of("Drain", "rack", "1"), "w-9"), without(of("Drain", "rack", "1"), "w-9", "w-1"), ""},
		"a copy of another cluster":  {nil, without(of("Drain", "rack", "1"), "w-9"), ""},
		"one that is being deleted":  {without(of("Drain", "rack", "1"), "w-9"), nil, ""},
		"one with another selection": {of("Drain", "rack", "1"), without(of("Drain", "rack", "2"), "w-2"), "w-2"},
	} {
		t.Run(name, func(t *testing.T) {
			got := validate.MaintenanceChange{Old: tt.old, New: tt.new, Nodes: fleet()}.CompletedRefusal()
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) || got != "" && !strings.HasPrefix(got, "spec.completedNodes: ") {
				t.Errorf("refusal %q, want one that names %q", got, tt.want)
			}
		})
	}
}

// byName is a maintenance with a term for each of these nodes, which may not exist.
func byName(stage v1alpha1.NodeMaintenanceStage, nodes ...string) *v1alpha1.NodeMaintenance {
	m := &v1alpha1.NodeMaintenance{Spec: v1alpha1.NodeMaintenanceSpec{Stage: stage, NodeSelector: &corev1.NodeSelector{}}}
	for _, node := range nodes {
		m.Spec.NodeSelector.NodeSelectorTerms = append(m.Spec.NodeSelector.NodeSelectorTerms, fieldTerm(corev1.NodeSelectorOpIn, node))
	}
	return m
}

func fieldTerm(operator corev1.NodeSelectorOperator, node string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: metav1.ObjectNameField, Operator: operator, Values: []string{node}},
	}}
}

// with adds terms to a maintenance.
func with(m *v1alpha1.NodeMaintenance, terms ...corev1.NodeSelectorTerm) *v1alpha1.NodeMaintenance {
	m.Spec.NodeSelector.NodeSelectorTerms = append(m.Spec.NodeSelector.NodeSelectorTerms, terms...)
	return m
}

func TestMaintenanceByLabelsTakesLaterNodes(t *testing.T) {
	narrowed := byName("Drain", "w-1", "w-9")
	narrowed.Spec.NodeSelector.NodeSelectorTerms[1].MatchExpressions = []corev1.NodeSelectorRequirement{
		{Key: "rack", Operator: corev1.NodeSelectorOpExists},
	}
	allBut := with(byName("Drain"), fieldTerm(corev1.NodeSelectorOpNotIn, "w-1"))
	narrowAllBut := with(byName("Drain"), fieldTerm(corev1.NodeSelectorOpNotIn, "w-1"))
	narrowAllBut.Spec.NodeSelector.NodeSelectorTerms[0].MatchFields = append(
		narrowAllBut.Spec.NodeSelector.NodeSelectorTerms[0].MatchFields, fieldTerm(corev1.NodeSelectorOpIn, "w-2").MatchFields...)
	labelled := everything("Idle")
	labelled.Labels = map[string]string{"team": "a"}
	for name, tt := range map[string]struct {
		old, new *v1alpha1.NodeMaintenance
		later    bool
		affected []string
	}{
		"named, one of them not there":           {nil, byName("Idle", "w-9", "w-1"), false, []string{"w-1", "w-9"}},
		"named and narrowed by labels":           {nil, narrowed, false, []string{"w-1", "w-9"}},
		"by labels":                              {nil, of("Idle", corev1.LabelHostname, "w-1"), true, []string{"w-1"}},
		"by labels that no node has":             {nil, of("Idle", "rack", "9"), true, nil},
		"one named, others by labels":            {nil, with(byName("Cordon", "w-9"), of("", "rack", "9").Spec.NodeSelector.NodeSelectorTerms...), true, []string{"w-9"}},
		"all but one":                            {nil, allBut, true, []string{"cp-1", "cp-2", "w-2", "w-3"}},
		"all but one, and named":                 {nil, narrowAllBut, false, []string{"w-2"}},
		"by labels, and taken further":           {everything("Idle"), everything("Drain"), true, []string{"cp-1", "cp-2", "w-1", "w-2", "w-3"}},
		"by labels, with the same spec":          {everything("Idle"), labelled, false, []string{"cp-1", "cp-2", "w-1", "w-2", "w-3"}},
		"by labels before, named now":            {of("Idle", "rack", "3"), byName("Idle", "w-1"), false, []string{"w-1", "w-3"}},
		"by labels, and ends":                    {of("Drain", "rack", "3"), of("Complete", "rack", "3"), false, []string{"w-3"}},
		"named, one of them not there, and ends": {byName("Drain", "w-1", "w-9"), byName("Complete", "w-1", "w-9"), false, []string{"w-1"}},
		"gives one back":                         {of("Drain", "rack", "1"), without(of("Drain", "rack", "1"), "w-1"), true, []string{"cp-1", "w-1"}},
		"has given one back":                     {without(of("Cordon", "rack", "1"), "w-1"), without(of("Drain", "rack", "1"), "w-1"), true, []string{"cp-1"}},
		"by labels, and is deleted":              {of("Drain", "rack", "3"), nil, false, []string{"w-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			change := validate.MaintenanceChange{Old: tt.old, New: tt.new, Nodes: fleet()}
			affected, err := change.Affected()
			if err != nil {
				t.Fatal(err)
			}
			difference.None(t, "affected nodes", tt.affected, affected)
			if got := change.TakesLaterNodes(); got != tt.later {
				t.Errorf("takes later nodes is %v, want %v", got, tt.later)
			}
		})
	}
}

func TestMalformedNodeSelectorIsAnError(t *testing.T) {
	broken := of("Drain", "rack", "1")
	broken.Spec.NodeSelector.NodeSelectorTerms[0].MatchExpressions[0].Operator = "Near"
	for name, change := range map[string]validate.MaintenanceChange{
		"in what was there":    {Old: broken, Nodes: fleet()},
		"in what is to be":     {New: broken, Nodes: fleet()},
		"no selector whatever": {New: &v1alpha1.NodeMaintenance{}, Nodes: fleet()},
	} {
		if _, err := change.Affected(); err == nil || !strings.Contains(err.Error(), "spec.nodeSelector") {
			t.Errorf("%s: error %v, want one that names spec.nodeSelector", name, err)
		}
	}
}

func TestMaintenanceWithoutNodeRightsIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		rights  validate.NodeRights
		enough  bool
		refused bool
	}{
		"every node is allowed":          {validate.NodeRights{User: "jane", Kind: "NodeMaintenance", Affected: 2}, false, false},
		"nodes that come later":          {validate.NodeRights{User: "jane", Kind: "NodeMaintenance", Why: "RBAC: no", Affected: 2, Unknown: 2, Later: true}, true, true},
		"it ends":                        {validate.NodeRights{User: "jane", Kind: "NodeMaintenance", Affected: 1, Refused: []string{"a"}, Ends: true}, false, true},
		"no node any more":               {validate.NodeRights{User: "jane", Kind: "NodeMaintenance"}, false, false},
		"one node":                       {validate.NodeRights{User: "jane", Kind: "NodeMaintenance", Affected: 9, Refused: []string{"a"}}, false, true},
		"three nodes":                    {validate.NodeRights{User: "jane", Kind: "NodeMaintenance", Affected: 3, Refused: []string{"a", "b", "c"}}, false, true},
		"more nodes":                     {validate.NodeRights{User: "jane", Kind: "NodeMaintenance", Affected: 5, Refused: []string{"a", "b", "c", "d", "e"}, Why: "because"}, true, true},
		"more nodes than were asked for": {validate.NodeRights{User: "jane", Kind: "NodeMaintenance", Affected: 500, Unknown: 400, Refused: []string{"a", "b", "c", "d", "e"}}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			expectRefusal(t, tt.refused, tt.rights.Refusal())
			if got := tt.rights.Enough(); got != tt.enough {
				t.Errorf("enough is %v, want %v", got, tt.enough)
			}
		})
	}
}
