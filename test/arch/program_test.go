package arch

import (
	"fmt"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// packageList is where the packages are that the tests need.
const packageList = "test/packages.txt"

var (
	// given are programs that no listed package brings: every Debian has the shells and
	// apt-get, kubectl and the plugin are built here, Go is installed by its own means.
	given = []string{"apt-get", "bash", "go", "kubectl", "kubectl-ebbtide", "sh"}
	// wanted is how a script looks for a program.
	wanted  = regexp.MustCompile(`\bcommand -v ([\w.-]+)`)
	aptLine = regexp.MustCompile(`(?m)^sudo apt-get install --no-install-recommends (.*)$`)
)

// debianPackage is a line of the list.
type debianPackage struct {
	name     string
	programs []string
}

// listed reads the list. Its lines are sorted, and each says what needs the package.
func listed(text string) (packages []debianPackage, problems []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 3 {
			problems = append(problems, fmt.Sprintf("%s: %q lacks a program or what needs it", packageList, strings.TrimSpace(line)))
			continue
		}
		packages = append(packages, debianPackage{fields[0], strings.Split(fields[1], ",")})
	}
	if !slices.IsSortedFunc(packages, func(a, b debianPackage) int { return strings.Compare(a.name, b.name) }) {
		problems = append(problems, packageList+" is not sorted")
	}
	return packages, problems
}

// run is a program that a file starts or looks for by its name.
type run struct {
	program string
	// lookedUp is true if the file looks for it first.
	lookedUp bool
}

// runs finds the programs that a file starts or looks for: literal names in exec.Command,
// exec.CommandContext and exec.LookPath, and command -v in scripts.
func runs(s source) (found []run) {
	if script.MatchString(s.text) {
		for _, match := range wanted.FindAllStringSubmatch(s.text, -1) {
			found = append(found, run{match[1], false})
		}
	}
	if s.syntax == nil {
		return found
	}
	position := map[string]int{"Command": 0, "CommandContext": 1, "LookPath": 0}
	inspect([]*ast.File{s.syntax}, func(call *ast.CallExpr) {
		function, is := call.Fun.(*ast.SelectorExpr)
		if !is || fmt.Sprint(function.X) != "exec" {
			return
		}
		at, known := position[function.Sel.Name]
		if !known || at >= len(call.Args) {
			return
		}
		literal, is := call.Args[at].(*ast.BasicLit)
		if !is {
			return
		}
		if name, err := strconv.Unquote(literal.Value); err == nil && !strings.Contains(name, "/") {
			found = append(found, run{name, function.Sel.Name == "LookPath"})
		}
	})
	return found
}

// programProblems finds programs that no listed package brings, and tests that look for one
// without saying which package brings it.
func programProblems(s source, packages []debianPackage) (problems []string) {
	brings := map[string]string{}
	for _, p := range packages {
		for _, program := range p.programs {
			brings[program] = p.name
		}
	}
	for _, r := range runs(s) {
		if slices.Contains(given, r.program) {
			continue
		}
		advice := fmt.Sprintf("install the package %s (see %s)", brings[r.program], packageList)
		switch {
		case brings[r.program] == "":
			problems = append(problems, fmt.Sprintf("%s runs %s, which no package of %s brings", s.path, r.program, packageList))
		case r.lookedUp && strings.HasPrefix(s.path, "test/") && !strings.Contains(s.text, advice):
			problems = append(problems, fmt.Sprintf("%s looks for %s and does not say: %s", s.path, r.program, advice))
		}
	}
	return problems
}

// advised compares the apt-get line of CONTRIBUTING.md with the list.
func advised(contributing string, packages []debianPackage) (problems []string) {
	names := map[string]bool{}
	for _, p := range packages {
		names[p.name] = true
	}
	for _, block := range blocksOf(contributing, "packages") {
		if line := aptLine.FindStringSubmatch(block); line != nil {
			if diff := cmp.Diff(slices.Sorted(maps.Keys(names)), strings.Fields(line[1])); diff != "" {
				problems = append(problems, fmt.Sprintf("apt-get line of CONTRIBUTING.md (-%s +line):\n%s", packageList, diff))
			}
			return problems
		}
	}
	return []string{"CONTRIBUTING.md has no apt-get line"}
}

func TestPackages(t *testing.T) {
	texts := map[string]string{}
	for _, s := range tree(t) {
		texts[s.path] = s.text
	}
	packages, problems := listed(texts[packageList])
	problems = append(problems, advised(texts["CONTRIBUTING.md"], packages)...)
	if len(packages) == 0 {
		problems = append(problems, packageList+" is empty")
	}
	for _, s := range tree(t) {
		problems = append(problems, programProblems(s, packages)...)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

func TestPackageRulesCanFail(t *testing.T) {
	packages, got := listed("# package program needed by\ntmux tmux sessions\ndbus dbus-daemon,dbus-send buses\nspin spin\n")
	want := []string{packageList + `: "spin spin" lacks a program or what needs it`, packageList + " is not sorted"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	for name, test := range map[string]struct{ path, text, want string }{
		"a program of no package": {"internal/a.go", "package a\n\nvar _ = exec.CommandContext(ctx, \"dig\", \"x\")\n", "internal/a.go runs dig, which no package of test/packages.txt brings"},
		"a script":                {"test/a", "#!/bin/sh\ncommand -v dig\n", "test/a runs dig, which no package of test/packages.txt brings"},
		"a test without advice":   {"test/a/a_test.go", "package a\n\nvar _, _ = exec.LookPath(\"tmux\")\n", "test/a/a_test.go looks for tmux and does not say: install the package tmux (see test/packages.txt)"},
		"a listed program":        {"test/a/a_test.go", "package a\n\nvar _ = exec.Command(\"dbus-send\")\n", ""},
		"advice":                  {"test/a/a_test.go", "package a\n\n// install the package tmux (see test/packages.txt)\nvar _, _ = exec.LookPath(\"tmux\")\n", ""},
		"a path":                  {"test/a/a_test.go", "package a\n\nvar _ = exec.Command(\"/proc/self/exe\")\n", ""},
	} {
		if got := strings.Join(programProblems(example(t, test.path, test.text), packages), "\n"); got != test.want {
			t.Errorf("%s: problems are %q, want %q", name, got, test.want)
		}
	}
	const page = "<!-- packages: x -->\n```\nsudo apt-get install --no-install-recommends dbus\n```\n"
	if got := advised(page, packages); len(got) != 1 || !strings.Contains(got[0], `"tmux"`) {
		t.Errorf("problems of a line without tmux are %q", got)
	}
	if got := advised("", packages); len(got) != 1 || got[0] != "CONTRIBUTING.md has no apt-get line" {
		t.Errorf("problems of a page without a line are %q", got)
	}
}
