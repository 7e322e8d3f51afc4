package arch

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ambiguous is a command of kubectl on a kind that Cluster API has, too.
var ambiguous = regexp.MustCompile("kubectl\\s([^|;&`]*\\s)?(get|describe|events|explain|wait|edit|patch|label|annotate|delete)\\s([^|;&`]*[\\s,])?(machines?|clusters?)([\\s,/`]|$)")

// ambiguity finds commands that may mean an object of Cluster API.
func ambiguity(s source) (violations []string) {
	if strings.HasPrefix(s.path, "test/arch/") {
		return nil
	}
	for i, line := range strings.Split(s.text, "\n") {
		if match := ambiguous.FindStringSubmatch(line); match != nil {
			kind := strings.TrimSuffix(match[4], "s")
			violations = append(violations, fmt.Sprintf("%s:%d: Cluster API has a kind %s, too: say %ss.ebbtide.dev or %s",
				s.path, i+1, kind, kind, map[string]string{"machine": "ema", "cluster": "ecl"}[kind]))
		}
	}
	return violations
}

// person is a word for a man. Programs are none, and people may be anybody.
var person = regexp.MustCompile(`(?i)\b(he|his|him|himself)\b`)

// persons finds words for a man.
func persons(s source) (violations []string) {
	if strings.HasPrefix(s.path, "test/arch/") {
		return nil
	}
	for i, line := range strings.Split(s.text, "\n") {
		if word := person.FindString(line); word != "" {
			violations = append(violations, fmt.Sprintf("%s:%d: %q: a program is \"it\", a person \"they\"", s.path, i+1, word))
		}
	}
	return violations
}

// reasons finds reasons of events that are no constant of the API.
func reasons(list []source) (violations []string) {
	var files []*ast.File
	for _, s := range list {
		if s.syntax != nil && s.dir() == "internal/core/event" && !strings.HasSuffix(s.path, "_test.go") {
			files = append(files, s.syntax)
		}
	}
	positions := map[string]int{}
	inspect(files, func(f *ast.FuncDecl) { positions[f.Name.Name] = positionOf("reason", f) })
	check := func(reason ast.Expr) {
		if literal, is := reason.(*ast.BasicLit); is {
			violations = append(violations, fmt.Sprintf("the reason %s of an event is no constant of the API", literal.Value))
		}
	}
	inspect(files, func(call *ast.CallExpr) {
		f, is := call.Fun.(*ast.Ident)
		if position, known := positions[fmt.Sprint(f)]; is && known && position >= 0 {
			check(call.Args[position])
		}
	})
	inspect(files, func(field *ast.KeyValueExpr) {
		if name, is := field.Key.(*ast.Ident); is && name.Name == "Reason" {
			check(field.Value)
		}
	})
	return violations
}

// inspect visits all nodes of one type.
func inspect[N ast.Node](files []*ast.File, visit func(N)) {
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			if n, is := node.(N); is {
				visit(n)
			}
			return true
		})
	}
}

// positionOf is which parameter of a function has this name, -1 if none has.
func positionOf(parameter string, f *ast.FuncDecl) int {
	position := 0
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			if name.Name == parameter {
				return position
			}
			position++
		}
	}
	return -1
}

func TestWords(t *testing.T) {
	for _, s := range tree(t) {
		for _, violation := range append(ambiguity(s), persons(s)...) {
			t.Error(violation)
		}
	}
	for _, violation := range reasons(tree(t)) {
		t.Error(violation)
	}
}

func TestAmbiguityRuleCanFail(t *testing.T) {
	for text, want := range map[string][]string{
		"`kubectl get machines` says it":             {"a.md:1: Cluster API has a kind machine, too: say machines.ebbtide.dev or ema"},
		"kubectl -n east get nodes,machine":          {"a.md:1: Cluster API has a kind machine, too: say machines.ebbtide.dev or ema"},
		"Wait:\nkubectl wait --for=delete cluster/a": {"a.md:2: Cluster API has a kind cluster, too: say clusters.ebbtide.dev or ecl"},
		"kubectl delete -f a/machines/cluster.yaml":  nil,
		"kubectl get machines.ebbtide.dev":           nil,
		"kubectl get ema | grep machine":             nil,
		"kubectl get pods --cluster east":            nil,
	} {
		if diff := cmp.Diff(want, ambiguity(example(t, "a.md", text))); diff != "" {
			t.Errorf("%q: violations (-want +got):\n%s", text, diff)
		}
	}
}

func TestPersonRuleCanFail(t *testing.T) {
	for text, want := range map[string][]string{
		"The caller\nwaits until his pod is gone.": {`a.md:2: "his": a program is "it", a person "they"`},
		"He goes.":                       {`a.md:1: "He": a program is "it", a person "they"`},
		"The cache of this history hid.": nil,
	} {
		if diff := cmp.Diff(want, persons(example(t, "a.md", text))); diff != "" {
			t.Errorf("%q: violations (-want +got):\n%s", text, diff)
		}
	}
}

func TestReasonRuleCanFail(t *testing.T) {
	got := reasons([]source{
		example(t, "internal/core/event/event.go", "package event\n\nfunc of(kind, reason string) Event {\n\treturn Event{Reason: reason, Action: \"Drain\"}\n}\n"),
		example(t, "internal/core/event/pod.go", "package event\n\nvar a = of(\"Normal\", \"PodGone\")\n\nvar b = of(\"Normal\", v1alpha1.EventPodGone)\n\nvar c = Event{Reason: \"PodBack\"}\n"),
		example(t, "internal/kube/pod.go", "package kube\n\nvar a = of(\"Normal\", \"PodGone\")\n"),
	})
	want := []string{
		`the reason "PodGone" of an event is no constant of the API`,
		`the reason "PodBack" of an event is no constant of the API`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}
