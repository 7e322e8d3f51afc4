package arch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// room is a place of docs/layout.md. A package may import packages of its own
// room and of rooms with a lower floor.
type room struct {
	prefix string
	floor  int
}

// Floors, from the bottom: api, core, shared I/O, shells, main packages, tests.
// Examples have no more than third parties have: the API.
var rooms = []room{
	{"api", 0},
	{"charts", 0},
	{"internal/logformat", 0},
	{"internal/version", 0},
	{"examples/*", 1},
	{"internal/core", 1},
	{"internal/certificate", 1},
	{"internal/kube", 2},
	{"internal/eviction", 2},
	{"internal/gate", 2},
	{"internal/workload", 3},
	{"internal/uninstall", 3},
	{"internal/check", 3},
	{"internal/controller/*", 4},
	{"internal/webhook", 4},
	{"internal/agent", 4},
	{"internal/cli", 4},
	{"internal/sandbox", 4},
	{"internal/dashboard", 4},
	{"internal/apidoc", 5},
	{"internal/crdrule", 5},
	{"internal/helmrender", 5},
	{"internal/image", 5},
	{"controlplane", 5},
	{"cmd/*", 5},
	{"internal/release", 6},
	{"test", 6},
}

// coreOrder: a folder of core may import only those before it.
var coreOrder = []string{
	"excerpt", "phrase", "command", "apierror", "right", "skew", "event", "labelindex", "podclass", "drainrule", "drainplan", "budget", "evacuation", "evictionrequest", "nodebudget", "blocker", "foreigndrain", "drainlock", "bridge", "maintenance", "group",
	"daemonset", "nodeagent", "nodeshutdown", "surge", "nodedrain", "volume", "lifecycle", "trace", "placement", "preflight", "lint", "calendar", "rollout", "validate", "view",
}

// kubeMayUse is what shared I/O has of core: values, and what is thought of our clock.
var kubeMayUse = []string{"internal/core/event", "internal/core/skew"}

// impure is what core does not import, because a decision is a total function of
// a snapshot. reached is what core does not even depend on.
var (
	impure = []string{
		"context", "log", "log/slog", "net", "net/http", "os", "os/exec", "sync",
		"github.com/go-logr/logr", "k8s.io/klog/v2",
	}
	reached = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}
)

// roomOf finds the room of a folder; a star stands for one path element.
func roomOf(dir string) (name string, floor int, ok bool) {
	for _, r := range rooms {
		depth := strings.Count(r.prefix, "/") + 1
		elements := strings.Split(dir, "/")
		if len(elements) < depth {
			continue
		}
		name = strings.Join(elements[:depth], "/")
		if prefix, star := strings.CutSuffix(r.prefix, "*"); name == r.prefix || star && strings.HasPrefix(name, prefix) {
			return name, r.floor, true
		}
	}
	return "", 0, false
}

// direction finds imports against the direction of docs/layout.md.
func direction(p pkg) (violations []string) {
	from, floor, ok := roomOf(p.dir())
	if !ok {
		return []string{p.dir() + " is in no room of docs/layout.md"}
	}
	for _, path := range p.Imports {
		target, own := strings.CutPrefix(path, module+"/")
		if !own {
			continue
		}
		to, below, ok := roomOf(target)
		switch {
		case !ok:
			violations = append(violations, fmt.Sprintf("%s imports %s, which is in no room", p.dir(), target))
		case from == to:
		case below >= floor, from == "internal/kube" && to == "internal/core" && !slices.Contains(kubeMayUse, target):
			violations = append(violations, fmt.Sprintf("%s must not import %s", p.dir(), target))
		}
	}
	return violations
}

// order finds imports inside core against coreOrder.
func order(p pkg) (violations []string) {
	const core = "internal/core/"
	self, ok := strings.CutPrefix(p.dir(), core)
	if !ok {
		return nil
	}
	at := slices.Index(coreOrder, strings.Split(self, "/")[0])
	if at < 0 {
		return []string{p.dir() + " has no place in the order of core"}
	}
	for _, path := range p.Imports {
		other, ok := strings.CutPrefix(path, module+"/"+core)
		if !ok {
			continue
		}
		if folder := strings.Split(other, "/")[0]; slices.Index(coreOrder, folder) > at {
			violations = append(violations, fmt.Sprintf("%s must not import %s, which comes later in core", p.dir(), folder))
		}
	}
	return violations
}

// purity finds what core must not import or depend on.
func purity(p pkg) (violations []string) {
	if !strings.HasPrefix(p.dir(), "internal/core/") {
		return nil
	}
	for _, path := range p.Imports {
		if slices.Contains(impure, path) {
			violations = append(violations, fmt.Sprintf("%s imports %s", p.dir(), path))
		}
	}
	for _, path := range p.Deps {
		for _, prefix := range reached {
			if path == prefix || strings.HasPrefix(path, prefix+"/") {
				violations = append(violations, fmt.Sprintf("%s depends on %s", p.dir(), path))
			}
		}
	}
	return violations
}

