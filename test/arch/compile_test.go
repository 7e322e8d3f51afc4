package arch

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	// readers are the subcommands of go that compile nothing.
	readers = []string{"env", "list", "mod", "version"}
	// compilers are the programs that compile whatever they are told.
	compilers = []string{"cc", "gcc", "make"}
	// compiling is a line of a shell that compiles.
	compiling = regexp.MustCompile(`(?m)(?:^|[\s;&|(])((?:go (?:build|generate|get|install|run|test|tool|vet)|make)(?:[ \t][^\n;&|)"']*)?(?:$|[\n;&|)"']))`)
	// leftOut is a line of a page that its test in test/demo leaves out.
	leftOut = regexp.MustCompile(`^(make build|go build -o \.bin/ \./examples/\w+)$`)
	// builders are our functions that compile, by package.
	builders = map[string][]string{"sandbox": {"Build", "Compile"}, "prebuilt": {"Make"}}
)

// ofTests is true for a file that is in no program: a test, or what tests import. The benchmark
// builds its peers and test/prebuilt what tests run, before any test starts.
func ofTests(s source) bool {
	switch {
	case s.syntax == nil:
		return false
	case strings.HasSuffix(s.path, "_test.go"):
		return true
	case strings.HasPrefix(s.path, "test/bench/") || s.dir() == "test/prebuilt":
		return false
	default:
		return strings.HasPrefix(s.path, "test/") && s.syntax.Name.Name != "main"
	}
}

// literal returns the value of a literal string, "" for any other expression.
func literal(e ast.Expr) string {
	if basic, is := e.(*ast.BasicLit); is {
		value, _ := strconv.Unquote(basic.Value)
		return value
	}
	return ""
}

// calledIn returns the package or variable, and the name of the function that is called.
func calledIn(call *ast.CallExpr) (of, name string) {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return "", f.Name
	case *ast.SelectorExpr:
		return fmt.Sprint(f.X), f.Sel.Name
	}
	return "", ""
}

// compilation finds the tests that compile, in the process or by a command.
func compilation(s source) (violations []string) {
	if !ofTests(s) {
		return nil
	}
	found := func(what string) { violations = append(violations, s.path+" compiles inside a test: "+what) }
	inspect([]*ast.File{s.syntax}, func(call *ast.CallExpr) {
		if what := compiledIn(s, call); what != "" {
			found(what)
		}
	})
	for written, needed := range map[string]string{"image.Program{": "gocommand.Play(", "demo.Demo{": "Programs: "} {
		if strings.Contains(s.text, written) && !strings.Contains(s.text, needed) && s.dir() != "test/arch" {
			found(written + "} without " + strings.TrimRight(needed, "(: "))
		}
	}
	return violations
}

// compiledIn returns what a call compiles, "" if nothing.
func compiledIn(s source, call *ast.CallExpr) string {
	switch of, name := calledIn(call); {
	case of == "exec":
		return compiledBy(name, call.Args)
	case name == "goTool" || name == "runGo":
		// The subcommand is the first literal.
		at := slices.IndexFunc(call.Args, func(e ast.Expr) bool { return literal(e) != "" })
		if at < 0 || !slices.Contains(readers, literal(call.Args[at])) {
			return name
		}
	case slices.Contains(builders[of], name):
		return of + "." + name
	case of == "sandbox" && name == "Start" && !strings.Contains(s.text, "Programs"):
		return "sandbox.Start without Programs"
	}
	return ""
}

// compiledBy returns what a call of package os/exec compiles, "" if nothing.
func compiledBy(function string, args []ast.Expr) string {
	if function == "CommandContext" && len(args) > 0 {
		args = args[1:]
	}
	if len(args) == 0 {
		return ""
	}
	program := literal(args[0])
	switch {
	case slices.Contains(compilers, program), program == "go" && function == "LookPath":
		return program
	case program == "go":
		if len(args) > 1 && slices.Contains(readers, literal(args[1])) {
			return ""
		}
		if len(args) > 1 && literal(args[1]) != "" {
			return "go " + literal(args[1])
		}
		return "go with a subcommand that this rule cannot read"
	}
	for _, arg := range args[1:] {
		if match := compiling.FindStringSubmatch(literal(arg)); match != nil {
			return commandOf(match)
		}
	}
	return ""
}

// commandOf returns the command of a match of compiling.
func commandOf(match []string) string { return strings.TrimRight(match[1], " \t\n;&|)\"'") }

