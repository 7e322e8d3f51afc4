package arch

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// retired maps words that readers guessed wrong to the words that replace them. The meaning of
// each is in docs/glossary.md.
var retired = map[string]string{
	"aim": "target", "beat": "heartbeat", "beyond": "not covered", "book": "budget", "crowd": "queue", "disposal": "cleanup",
	"door": "limit", "doubt": "skew", "grip": "inhibition", "prospect": "availability", "sight": "observation", "standing": "state",
	"tell": "report", "told": "reported", "word": "message", "words": "message",
}

var camel = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// retiredNames finds exported names that have a retired word.
func retiredNames(s source) (violations []string) {
	if s.syntax == nil || s.generated() || strings.HasPrefix(s.path, "test/") || strings.HasSuffix(s.path, "_test.go") {
		return nil
	}
	var names []string
	for _, declaration := range s.syntax.Decls {
		names = append(names, declaredBy(declaration)...)
	}
	for _, name := range slices.DeleteFunc(names, func(name string) bool { return !ast.IsExported(name) }) {
		for _, word := range camel.FindAllString(name, -1) {
			if better, is := retired[strings.ToLower(word)]; is {
				violations = append(violations, fmt.Sprintf("%s: %s has the retired word %q: say %s", s.path, name, word, better))
			}
		}
	}
	return violations
}

// declaredBy returns the names of a declaration.
func declaredBy(declaration ast.Decl) (names []string) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		return []string{d.Name.Name}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch one := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, one.Name.Name)
			case *ast.ValueSpec:
				for _, name := range one.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

func TestRetiredWordsAreNotInNames(t *testing.T) {
	for _, s := range tree(t) {
		for _, violation := range retiredNames(s) {
			t.Error(violation)
		}
	}
}

func TestRetiredWordRuleCanFail(t *testing.T) {
	s := example(t, "a/b.go", "package b\n\ntype Sight struct{}\n\nfunc (Sight) TellAll() {}\n\nfunc untold() {}\n")
	if got := retiredNames(s); len(got) != 2 {
		t.Errorf("violations %q, want the type and the method", got)
	}
}
