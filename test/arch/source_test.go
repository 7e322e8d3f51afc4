package arch

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	maxFileLines       = 400
	maxMainLines       = 150
	maxScriptLines     = 50
	maxPackageComments = 5
)

var (
	vagueNames = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "base", "shared"}
	clockReads = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

	suppression = regexp.MustCompile(`^//\s*(nolint|lint:ignore|lint:file-ignore|#nosec)`)
	// The paths are spelled so that this file does not find itself.
	machinePath = regexp.MustCompile(`(^|[\s"'(=:` + "`" + `])/(work|root|home|tmp|Users)/[A-Za-z0-9._-]+`)
	mainFile    = regexp.MustCompile(`^(cmd|examples)/.*/main\.go$`)
	// Of client-go's discovery and of Helm.
	versionAsked = regexp.MustCompile(`\.ServerVersion\(|\.KubeVersion\b`)
	script       = regexp.MustCompile(`^#!.*\b(sh|bash)\b`)
)

// size finds files that are too long for what they are.
func size(s source) []string {
	limit := 0
	switch {
	case script.MatchString(s.text):
		limit = maxScriptLines - 1
	case s.syntax == nil || s.generated():
		return nil
	case mainFile.MatchString(s.path):
		limit = maxMainLines
	default:
		limit = maxFileLines
	}
	if s.lines() <= limit {
		return nil
	}
	return []string{fmt.Sprintf("%s has %d lines, %d are allowed", s.path, s.lines(), limit)}
}

// cleanliness finds suppressed lint, vague package names and init functions.
func cleanliness(s source) (violations []string) {
	if s.syntax == nil || s.generated() {
		return nil
	}
	name := s.syntax.Name.Name
	if slices.Contains(vagueNames, strings.TrimSuffix(name, "_test")) {
		violations = append(violations, fmt.Sprintf("%s: package %s says nothing; name it after what it is about", s.path, name))
	}
	for _, group := range s.syntax.Comments {
		for _, comment := range group.List {
			if suppression.MatchString(comment.Text) {
				violations = append(violations, fmt.Sprintf("%s suppresses a rule: %s", s.path, comment.Text))
			}
		}
	}
	for _, declaration := range s.syntax.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if ok && f.Recv == nil && f.Name.Name == "init" && name != "main" {
			violations = append(violations, s.path+" has an init function outside package main")
		}
	}
	return violations
}

// determinism finds goroutines and clocks in core.
func determinism(s source) (violations []string) {
	if s.syntax == nil || !strings.HasPrefix(s.path, "internal/core/") || strings.HasSuffix(s.path, "_test.go") {
		return nil
	}
	ast.Inspect(s.syntax, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.GoStmt:
			violations = append(violations, s.path+" starts a goroutine")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clockReads, n.Sel.Name) {
				violations = append(violations, fmt.Sprintf("%s reads the clock: time.%s", s.path, n.Sel.Name))
			}
		}
		return true
	})
	return violations
}

// permission finds permissions in the comment of a declaration, where the
// generator of the ClusterRole does not look: a blank line must follow them.
func permission(s source) (violations []string) {
	if s.syntax == nil || s.generated() {
		return nil
	}
	for _, declaration := range s.syntax.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if ok && f.Doc != nil && slices.ContainsFunc(f.Doc.List, func(c *ast.Comment) bool {
			return strings.Contains(c.Text, "+kubebuilder:rbac:")
		}) {
			violations = append(violations, fmt.Sprintf("%s: the permissions of %s need a blank line after them to count", s.path, f.Name.Name))
		}
	}
	return violations
}

// locality finds paths that exist on one machine only.
func locality(s source) (violations []string) {
	if strings.HasPrefix(s.path, "test/arch/") {
		return nil
	}
	for i, line := range strings.Split(s.text, "\n") {
		if match := machinePath.FindString(line); match != "" {
			violations = append(violations, fmt.Sprintf("%s:%d names a path of one machine: %s", s.path, i+1, strings.TrimSpace(match)))
		}
	}
	return violations
}

// release finds who asks which release of Kubernetes it talks to: what a release can do is
// up to whoever has set it up, so that has to be asked for instead.
func release(s source) (violations []string) {
	shipped := strings.HasPrefix(s.path, "cmd/") || strings.HasPrefix(s.path, "internal/") || strings.HasPrefix(s.path, "charts/ebbtide/templates/")
	if !shipped || strings.HasSuffix(s.path, "_test.go") {
		return nil
	}
	for i, line := range strings.Split(s.text, "\n") {
		if match := versionAsked.FindString(line); match != "" {
			violations = append(violations, fmt.Sprintf("%s:%d asks for the release of Kubernetes: %s; ask for the capability", s.path, i+1, match))
		}
	}
	return violations
}