// compilingBlocks finds commands that compile among those of a page that tests run.
func compilingBlocks(name, text string) (violations []string) {
	for _, block := range blocksOf(text, "run") {
		for _, match := range compiling.FindAllStringSubmatch(block, -1) {
			if command := commandOf(match); !leftOut.MatchString(command) {
				violations = append(violations, fmt.Sprintf("%s has a test run: %s", name, command))
			}
		}
	}
	return violations
}

// No test compiles: make builds what it needs before the first one starts.
func TestNoTestCompiles(t *testing.T) {
	for _, s := range tree(t) {
		for _, violation := range compilation(s) {
			t.Errorf("%s; have test/prebuilt build it", violation)
		}
		if strings.HasSuffix(s.path, ".md") {
			for _, violation := range compilingBlocks(s.path, s.text) {
				t.Error(violation)
			}
		}
	}
}

func TestCompilationRuleCanFail(t *testing.T) {
	for name, test := range map[string]struct{ path, code, want string }{
		"go build":             {"internal/a_test.go", `exec.CommandContext(ctx, "go", "build", "./cmd/a")`, "go build"},
		"go test":              {"test/bench/lab/a_test.go", `exec.Command("go", "test")`, "go test"},
		"go with any argument": {"test/a/a_test.go", `exec.Command("go", args...)`, "go with a subcommand that this rule cannot read"},
		"go with nothing":      {"test/a/a_test.go", `exec.Command("go")`, "go with a subcommand that this rule cannot read"},
		"looked up":            {"test/a/a_test.go", `exec.LookPath("go")`, "go"},
		"make":                 {"test/a/a_test.go", `exec.Command("make", "build")`, "make"},
		"in a shell":           {"test/a/a_test.go", `exec.Command("sh", "-c", "cd x && go run . | cat")`, "go run ."},
		"an imported package":  {"test/cluster/a.go", `exec.Command("go", "build")`, "go build"},
		"our own runner":       {"internal/a_test.go", `r.goTool(ctx, "install", "x")`, "goTool"},
		"any own runner":       {"internal/a_test.go", `runGo(ctx, dir, expected, args...)`, "runGo"},
		"a control plane":      {"test/a/a_test.go", `sandbox.Build(ctx, spec, out)`, "sandbox.Build"},
		"programs":             {"test/cluster/a.go", `prebuilt.Make(ctx, out, "programs")`, "prebuilt.Make"},
		"when it starts":       {"test/a/a_test.go", `sandbox.Start(ctx, binaries, sandbox.Spec{})`, "sandbox.Start without Programs"},
		"a demo":               {"test/a/a_test.go", `f(demo.Demo{Version: v})`, "demo.Demo{} without Programs"},
		"a program":            {"internal/a_test.go", `image.Program{Dir: "."}.Build(ctx, p, file)`, "image.Program{} without gocommand.Play"},
		"a list":               {"test/a/a_test.go", `exec.Command("go", "list", "-m")`, ""},
		"a listed module":      {"internal/a_test.go", `r.goTool(ctx, "list", "-deps")`, ""},
		"a program that runs":  {"test/a/a_test.go", `exec.Command(path, "go", "build")`, ""},
		"a shell":              {"test/a/a_test.go", `exec.Command("sh", "-c", "kubectl make-way; cargo build")`, ""},
		"a benchmark":          {"test/bench/lab/a.go", `exec.Command("go", "build")`, ""},
		"a command":            {"internal/release/a.go", `exec.Command("go", "build")`, ""},
		"with programs":        {"test/a/a_test.go", `sandbox.Start(ctx, binaries, sandbox.Spec{Programs: programs})`, ""},
	} {
		var want []string
		if test.want != "" {
			want = []string{test.path + " compiles inside a test: " + test.want}
		}
		if diff := cmp.Diff(want, compilation(example(t, test.path, "package a\n\nvar _ = "+test.code+"\n"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	program := example(t, "test/a/main.go", "package main\n\nvar _ = exec.Command(\"go\", \"test\")\n")
	if got := compilation(program); got != nil {
		t.Errorf("violations of a program are %q", got)
	}
	page := "```\nmake build\n```\n<!-- run: in test/demo -->\n```\nmake image\nmake build\ngo build -o .bin/ ./examples/leader\nkubectl get x && go run ./cmd/a\n```\n"
	if diff := cmp.Diff([]string{"a.md has a test run: make image", "a.md has a test run: go run ./cmd/a"}, compilingBlocks("a.md", page)); diff != "" {
		t.Errorf("blocks of a page (-want +got):\n%s", diff)
	}
}
