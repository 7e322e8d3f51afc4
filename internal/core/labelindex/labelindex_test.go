package labelindex_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"ebbtide.dev/ebbtide/internal/core/labelindex"
)

func parse(t testing.TB, text string) []labelindex.Term {
	t.Helper()
	selector, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return labelindex.OfSelector(selector)
}

func TestSelectorsAreFoundByTheLabelsThatTheyNeed(t *testing.T) {
	t.Parallel()
	var x labelindex.Index[string]
	for _, text := range []string{"app=web", "app in (web, db), tier=front", "app notin (web)", "tier", "app=db", ""} {
		x.Put(text, parse(t, text)...)
	}
	x.Put("nothing", labelindex.OfSelector(labels.Nothing())...)
	for name, tc := range map[string]struct {
		labels labels.Set
		want   []string
	}{
		// tier in (front) has one value and app in (web, db) has two.
		"web":          {labels.Set{"app": "web"}, []string{"app=web", "app notin (web)", "tier", ""}},
		"web in front": {labels.Set{"app": "web", "tier": "front"}, []string{"app=web", "app in (web, db), tier=front", "app notin (web)", "tier", ""}},
		"no labels":    {nil, []string{"app notin (web)", "tier", ""}},
		"db":           {labels.Set{"app": "db"}, []string{"app notin (web)", "tier", "app=db", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, x.Candidates(tc.labels)); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
		})
	}
}

func TestALabelThatAllShareDoesNoHarm(t *testing.T) {
	t.Parallel()
	var x labelindex.Index[int]
	for n := range 1000 {
		x.Put(n, parse(t, fmt.Sprintf("app=shop,component=c%d", n))...)
	}
	if got := x.Candidates(labels.Set{"app": "shop", "component": "c500"}); len(got) > 2 || !slices.Contains(got, 500) {
		t.Errorf("%d items are candidates for an object that one can match", len(got))
	}
}

func TestAnItemThatIsPutAgainLeavesItsOldLabels(t *testing.T) {
	t.Parallel()
	var x labelindex.Index[string]
	x.Put("first", parse(t, "app=web")...)
	x.Put("second", parse(t, "app in (web, db)")...)
	x.Put("first", slices.Concat(parse(t, "app=db"), parse(t, "app in (db, cache)"))...)
	if diff := cmp.Diff([]string{"second"}, x.Candidates(labels.Set{"app": "web"})); diff != "" {
		t.Errorf("candidates for web (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"first", "second"}, x.Candidates(labels.Set{"app": "db"})); diff != "" {
		t.Errorf("candidates for db, each once (-want +got):\n%s", diff)
	}
	x.Delete("first")
	x.Delete("never put")
	if diff := cmp.Diff([]string{"second"}, x.Candidates(labels.Set{"app": "db"})); diff != "" {
		t.Errorf("candidates for db without the first (-want +got):\n%s", diff)
	}
}

// Looked up in reverse: an index of objects by their pairs finds those of a selector.
func TestTheAnchorIsTheConditionWithTheFewestObjects(t *testing.T) {
	t.Parallel()
	term := parse(t, "region=eu,zone in (b, a)")[0]
	anchor, found := term.Anchor(nil)
	if diff := cmp.Diff(labelindex.Condition{{Key: "region", Value: "eu"}}, anchor); !found || diff != "" {
		t.Errorf("the one with the fewest values (-want +got):\n%s", diff)
	}
	nodes := map[labelindex.Pair]int{{Key: "region", Value: "eu"}: 5000, {Key: "zone", Value: "a"}: 10, {Key: "zone", Value: "b"}: 20}
	anchor, found = term.Anchor(func(p labelindex.Pair) int { return nodes[p] })
	if diff := cmp.Diff(labelindex.Condition{{Key: "zone", Value: "a"}, {Key: "zone", Value: "b"}}, anchor); !found || diff != "" {
		t.Errorf("the one with the fewest nodes (-want +got):\n%s", diff)
	}
	if _, found := parse(t, "region!=eu,zone")[0].Anchor(nil); found {
		t.Error("a term without a label that must be there leads to some")
	}
}

func TestSelectorsThatMatchNothingAreNoCandidates(t *testing.T) {
	t.Parallel()
	var x labelindex.Index[string]
	x.Put("no selector", labelindex.OfNodeSelector(nil)...)
	x.Put("no term", labelindex.OfNodeSelector(&corev1.NodeSelector{})...)
	x.Put("an empty term", labelindex.OfNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}})...)
	x.Put("no value", labelindex.Term{labelindex.Condition{}})
	if got := x.Candidates(labels.Set{"app": "web"}, labelindex.Name("node-1")); len(got) > 0 {
		t.Errorf("candidates: %q", got)
	}
}

// draw is a source of random selectors over few labels, so that they often meet.
type draw struct{ *rand.Rand }

func (d draw) values() []string {
	values := make([]string, 1+d.IntN(3))
	for n := range values {
		values[n] = fmt.Sprint("v", d.IntN(4))
	}
	return values
}

