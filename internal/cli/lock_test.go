package cli

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/golden"
)

const (
	annas   = `{"holder":"user/anna","reason":"backup","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T12:10:00Z"}`
	berts   = `{"holder":"user/bert","reason":"compaction","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T12:40:00Z"}`
	drains  = `{"holder":"nodemaintenance/reboot/node-1","reason":"new kernel","acquiredAt":"2026-03-01T11:55:00Z","expiresAt":"2026-03-01T12:05:00Z"}`
	expired = `{"holder":"user/bert","reason":"compaction","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T11:40:00Z"}`
	garbage = `yes please`
)

// transcript is the text of runs of the plugin, for a golden file.
type transcript struct{ strings.Builder }

func (t *transcript) add(args []string, got result) {
	quoted := make([]string, len(args))
	for i, arg := range args {
		if quoted[i] = arg; arg == "" || strings.ContainsAny(arg, " \n") {
			quoted[i] = fmt.Sprintf("%q", arg)
		}
	}
	fmt.Fprintf(t, "$ kubectl ebbtide %s\n%s%s", strings.Join(quoted, " "), got.Out, got.ErrOut)
	if got.Code != 0 {
		fmt.Fprintf(t, "exit code %d\n", got.Code)
	}
}

// Each line is a lock that the budget bears, and commands on a budget with that lock.
func TestLockAndUnlockInAllStates(t *testing.T) {
	t.Parallel()
	var all transcript
	for _, tt := range []struct {
		name, lock string
		commands   []string
	}{
		{"no lock", "", []string{
			"lock pdb/web", "lock pdb web", "lock poddisruptionbudgets.v1.policy/web", "lock pdb/shop/web --context there", "lock pdb/web --for 4h --reason shards",
			"lock pdb/web --holder mover -n shop --context there", "lock pdb/web --as system:serviceaccount:shop:mover", "lock pdb/web --dry-run=client",
			"lock pdb/web -o name", "lock pdb/web -o json", "lock pdb/web -o yaml", "lock pdb/wep", "lock pdb/web --context there",
			"unlock pdb/web", "unlock pdb/web --force", "unlock pdb/wep",
		}},
		{"own lock", annas, []string{
			"lock pdb/web", "lock pdb/web --dry-run=server", "unlock pdb/web", "unlock pdb/web --dry-run=client", "unlock pdb/web --dry-run=server",
		}},
		{"lock of another user", berts, []string{
			"lock pdb/web", "lock pdb/web --dry-run=client -o json", "unlock pdb/web", "unlock pdb/web --holder=user/bert", "unlock pdb web --as=bert", "unlock pdb/web --force",
		}},
		{"lock of a drain", drains, []string{"lock pdb/web", "unlock pdb/web", "unlock pdb/web --force"}},
		{"expired lock", expired, []string{"lock PDB/web", "unlock pdb/web", "unlock pdb/web --force"}},
		{"unreadable lock", garbage, []string{"lock pdb/web", "unlock pdb/web", "unlock pdb/web --force"}},
	} {
		fmt.Fprintf(&all, "# %s\n", tt.name)
		for _, command := range tt.commands {
			s := newServer(t, tt.lock)
			all.add(strings.Fields(command), s.run(t, strings.Fields(command)...))
			if s.lock() != tt.lock {
				fmt.Fprintf(&all, "lock becomes %q\n", s.lock())
			}
		}
	}
	golden.Equal(t, "lock.txt", all.String())
}

