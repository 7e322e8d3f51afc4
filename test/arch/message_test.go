package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	// messageFields hold sentences for people, of objects of the API and of decisions.
	messageFields = []string{"Message", "DrainMessage", "Summary", "Suggestion"}
	// messageNames are what parameters with such sentences are called.
	messageNames = []string{"message", "words", "told", "said"}
	// textReaders are the functions of package strings by which a text decides something. Those that
	// trim an end or replace something shape a text.
	textReaders = []string{
		"HasPrefix", "HasSuffix", "Contains", "ContainsAny", "ContainsRune", "Count", "Cut", "CutPrefix", "CutSuffix",
		"EqualFold", "Fields", "Index", "LastIndex", "Split", "SplitN", "TrimPrefix",
	}
	// readsMessages are functions that may read texts, and whose these are.
	readsMessages = map[string]string{
		"internal/cli/trouble.go: cause":                   "crypto/tls",
		"internal/cli/trouble.go: before":                  "the API server; what is said twice is shown once",
		"internal/core/view/risk.go: told":                 "a name that is said twice is shown once",
		"internal/workload/guard/exchange.go: unfitHeader": "net/http",
	}
)

// readsNoMessages is true for what decides in clusters and in the plugin.
func readsNoMessages(s source) bool {
	if s.syntax == nil || s.generated() || strings.HasSuffix(s.path, "_test.go") || s.dir() == "internal/core/apierror" {
		return false
	}
	for _, dir := range []string{"internal/sandbox", "internal/release", "internal/image", "internal/apidoc"} {
		if s.dir() == dir || strings.HasPrefix(s.path, dir+"/") {
			return false
		}
	}
	return strings.HasPrefix(s.path, "internal/") || strings.HasPrefix(s.path, "cmd/") || strings.HasPrefix(s.path, "api/") || strings.HasPrefix(s.path, "examples/")
}

// sentences are the names in a function that hold a text for people: parameters that are called
// so, and what a message was assigned to.
type sentences map[string]bool

func sentencesOf(f *ast.FuncDecl) sentences {
	names := sentences{}
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			names[name.Name] = slices.Contains(messageNames, name.Name) && fmt.Sprint(field.Type) == "string"
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if to, is := n.(*ast.AssignStmt); is && len(to.Lhs) == len(to.Rhs) {
			for i, from := range to.Rhs {
				if name, is := to.Lhs[i].(*ast.Ident); is && names.direct(from) {
					names[name.Name] = true
				}
			}
		}
		return true
	})
	return names
}

// direct reports whether an expression is such a text, and not only made of some.
func (names sentences) direct(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return names[e.Name]
	case *ast.ParenExpr:
		return names.direct(e.X)
	case *ast.StarExpr:
		return names.direct(e.X)
	case *ast.SelectorExpr:
		return slices.Contains(messageFields, e.Sel.Name)
	case *ast.CallExpr:
		_, name := calledIn(e)
		return name == "Error" && len(e.Args) == 0
	}
	return false
}

// within reports whether some part of an expression is such a text.
func (names sentences) within(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		part, is := n.(ast.Expr)
		found = found || is && names.direct(part)
		return !found
	})
	return found
}

// constants are the names of constants of a file.
func constants(s source) map[string]bool {
	names := map[string]bool{}
	inspect([]*ast.File{s.syntax}, func(d *ast.GenDecl) {
		for _, spec := range d.Specs {
			if value, is := spec.(*ast.ValueSpec); is && d.Tok == token.CONST {
				for _, name := range value.Names {
					names[name.Name] = true
				}
			}
		}
	})
	return names
}

// isWords reports whether an expression is a text that somebody has written down.
func isWords(e ast.Expr, constants map[string]bool) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING && literal(e) != ""
	case *ast.Ident:
		return constants[e.Name]
	case *ast.BinaryExpr:
		return isWords(e.X, constants) || isWords(e.Y, constants)
	}
	return false
}

// isReading reports whether a node decides something by a text for people.
func (names sentences) isReading(n ast.Node, constants map[string]bool) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		of, name := calledIn(n)
		pattern := strings.HasPrefix(name, "FindString") || strings.HasPrefix(name, "FindAllString") || name == "MatchString"
		return (of == "strings" && slices.Contains(textReaders, name) || pattern) && slices.ContainsFunc(n.Args, names.within)
	case *ast.BinaryExpr:
		compared := n.Op == token.EQL || n.Op == token.NEQ
		return compared && (names.direct(n.X) && isWords(n.Y, constants) || names.direct(n.Y) && isWords(n.X, constants))
	case *ast.SwitchStmt:
		return n.Tag != nil && names.direct(n.Tag)
	}
	return false
}

// messages finds functions that decide by a text for people instead of a reason.
func messages(s source) (violations []string) {
	if !readsNoMessages(s) {
		return nil
	}
	known := constants(s)
	for _, d := range s.syntax.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is || readsMessages[s.path+": "+f.Name.Name] != "" {
			continue
		}
		names := sentencesOf(f)
		ast.Inspect(f, func(n ast.Node) bool {
			if names.isReading(n, known) {
				violations = append(violations, fmt.Sprintf("%s: %s decides by a message: use a reason or a field, and for answers of the API server core/apierror", s.path, f.Name.Name))
			}
			return true
		})
	}
	return violations
}

func TestNoCodeReadsMessages(t *testing.T) {
	for _, s := range tree(t) {
		for _, violation := range messages(s) {
			t.Error(violation)
		}
	}
}

func TestMessageRuleCanFail(t *testing.T) {
	const path = "internal/core/blocker/a.go"
	for body, bad := range map[string]bool{
		`return strings.HasPrefix(e.Status.Message, "Back since ")`:                  true,
		`return one.DrainMessage == "Drained."`:                                      true,
		`return one.DrainMessage != drained`:                                         true,
		`text := err.Error(); return strings.Contains(text, "is being uninstalled")`: true,
		`said := *own.Message; _, is := strings.CutPrefix(said, x); return is`:       true,
		`return pattern.MatchString(c.Message)`:                                      true,
		`return strings.Contains(strings.ToLower(err.Error()), "denied")`:            true,
		`return strings.TrimPrefix(words, "Eviction refused: ") != ""`:               true,
		`switch c.Message { case "Drained.": return true }; return false`:            true,
		`return c.Reason == "Drained" && c.Message != ""`:                            false,
		`return before.Message == after.Message`:                                     false,
		`return strings.TrimSuffix(c.Message, ".") == after`:                         false,
		`return strings.Contains(c.Name, "a")`:                                       false,
		`return apierror.Webhook(err.Error()) != ""`:                                 false,
	} {
		text := "package blocker\n\nconst drained = \"Drained.\"\n\nfunc decide(words string) bool { " + body + " }\n"
		var want []string
		if bad {
			want = []string{path + ": decide decides by a message: use a reason or a field, and for answers of the API server core/apierror"}
		}
		if diff := cmp.Diff(want, messages(example(t, path, text))); diff != "" {
			t.Errorf("%s: violations (-want +got):\n%s", body, diff)
		}
	}
	if got := messages(example(t, "internal/core/apierror/a.go", "package apierror\n\nfunc a() bool { return strings.Contains(err.Error(), x) }\n")); got != nil {
		t.Errorf("answers of the API server are read there: %q", got)
	}
}