// comments finds packages without a comment, with several, or with a long one.
func comments(list []source) (violations []string) {
	docs := map[string][]string{}
	for _, s := range list {
		if s.syntax == nil || s.generated() {
			continue
		}
		docs[s.dir()] = append(docs[s.dir()], s.syntax.Doc.Text())
	}
	for dir, all := range docs {
		written := slices.DeleteFunc(all, func(doc string) bool { return doc == "" })
		switch {
		case len(written) == 0:
			violations = append(violations, dir+" has no package comment")
		case len(written) > 1:
			violations = append(violations, dir+" has more than one package comment")
		case textLines(written[0]) > maxPackageComments:
			violations = append(violations, fmt.Sprintf("%s has a package comment of more than %d lines", dir, maxPackageComments))
		}
	}
	slices.Sort(violations)
	return violations
}

// textLines counts the lines of a comment that are text, neither markers nor code.
func textLines(comment string) (lines int) {
	for line := range strings.Lines(comment) {
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "\t") {
			lines++
		}
	}
	return lines
}

func TestSources(t *testing.T) {
	for _, s := range tree(t) {
		for _, rule := range []func(source) []string{size, cleanliness, determinism, permission, locality, release} {
			for _, violation := range rule(s) {
				t.Error(violation)
			}
		}
	}
	for _, violation := range comments(tree(t)) {
		t.Error(violation)
	}
}

func TestSourceRulesCanFail(t *testing.T) {
	long := strings.Repeat("// A line.\n", 401) + "\npackage p\n"
	tests := map[string]struct {
		rule       func(source) []string
		path, text string
		want       []string
	}{
		"a long file":   {size, "internal/kube/a.go", long, []string{"internal/kube/a.go has 403 lines, 400 are allowed"}},
		"a long main":   {size, "cmd/x/main.go", strings.Repeat("\n", 150) + "package main\n", []string{"cmd/x/main.go has 151 lines, 150 are allowed"}},
		"a long script": {size, ".ci/run", "#!/usr/bin/env bash\n" + strings.Repeat("true\n", 49), []string{".ci/run has 50 lines, 49 are allowed"}},
		"a vague name":  {cleanliness, "internal/util/a.go", "package util\n", []string{"internal/util/a.go: package util says nothing; name it after what it is about"}},
		"suppressed":    {cleanliness, "a.go", "package a\n\nvar b = 1 //nolint:all\n", []string{"a.go suppresses a rule: //nolint:all"}},
		"an init":       {cleanliness, "a.go", "package a\n\nfunc init() {}\n", []string{"a.go has an init function outside package main"}},
		"a goroutine":   {determinism, "internal/core/event/a.go", "package event\n\nfunc f() { go f() }\n", []string{"internal/core/event/a.go starts a goroutine"}},
		"a clock": {
			determinism, "internal/core/event/a.go", "package event\n\nimport \"time\"\n\nvar t = time.Now\n",
			[]string{"internal/core/event/a.go reads the clock: time.Now"},
		},
		"a lost permission": {
			permission, "a.go", "package a\n\n// f reads.\n//\n// +kubebuilder:rbac:groups=\"\",resources=pods,verbs=get\nfunc f() {}\n",
			[]string{"a.go: the permissions of f need a blank line after them to count"},
		},
		"a version of the API server": {
			release, "internal/kube/a.go", "package kube\n\nvar v, _ = d.ServerVersion()\n",
			[]string{"internal/kube/a.go:3 asks for the release of Kubernetes: .ServerVersion(; ask for the capability"},
		},
		"a version in the chart": {
			release, "charts/ebbtide/templates/a.yaml", "{{ .Capabilities.KubeVersion.Minor }}\n",
			[]string{"charts/ebbtide/templates/a.yaml:1 asks for the release of Kubernetes: .KubeVersion; ask for the capability"},
		},
		"a machine's path": {locality, "docs/a.md", "see\n/root/secret/b\n", []string{"docs/a.md:2 names a path of one machine: /root/secret"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.rule(example(t, test.path, test.text))); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCommentRuleCanFail(t *testing.T) {
	got := comments([]source{
		example(t, "a/a.go", "package a\n"),
		example(t, "b/b.go", "// Package b is b.\npackage b\n"),
		example(t, "b/c.go", "// Package b is c.\npackage b\n"),
		example(t, "d/d.go", strings.Repeat("// Package d.\n", 6)+"package d\n"),
		example(t, "e/e.go", "// Package e is fine.\npackage e\n"),
		example(t, "e/f.go", "package e\n"),
	})
	want := []string{
		"a has no package comment",
		"b has more than one package comment",
		"d has a package comment of more than 5 lines",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}
