package cli

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestBadBudgetsAreRefusedBeforeAnybodyIsAsked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no budget":             {[]string{"lock"}, "name a budget: pdb/NAME"},
		"no name":               {[]string{"lock", "pdb"}, "name a budget: pdb/NAME"},
		"no name after a slash": {[]string{"unlock", "pdb.policy/"}, "name a budget: pdb.policy/NAME"},
		"no kind":               {[]string{"lock", "web"}, `say of what kind "web" is: pdb/web`},
		"another kind":          {[]string{"lock", "deployment/web"}, `"deployment" is not a PodDisruptionBudget; nothing else can be locked: pdb/NAME`},
		"another group":         {[]string{"lock", "pdb.apps/web"}, `"pdb.apps" is not a PodDisruptionBudget; nothing else can be locked: pdb/NAME`},
		"several":               {[]string{"lock", "pdb/web", "pdb/db"}, "one budget at a time, not also pdb/db"},
		"several names":         {[]string{"unlock", "pdb", "web", "db", "queue"}, "one budget at a time, not also db queue"},
		"a path": {[]string{"lock", "pdb/web/status"}, `"web/status" is no name of a PodDisruptionBudget: a lowercase RFC 1123 subdomain must consist of ` +
			`lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', ` +
			`regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		"too long":         {[]string{"lock", "pdb/web", "--for=5h"}, "a lock is for 1s to 4h, not for 5h; whoever needs it longer renews it before it ends"},
		"for no time":      {[]string{"lock", "pdb/web", "--for=0"}, "a lock is for 1s to 4h, not for 0s; whoever needs it longer renews it before it ends"},
		"for days":         {[]string{"lock", "pdb/web", "--for=1d"}, `invalid argument "1d" for "--for" flag: time: unknown unit "d" in duration "1d"`},
		"lines":            {[]string{"lock", "pdb/web", "--reason=a\nb"}, `the reason "a\nb" is not one line of text; leave out line breaks and what does not show`},
		"a drain's name":   {[]string{"unlock", "pdb/web", "--holder=nodemaintenance/m/n"}, `holder "nodemaintenance/m/n": names that begin with nodemaintenance/ are those of drains; choose another`},
		"no holder":        {[]string{"lock", "pdb/web", "--holder="}, "the holder of a lock needs a name"},
		"some dry run":     {[]string{"lock", "pdb/web", "--dry-run=true"}, `--dry-run must be none, server or client, not "true"`},
		"a dry run of it":  {[]string{"lock", "--dry-run", "pdb/web"}, `name a budget: pdb/NAME`},
		"a strange format": {[]string{"unlock", "pdb/web", "-o", "wide"}, `-o must be json, yaml or name, not "wide"`},
		"force for a lock": {[]string{"lock", "pdb/web", "--force"}, "unknown flag: --force"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := result{Code: 1, ErrOut: "error: " + tt.want + "\n"}
			got := run(t.Context(), append(tt.args, "--kubeconfig", filepath.Join(t.TempDir(), "none"))...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", strings.Join(tt.args, " "), diff)
			}
		})
	}
}

func TestNoClusterToLockIn(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, "")
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"an empty kubeconfig": {[]string{"--kubeconfig", empty}, "no cluster is named; set KUBECONFIG or use --kubeconfig or --server"},
		"no kubeconfig":       {[]string{"--kubeconfig", empty + "2"}, "stat " + empty + "2: no such file or directory"},
		"another context":     {[]string{"--kubeconfig", s.kubeconfig, "--context", "tehre"}, `context "tehre" does not exist`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := result{Code: 1, ErrOut: "error: " + tt.want + "\n"}
			if diff := cmp.Diff(want, run(t.Context(), append([]string{"lock", "pdb/web"}, tt.args...)...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A file that KUBECONFIG names and that is not there is named.
func TestAKubeconfigThatIsNotThereIsNamed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	t.Setenv("KUBECONFIG", missing)
	if got := run(t.Context(), "status"); got.Code != 1 || !strings.Contains(got.ErrOut, "KUBECONFIG="+missing) {
		t.Errorf("%+v", got)
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

// forbidden is how an API server says that anna may not do something.
func forbidden(resource schema.GroupResource, verb string) error {
	return apierrors.NewForbidden(resource, "web", errors.New(`User "anna" cannot `+verb+` resource "`+resource.Resource+`" in API group "`+resource.Group+`"`))
}

func TestTheAPIServerRefuses(t *testing.T) {
	t.Parallel()
	budgets := schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}
	reviews := schema.GroupResource{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}
	const right = "error: a lock is an annotation of its budget, and you may not %[1]s budgets in namespace shop. " +
		"Ask whoever runs it for the verb %[1]s on poddisruptionbudgets.policy there. The API server says:\n" +
		`  poddisruptionbudgets.policy "web" is forbidden: User "anna" cannot %[1]s resource "poddisruptionbudgets" in API group "policy"` + "\n"
	for name, tt := range map[string]struct {
		refuse func(*http.Request) error
		args   []string
		code   int
		want   string
	}{
		"to read the budget": {refusing("GET "+budgetsPath, forbidden(budgets, "get")), []string{"lock", "pdb/web"}, 4, strings.ReplaceAll(right, "%[1]s", "get")},
		"to write it":        {refusing("PATCH "+budgetsPath, forbidden(budgets, "patch")), []string{"lock", "pdb/web"}, 4, strings.ReplaceAll(right, "%[1]s", "patch")},
		"to unlock":          {refusing("PATCH "+budgetsPath, forbidden(budgets, "patch")), []string{"unlock", "pdb/web"}, 4, strings.ReplaceAll(right, "%[1]s", "patch")},
		"for its own reasons": {
			refusing("PATCH "+budgetsPath, apierrors.NewForbidden(budgets, "web", errors.New("no changes on Fridays"))),
			[]string{"lock", "pdb/web"},
			4,
			"error: poddisruptionbudgets.policy \"web\" is forbidden: no changes on Fridays\n",
		},
		"to say who we are": {
			refusing("selfsubjectreviews", forbidden(reviews, "create")),
			[]string{"unlock", "pdb/web"},
			4,
			"error: the API server does not tell who you are, so say it with --holder: selfsubjectreviews.authentication.k8s.io \"web\" is forbidden: " +
				`User "anna" cannot create resource "selfsubjectreviews" in API group "authentication.k8s.io"` + "\n",
		},
		"to know who we could be": {
			refusing("selfsubjectreviews", apierrors.NewNotFound(reviews, "")),
			[]string{"lock", "pdb/web"},
			1,
			"error: the API server does not tell who you are, so say it with --holder: selfsubjectreviews.authentication.k8s.io \"\" not found\n",
		},
		"to let us in": {
			refusing("", apierrors.NewUnauthorized("the token has expired")),
			[]string{"lock", "pdb/web"},
			4,
			"error: the cluster does not accept your credentials: the token has expired. Log in again, or choose another user; " +
				"kubectl config view --minify --kubeconfig CONFIG shows which it is\n",
		},
		"a kind that it does not have": {
			refusing(budgetsPath, apierrors.NewGenericServerResponse(404, "get", budgets, "web", "404 page not found", 0, true)),
			[]string{"lock", "pdb/web"},
			1,
			"error: the server could not find the requested resource (get poddisruptionbudgets.policy web)\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, annas)
			s.refuse = tt.refuse
			if diff := cmp.Diff(result{Code: tt.code, ErrOut: tt.want}, s.run(t, tt.args...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if s.lock() != annas {
				t.Errorf("the budget bears %q, want what it did", s.lock())
			}
		})
	}
}

func TestWhoIsNotKnownMayLockByName(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	s.refuse = refusing("selfsubjectreviews", apierrors.NewUnauthorized("nobody knows you"))
	if got := s.run(t, "lock", "pdb/web", "--holder=robot"); got.Code != 0 || !strings.Contains(s.lock(), `"holder":"robot"`) {
		t.Errorf("%+v, and the budget bears %s", got, s.lock())
	}
	if got := s.run(t, "unlock", "pdb/web", "--force"); got.Code != 0 || s.lock() != "" {
		t.Errorf("%+v, and the budget bears %s", got, s.lock())
	}
}

func TestALockThatProtectsNothingIsWarnedOf(t *testing.T) {
	t.Parallel()
	group := schema.GroupResource{Resource: "apis"}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"Ebbtide is not there": {
			apierrors.NewNotFound(group, "ebbtide.dev"),
			"warning: Ebbtide is not installed in this cluster (nobody serves ebbtide.dev), and the lock protects nothing until it is\n",
		},
		"nobody may know": {
			apierrors.NewForbidden(group, "", errors.New("you may not discover")),
			"warning: Ebbtide may not be installed in this cluster, and then the lock protects nothing: apis is forbidden: you may not discover\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "")
			s.refuse = refusing("/apis/ebbtide.dev", tt.err)
			want := result{Out: "poddisruptionbudget.policy/web\n", ErrOut: tt.want}
			if diff := cmp.Diff(want, s.run(t, "lock", "pdb/web", "-o", "name")); diff != "" {
				t.Errorf("lock (-want +got):\n%s", diff)
			}
			want.ErrOut = ""
			if diff := cmp.Diff(want, s.run(t, "unlock", "pdb/web", "-o", "name")); diff != "" {
				t.Errorf("unlock (-want +got):\n%s", diff)
			}
		})
	}
}

// A lock is never announced on the word of the request alone, nor by the clock of
// this machine.
func TestALockIsNotBelievedUnseen(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		edit func(*server)
		want string
	}{
		"the write does nothing": {
			func(s *server) { s.deaf = true },
			"PodDisruptionBudget shop/web is not locked, although the API server took the lock: something else in the cluster changes annotation ebbtide.dev/lock",
		},
		"nobody says what time it is": {
			func(s *server) { s.undated = true },
			"the answers of the API server do not say what time it is: a proxy on the way must not take their Date away",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "")
			tt.edit(s)
			want := result{Code: 1, ErrOut: "error: " + tt.want + "\n"}
			if diff := cmp.Diff(want, s.run(t, "lock", "pdb/web")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLockPrintsTheBudget(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"json": `{
    "kind": "PodDisruptionBudget",
    "apiVersion": "policy/v1",
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "uid": "uid-of-web",
        "resourceVersion": "2",
        "creationTimestamp": "2026-03-01T11:55:00Z",
        "annotations": {
            "ebbtide.dev/lock": "{\"holder\":\"user/anna\",\"acquiredAt\":\"2026-03-01T12:00:00Z\",\"expiresAt\":\"2026-03-01T13:00:00Z\"}",
            "team": "web"
        }
    },
    "spec": {},
    "status": {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0
    }
}
`,
		"yaml": `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  annotations:
    ebbtide.dev/lock: '{"holder":"user/anna","acquiredAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-01T13:00:00Z"}'
    team: web
  creationTimestamp: "2026-03-01T11:55:00Z"
  name: web
  namespace: shop
  resourceVersion: "2"
  uid: uid-of-web
spec: {}
status:
  currentHealthy: 0
  desiredHealthy: 0
  disruptionsAllowed: 0
  expectedPods: 0
`,
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "")
			if diff := cmp.Diff(result{Out: want}, s.run(t, "lock", "pdb/web", "-o", format)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBudgetsAreCompleted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"kind and name":    {[]string{"lock", ""}, "pdb/web\n:4\n"},
		"name":             {[]string{"unlock", "pdb", "w"}, "web\n:4\n"},
		"nothing else":     {[]string{"lock", "pdb/web", ""}, ":4\n"},
		"no other context": {[]string{"lock", "--context", "none", "pdb/"}, ":4\n"},
		"ways to try":      {[]string{"lock", "--dry-run", ""}, "none\nserver\nclient\n:4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "")
			got := run(t.Context(), append([]string{"__complete", tt.args[0], "--kubeconfig", s.kubeconfig}, tt.args[1:]...)...)
			if diff := cmp.Diff(tt.want, got.Out); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
