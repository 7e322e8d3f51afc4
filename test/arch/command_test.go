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

var (
	// filled is a command that something is filled into, by a verb of fmt or by "+".
	filled = regexp.MustCompile("(kubectl|helm|crictl|journalctl|systemctl|commandName\\(\\)) ([^\n.]|\\.[^ ])*(%|\x00)|for \\w+ in (%|\x00)")
	// spellers are the functions that fill text into commands.
	spellers = []string{"command.Of", "command.Join", "o.command", "c.command", "f.command", "o.kubectl", "c.kubectl"}
)

// suggestsCommands is true for what runs in clusters and in the plugin. Sandboxes and releases run
// the commands that they spell.
func suggestsCommands(s source) bool {
	if s.syntax == nil || strings.HasSuffix(s.path, "_test.go") {
		return false
	}
	for _, dir := range []string{"internal/sandbox", "internal/release", "internal/image", "internal/helmrender", "internal/core/command"} {
		if s.dir() == dir || strings.HasPrefix(s.path, dir+"/") {
			return false
		}
	}
	return strings.HasPrefix(s.path, "internal/") || strings.HasPrefix(s.path, "cmd/") || strings.HasPrefix(s.path, "api/")
}

// pieces returns the text of a chain of "+", with a NUL for each operand that is not known. A
// command that a speller returns adds nothing that a shell could misread.
func pieces(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return pieces(e.X)
	case *ast.BasicLit:
		return strings.ReplaceAll(literal(e), "%%", "")
	case *ast.BinaryExpr:
		return pieces(e.X) + pieces(e.Y)
	case *ast.CallExpr:
		switch of, name := calledIn(e); {
		case name == "commandName":
			return "commandName()"
		case isSpeller(of, name):
			return ""
		}
	}
	return "\x00"
}

func isSpeller(of, name string) bool {
	return slices.Contains(spellers, of+"."+name)
}

// commands finds suggested commands that text is filled into by anything but a speller.
func commands(s source) (violations []string) {
	if !suggestsCommands(s) {
		return nil
	}
	files, checked := []*ast.File{s.syntax}, map[ast.Node]bool{}
	mark := func(e ast.Expr) {
		ast.Inspect(e, func(n ast.Node) bool {
			checked[n] = true
			_, call := n.(*ast.CallExpr)
			return !call
		})
	}
	inspect(files, func(call *ast.CallExpr) {
		if of, name := calledIn(call); isSpeller(of, name) && !strings.Contains(pieces(call.Args[0]), "\x00") {
			mark(call.Args[0])
		}
	})
	check := func(e ast.Expr) {
		if text := pieces(e); !checked[e] && filled.MatchString(text) {
			violations = append(violations, fmt.Sprintf("%s fills text into a command: fill it in with command.Of: %q", s.path, text))
		}
		mark(e)
	}
	inspect(files, func(chain *ast.BinaryExpr) { check(chain) })
	inspect(files, func(text *ast.BasicLit) { check(text) })
	return violations
}

func TestCommandsAreFilledByOneFunction(t *testing.T) {
	for _, s := range tree(t) {
		for _, violation := range commands(s) {
			t.Error(violation)
		}
	}
}

func TestCommandRuleCanFail(t *testing.T) {
	const path = "internal/core/blocker/a.go"
	for body, want := range map[string][]string{
		`fmt.Sprintf("See: kubectl get pod %s", name)`:                   {`"See: kubectl get pod %s"`},
		`"See: kubectl get pod " + name`:                                 {`"See: kubectl get pod \x00"`},
		`fmt.Sprintf("kubectl get -o yaml | " + "grep 'name: %s'", n)`:   {`"kubectl get -o yaml | grep 'name: %s'"`},
		`command.Of("kubectl get pod " + name)`:                          {`"kubectl get pod \x00"`},
		`commandName() + " complete " + name`:                            {`"commandName() complete \x00"`},
		"fmt.Sprintf(`for f in %s/*; do`, dir)":                          {`"for f in %s/*; do"`},
		`"See: " + command.Of("kubectl get pod %s", name) + "."`:         nil,
		`fmt.Sprintf("%s is gone: kubectl get nodes", name)`:             nil,
		`fmt.Sprintf("look with\n  kubectl get nodes\n%s", more)`:        nil,
		`fmt.Sprintf("%s: %s", name, command.Of("kubectl get " + "%s"))`: nil,
	} {
		for i := range want {
			want[i] = path + " fills text into a command: fill it in with command.Of: " + want[i]
		}
		if diff := cmp.Diff(want, commands(example(t, path, "package blocker\n\nvar a = "+body+"\n"))); diff != "" {
			t.Errorf("%s: violations (-want +got):\n%s", body, diff)
		}
	}
	if got := commands(example(t, "internal/sandbox/a.go", "package sandbox\n\nvar a = \"kubectl get \" + name\n")); got != nil {
		t.Errorf("what a sandbox runs: %q", got)
	}
}
