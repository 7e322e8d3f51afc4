package validate_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/validate"
)

// node has the label rack=1.
func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"rack": "1"}}}
}

// Only who evicts from a node that no maintenance has to do with is told of them.
func TestEvictionNoticeOnlyWithoutMaintenance(t *testing.T) {
	t.Parallel()
	held, leaving, broken := node("w-1"), of("Drain", "rack", "1"), of("Drain", "rack", "1")
	held.Annotations = map[string]string{v1alpha1.CordonAnnotation: "}"}
	leaving.DeletionTimestamp = &metav1.Time{}
	broken.Spec.NodeSelector = nil
	type maintenances = []*v1alpha1.NodeMaintenance
	for name, test := range map[string]struct {
		node         *corev1.Node
		maintenances maintenances
		told         bool
	}{
		"a maintenance elsewhere":       {node("w-1"), maintenances{of("Drain", "rack", "2")}, true},
		"one that drains, of several":   {node("w-1"), maintenances{broken, of("Drain", "rack", "2"), of("Drain", "rack", "1")}, false},
		"one that is complete":          {node("w-1"), maintenances{of("Complete", "rack", "1")}, true},
		"one that still holds the node": {held, maintenances{leaving}, false},
		"a node that was not read":      {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if notice := validate.EvictionNotice(test.node, test.maintenances); (notice != "") != test.told {
				t.Errorf("told %q, want to be told: %v", notice, test.told)
			}
		})
	}
}

// The spec in the notice drains that node and no other, whatever its name looks like in YAML.
func TestEvictionNoticeNamesAValidSpec(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"w-1", "12", "true", "1e3"} {
		notice := validate.EvictionNotice(node(name), nil)
		_, text, _ := strings.Cut(notice, "with spec ")
		text, _, _ = strings.Cut(text, " cordons the node")
		var spec v1alpha1.NodeMaintenanceSpec
		if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
			t.Fatalf("%v in %q", err, notice)
		}
		selected, err := maintenance.Matching(&spec, []*corev1.Node{node("other"), node(name)})
		if err != nil || len(selected) != 1 || selected[0].Name != name || spec.Stage != v1alpha1.StageDrain {
			t.Errorf("stage %s selects %v (%v), want Drain of node %s", spec.Stage, selected, err, name)
		}
	}
}