func (d draw) key() string { return fmt.Sprint("k", d.IntN(4)) }

func (d draw) labels() labels.Set {
	set := labels.Set{}
	for range d.IntN(5) {
		set[d.key()] = d.values()[0]
	}
	return set
}

func (d draw) nodeSelector() *corev1.NodeSelector {
	operators := []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist}
	selector := &corev1.NodeSelector{}
	for range d.IntN(3) {
		var term corev1.NodeSelectorTerm
		for range d.IntN(4) {
			r := corev1.NodeSelectorRequirement{Key: d.key(), Operator: operators[d.IntN(len(operators))]}
			if r.Operator == corev1.NodeSelectorOpIn || r.Operator == corev1.NodeSelectorOpNotIn {
				r.Values = d.values()
			}
			term.MatchExpressions = append(term.MatchExpressions, r)
		}
		if d.IntN(3) == 0 {
			term.MatchFields = []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: operators[1+d.IntN(2)], Values: d.values()[:1]}}
		}
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, term)
	}
	return selector
}

func (d draw) labelSelector() *metav1.LabelSelector {
	operators := []metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist}
	if d.IntN(8) == 0 {
		return nil
	}
	selector := &metav1.LabelSelector{}
	if d.IntN(2) == 0 {
		selector.MatchLabels = d.labels()
	}
	for range d.IntN(3) {
		r := metav1.LabelSelectorRequirement{Key: d.key(), Operator: operators[d.IntN(4)]}
		if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
			r.Values = d.values()
		}
		selector.MatchExpressions = append(selector.MatchExpressions, r)
	}
	return selector
}

// whoever is a pod or node, by either kind of selector.
type whoever struct {
	selector labels.Selector
	nodes    *nodeaffinity.NodeSelector
}

func (w whoever) matches(node *corev1.Node) bool {
	if w.nodes != nil {
		return w.nodes.Match(node)
	}
	return w.selector.Matches(labels.Set(node.Labels))
}

// world holds what an index is to hold, in the order in which it came.
type world struct {
	index     labelindex.Index[int]
	items     map[int]whoever
	inOrder   []int
	terms     map[int][]labelindex.Term
	generator draw
}

func (w *world) put(t *testing.T, item int) {
	t.Helper()
	var it whoever
	var err error
	if w.generator.IntN(2) == 0 {
		drawn := w.generator.nodeSelector()
		it.nodes, err = nodeaffinity.NewNodeSelector(drawn)
		w.terms[item] = labelindex.OfNodeSelector(drawn)
	} else {
		it.selector, err = metav1.LabelSelectorAsSelector(w.generator.labelSelector())
		if err == nil {
			w.terms[item] = labelindex.OfSelector(it.selector)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, known := w.items[item]; !known {
		w.inOrder = append(w.inOrder, item)
	}
	w.items[item] = it
	w.index.Put(item, w.terms[item]...)
}

func (w *world) remove(item int) {
	w.index.Delete(item)
	delete(w.items, item)
	w.inOrder = slices.DeleteFunc(w.inOrder, func(other int) bool { return other == item })
}

// matching are the items that match, tried one by one.
func (w *world) matching(node *corev1.Node, among []int) []int {
	var matching []int
	for _, item := range among {
		if w.items[item].matches(node) {
			matching = append(matching, item)
		}
	}
	return matching
}

// FuzzCandidates puts and deletes random selectors and looks for random objects:
// those of the candidates that match are all that match, in the order in which they
// came.
func FuzzCandidates(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := &world{items: map[int]whoever{}, terms: map[int][]labelindex.Term{}, generator: draw{rand.New(rand.NewPCG(seed, 11))}}
		for range 60 {
			if item := w.generator.IntN(30); w.generator.IntN(4) == 0 {
				w.remove(item)
			} else {
				w.put(t, item)
			}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.generator.values()[0], Labels: w.generator.labels()}}
			candidates := w.index.Candidates(node.Labels, labelindex.Name(node.Name))
			if diff := cmp.Diff(w.matching(node, w.inOrder), w.matching(node, candidates)); diff != "" {
				t.Fatalf("node %s with labels %v (-one by one +candidates):\n%s", node.Name, node.Labels, diff)
			}
			w.checkAnchors(t, node)
		}
	})
}

// checkAnchors looks up in reverse: whatever matches has a pair of an anchor.
func (w *world) checkAnchors(t *testing.T, node *corev1.Node) {
	t.Helper()
	for _, item := range w.matching(node, w.inOrder) {
		if !slices.ContainsFunc(w.terms[item], func(term labelindex.Term) bool {
			anchor, found := term.Anchor(nil)
			return !found || slices.ContainsFunc(anchor, func(p labelindex.Pair) bool {
				value, labelled := node.Labels[p.Key]
				return p == labelindex.Name(node.Name) || labelled && value == p.Value
			})
		}) {
			t.Fatalf("node %s with labels %v matches %v, and no anchor leads to it", node.Name, node.Labels, w.terms[item])
		}
	}
}