// users finds main packages of users that link the sandbox, which runs nodes as root.
func users(p pkg) (violations []string) {
	if !strings.HasPrefix(p.dir(), "cmd/") || p.dir() == "cmd/sandbox" {
		return nil
	}
	for _, path := range p.Deps {
		if target, own := strings.CutPrefix(path, module+"/internal/sandbox"); own {
			violations = append(violations, fmt.Sprintf("%s links internal/sandbox%s, and only cmd/sandbox may", p.dir(), target))
		}
	}
	return violations
}

// innerLoop finds tests that start a control plane where tests are to need none.
func innerLoop(p pkg) (violations []string) {
	if !strings.HasPrefix(p.dir(), "internal/") {
		return nil
	}
	if slices.Contains(slices.Concat(p.TestImports, p.XTestImports), module+"/test/cluster") {
		return []string{"tests of " + p.dir() + " start a control plane: move them to a folder of test"}
	}
	return nil
}

// made is what makes controllers.
var made = []string{"sigs.k8s.io/controller-runtime/pkg/controller", "sigs.k8s.io/controller-runtime/pkg/builder"}

// workers finds controllers that are not made by internal/kube: all their workers may hang on
// the requests of one namespace.
func workers(p pkg) []string {
	maker := func(path string) bool { return slices.Contains(made, path) }
	if strings.HasPrefix(p.dir(), "internal/controller/") && slices.ContainsFunc(p.Imports, maker) {
		return []string{p.dir() + " must use kube.AddController"}
	}
	return nil
}

func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		for _, rule := range []func(pkg) []string{direction, order, purity, users, innerLoop, workers} {
			for _, violation := range rule(p) {
				t.Error(violation)
			}
		}
	}
}

// own are packages of our module.
func own(paths ...string) (list []string) {
	for _, path := range paths {
		list = append(list, module+"/"+path)
	}
	return list
}

// refused is a package that a rule is to find fault with.
type refused struct {
	rule func(pkg) []string
	pkg  pkg
	want []string
}

func TestImportRulesCanFail(t *testing.T) {
	canFail(t, map[string]refused{
		"a shell imports another shell": {
			direction,
			pkg{ImportPath: module + "/internal/controller/nodemaintenance", Imports: own("internal/controller/evacuation", "internal/kube")},
			[]string{"internal/controller/nodemaintenance must not import internal/controller/evacuation"},
		},
		"core imports shared I/O": {
			direction,
			pkg{ImportPath: module + "/internal/core/maintenance", Imports: own("internal/kube", "api/v1alpha1")},
			[]string{"internal/core/maintenance must not import internal/kube"},
		},
		"shared I/O decides": {
			direction,
			pkg{ImportPath: module + "/internal/kube", Imports: own("internal/core/maintenance", "internal/core/event")},
			[]string{"internal/kube must not import internal/core/maintenance"},
		},
		"a shell imports the sandbox": {
			direction,
			pkg{ImportPath: module + "/internal/cli", Imports: own("internal/sandbox")},
			[]string{"internal/cli must not import internal/sandbox"},
		},
		"the API imports core": {
			direction,
			pkg{ImportPath: module + "/api/v1alpha1", Imports: own("internal/core/event")},
			[]string{"api/v1alpha1 must not import internal/core/event"},
		},
		"a folder outside every room": {
			direction,
			pkg{ImportPath: module + "/internal/stuff"},
			[]string{"internal/stuff is in no room of docs/layout.md"},
		},
		"core imports what comes later": {
			order,
			pkg{ImportPath: module + "/internal/core/drainplan", Imports: own("internal/core/maintenance", "internal/core/podclass")},
			[]string{"internal/core/drainplan must not import maintenance, which comes later in core"},
		},
		"core has a folder that nobody ordered": {
			order,
			pkg{ImportPath: module + "/internal/core/wizard"},
			[]string{"internal/core/wizard has no place in the order of core"},
		},
	})
}

func TestRulesOfOnePlaceCanFail(t *testing.T) {
	canFail(t, map[string]refused{
		"a controller by itself": {workers, pkg{ImportPath: module + "/internal/controller/surge", Imports: made}, []string{"internal/controller/surge must use kube.AddController"}},
		"the plugin links the sandbox": {
			users,
			pkg{ImportPath: module + "/cmd/kubectl-ebbtide", Deps: own("internal/cli", "internal/sandbox/machine")},
			[]string{"cmd/kubectl-ebbtide links internal/sandbox/machine, and only cmd/sandbox may"},
		},
		"a test of the inner loop starts a control plane": {
			innerLoop,
			pkg{ImportPath: module + "/internal/webhook", XTestImports: own("test/fault", "test/cluster")},
			[]string{"tests of internal/webhook start a control plane: move them to a folder of test"},
		},
		"core imports a context and reaches a client": {
			purity,
			pkg{ImportPath: module + "/internal/core/event", Imports: []string{"context"}, Deps: []string{"context", "k8s.io/client-go/rest"}},
			[]string{"internal/core/event imports context", "internal/core/event depends on k8s.io/client-go/rest"},
		},
	})
}

func canFail(t *testing.T, tests map[string]refused) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.rule(test.pkg)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}