// Invalid flags and arguments are rejected without a cluster.
func TestVerbRejectsInvalidInput(t *testing.T) {
	t.Parallel()
	var all transcript
	none := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{
		{"lock"},
		{"lock", "pdb"},
		{"unlock", "pdb.policy/"},
		{"lock", "web"},
		{"lock", "deployment/web"},
		{"lock", "pdb.apps/web"},
		{"lock", "pdb/web", "pdb/db"},
		{"unlock", "pdb", "web", "db"},
		{"lock", "pdb/shop/web/status"},
		{"lock", "pdb/web", "--for=5h"},
		{"lock", "pdb/web", "--for=0"},
		{"lock", "pdb/web", "--for=1d"},
		{"lock", "pdb/web", "--reason=a\nb"},
		{"unlock", "pdb/web", "--holder=nodemaintenance/m/n"},
		{"lock", "pdb/web", "--holder="},
		{"lock", "pdb/web", "--dry-run=true"},
		{"lock", "--dry-run", "pdb/web"},
		{"unlock", "pdb/web", "-o", "wide"},
		{"lock", "pdb/web", "--force"},
		{"drian"},
		{"drain", "node-1,node-2"},
		{"drain", "--node", "3"},
		{"plan"},
		{"plan", "node-1", "-l", "a=b"},
		{"plan", "node-1", "--depth", "all"},
		{"plan", "node-1", "--on-deadline", "delete"},
		{"plan", "node-1", "--deadline", "5m", "--on-deadline", "evict"},
		{"plan", "node-1", "--in-place", "2h"},
		{"plan", "node-1", "--deadline", "tonight"},
		{"plan", "node-1", "-o", "table"},
		{"cancel", "kernel"},
		{"pause", "kernel"},
		{"resume", "--help"},
		{"list"},
		{"explain", "pod"},
		{"statu", "--help"},
		{"frobnicate"},
	} {
		got := run(t.Context(), append([]string{args[0], "--kubeconfig", none}, args[1:]...)...)
		if got.Code != codeError || got.Out != "" {
			t.Errorf("%v: %+v", args, got)
		}
		all.add(args, got)
	}
	golden.Equal(t, "invalid.txt", all.String())
}

