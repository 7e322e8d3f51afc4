package rollout

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// anyOf returns one of some texts.
func anyOf(random *rand.Rand, of ...string) string { return of[random.IntN(len(of))] }

func anyTerm(random *rand.Rand) (term corev1.NodeSelectorTerm) {
	for range random.IntN(3) {
		r := corev1.NodeSelectorRequirement{
			Key: anyOf(random, "a", "b"), Operator: corev1.NodeSelectorOperator(anyOf(random, "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")),
		}
		switch r.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			r.Values = []string{anyOf(random, "1", "2"), anyOf(random, "2", "x")}
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			r.Values = []string{anyOf(random, "1", "2")}
		}
		term.MatchExpressions = append(term.MatchExpressions, r)
	}
	if random.IntN(4) == 0 {
		term.MatchFields = []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: "In", Values: []string{anyOf(random, "n", "m")}}}
	}
	return term
}

func anyNode(random *rand.Rand) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: anyOf(random, "n", "m"), Labels: map[string]string{}}}
	for _, key := range []string{"a", "b"} {
		if random.IntN(4) > 0 {
			node.Labels[key] = anyOf(random, "1", "2", "3", "x")
		}
	}
	return node
}

// Selectors by labels, by names and by both match what the scheduler's match.
func TestSelectorMatchesAsTheScheduler(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	matches := map[bool]int{}
	for range 3000 {
		spec := &corev1.NodeSelector{}
		for range random.IntN(3) {
			spec.NodeSelectorTerms = append(spec.NodeSelectorTerms, anyTerm(random))
		}
		s, err := readSelector(spec)
		if err != nil {
			t.Fatal(err)
		}
		node := anyNode(random)
		want := s.full.Match(node)
		if matches[want]++; s.Match(node) != want {
			t.Errorf("%+v matches %+v: %t, want %t", spec, node.ObjectMeta, !want, want)
		}
	}
	if matches[true] < 300 || matches[false] < 300 {
		t.Errorf("matches are %v", matches)
	}
}