func TestVerbWithoutCluster(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", empty+"3")
	s := newServer(t, "")
	for want, args := range map[string][]string{
		"no cluster is configured": {"--kubeconfig", empty}, "kubeconfig2: no such file": {"--kubeconfig", empty + "2"},
		`context "tehre" does not exist`: {"--kubeconfig", s.kubeconfig, "--context", "tehre"}, "KUBECONFIG=" + empty + "3": nil,
	} {
		if got := run(t.Context(), append([]string{"lock", "pdb/web"}, args...)...); got.Code != codeError || !strings.Contains(got.ErrOut, want) {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
}

// refusing answers requests whose method and path contain these words.
func refusing(words string, err error) func(*http.Request) error {
	return func(request *http.Request) error {
		if strings.Contains(request.Method+" "+request.URL.Path, words) {
			return err
		}
		return nil
	}
}

// forbidden returns the API server's refusal of anna's request.
func forbidden(resource schema.GroupResource, verb string) error {
	return apierrors.NewForbidden(resource, "web", errors.New(`User "anna" cannot `+verb+` resource "`+resource.Resource+`" in API group "`+resource.Group+`"`))
}

func TestLockRefusedByAPIServer(t *testing.T) {
	t.Parallel()
	budgets := schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}
	reviews := schema.GroupResource{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}
	var all transcript
	for _, tt := range []struct {
		name   string
		refuse func(*http.Request) error
		verb   string
		code   int
	}{
		{"get", refusing("GET "+budgetsPath, forbidden(budgets, "get")), "lock", codeNoRight},
		{"patch", refusing("PATCH "+budgetsPath, forbidden(budgets, "patch")), "unlock", codeNoRight},
		{"webhook", refusing("PATCH "+budgetsPath, apierrors.NewForbidden(budgets, "web", errors.New("no changes on Fridays"))), "lock", codeNoRight},
		{"review", refusing("selfsubjectreviews", forbidden(reviews, "create")), "unlock", codeNoRight},
		{"review not served", refusing("selfsubjectreviews", apierrors.NewNotFound(reviews, "")), "lock", codeError},
		{"credentials", refusing("", apierrors.NewUnauthorized("the token has expired")), "lock", codeNoRight},
		{"kind not served", refusing(budgetsPath, apierrors.NewGenericServerResponse(404, "get", budgets, "web", "404 page not found", 0, true)), "lock", codeError},
	} {
		s := newServer(t, annas)
		s.refuse = tt.refuse
		got := s.run(t, tt.verb, "pdb/web")
		if got.Code != tt.code || s.lock() != annas {
			t.Errorf("%s: %+v, and the budget bears %q", tt.name, got, s.lock())
		}
		fmt.Fprintf(&all, "# %s\n", tt.name)
		all.add([]string{tt.verb, "pdb/web"}, got)
	}
	golden.Equal(t, "refused.txt", all.String())
}

func TestLockByUnknownUserNeedsHolder(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	s.refuse = refusing("selfsubjectreviews", apierrors.NewUnauthorized("unknown"))
	if got := s.run(t, "lock", "pdb/web", "--holder=robot"); got.Code != 0 || !strings.Contains(s.lock(), `"holder":"robot"`) {
		t.Errorf("%+v, and the budget bears %s", got, s.lock())
	}
	if got := s.run(t, "unlock", "pdb/web", "--force"); got.Code != 0 || s.lock() != "" {
		t.Errorf("%+v, and the budget bears %s", got, s.lock())
	}
}

func TestLockWithoutEbbtideWarns(t *testing.T) {
	t.Parallel()
	group := schema.GroupResource{Resource: "apis"}
	for want, err := range map[string]error{
		"warning: Ebbtide is not installed":                apierrors.NewNotFound(group, "ebbtide.dev"),
		"warning: cannot check whether Ebbtide is install": apierrors.NewForbidden(group, "", errors.New("you may not discover")),
	} {
		s := newServer(t, "")
		s.refuse = refusing("/apis/ebbtide.dev", err)
		if got := s.run(t, "lock", "pdb/web", "-o", "name"); got.Code != 0 || !strings.HasPrefix(got.ErrOut, want) {
			t.Errorf("lock: %+v, want %q", got, want)
		}
		if got := s.run(t, "unlock", "pdb/web", "-o", "name"); got.Code != 0 || got.ErrOut != "" {
			t.Errorf("unlock: %+v", got)
		}
	}
}

// A lock is reported by the answer of the API server and its clock, never by the request alone.
func TestLockIsNotReportedUnseen(t *testing.T) {
	t.Parallel()
	deaf, undated := newServer(t, ""), newServer(t, "")
	deaf.deaf, undated.undated = true, true
	for want, s := range map[string]*server{"another client changes annotation": deaf, "no Date header": undated} {
		if got := s.run(t, "lock", "pdb/web"); got.Code != codeError || !strings.Contains(got.ErrOut, want) {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}

func TestBudgetNamesAreCompleted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"kind and name":    {[]string{"lock", ""}, "pdb/web\n:4\n"},
		"name":             {[]string{"unlock", "pdb", "w"}, "web\n:4\n"},
		"nothing else":     {[]string{"lock", "pdb/web", ""}, ":4\n"},
		"no other context": {[]string{"lock", "--context", "none", "pdb/"}, ":4\n"},
		"dry run":          {[]string{"lock", "--dry-run", ""}, "none\nserver\nclient\n:4\n"},
	} {
		s := newServer(t, "")
		got := run(t.Context(), append([]string{"__complete", tt.args[0], "--kubeconfig", s.kubeconfig}, tt.args[1:]...)...)
		if got.Out != tt.want {
			t.Errorf("%s: %q, want %q", name, got.Out, tt.want)
		}
	}
}

// The disruption controller writes the status of a budget whenever a pod comes or goes, which is retried.
// Another lock is not.
func TestLockRetriesConflicts(t *testing.T) {
	t.Parallel()
	for until, code := range map[int]int{9: 0, 1000: codeError} {
		s := newServer(t, "")
		s.meddle = func(n int, b *policyv1.PodDisruptionBudget) {
			if n <= until {
				touch(b)
			}
		}
		if got := s.run(t, "lock", "pdb/web"); got.Code != code || s.writes != 10 || (s.lock() == "") != (code != 0) {
			t.Errorf("%+v after %d writes, and the budget bears %q", got, s.writes, s.lock())
		}
	}
	s := newServer(t, "")
	s.meddle = func(_ int, b *policyv1.PodDisruptionBudget) {
		b.Annotations[v1alpha1.LockAnnotation] = berts
		touch(b)
	}
	if got := s.run(t, "lock", "pdb/web"); got.Code != codeError || s.writes != 1 || s.lock() != berts {
		t.Errorf("%+v after %d writes, and the budget bears %s", got, s.writes, s.lock())
	}
}
