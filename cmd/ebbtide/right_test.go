package main

import (
	"context"
	"errors"
	"flag"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/right"
)

var errNoAnswer = errors.New("the API server is overloaded")

// account has all rights but one.
type account struct {
	without right.Right
	fails   error
	// unserved is an API group that there is not.
	unserved string
	// asked counts the rights that it was asked for.
	asked int
}

// rules tells the rules of an account.
type rules struct{ of *account }

// Create answers with a rule that changes with the rights.
func (r rules) Create(
	_ context.Context, review *authorizationv1.SelfSubjectRulesReview, _ metav1.CreateOptions,
) (*authorizationv1.SelfSubjectRulesReview, error) {
	review.Status.ResourceRules = []authorizationv1.ResourceRule{{Verbs: []string{"all but " + r.of.without.String()}}}
	return review, r.of.fails
}

// ServerGroups returns the groups of the API server.
func (a *account) ServerGroups() (*metav1.APIGroupList, error) {
	list := &metav1.APIGroupList{}
	for _, group := range []string{
		"", "admissionregistration.k8s.io", "apps", "authentication.k8s.io", "authorization.k8s.io", "batch", "cluster.x-k8s.io", "coordination.k8s.io", "discovery.k8s.io",
		"ebbtide.dev", "events.k8s.io", "lifecycle.k8s.io", "machine.openshift.io", "policy", "storage.k8s.io",
	} {
		if group == "" || group != a.unserved {
			list.Groups = append(list.Groups, metav1.APIGroup{Name: group})
		}
	}
	return list, nil
}

// Create answers whether the account has a right.
func (a *account) Create(
	_ context.Context, review *authorizationv1.SelfSubjectAccessReview, _ metav1.CreateOptions,
) (*authorizationv1.SelfSubjectAccessReview, error) {
	a.asked++
	review.Status.Allowed = *review.Spec.ResourceAttributes != *a.without.Attributes()
	return review, a.fails
}

// everything has all parts switched on.
func everything(t *testing.T, args ...string) flags {
	t.Helper()
	all := []string{"--namespace=tides", "--machines", "--eviction-requests=auto", "--bridge=cluster-api,openshift,karpenter"}
	f, err := parseFlags(flag.NewFlagSet("ebbtide", flag.ContinueOnError), append(all, args...))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func rightsOf(t *testing.T, f *flags, a *account) *rights {
	t.Helper()
	needs, err := f.needs()
	if err != nil {
		t.Fatal(err)
	}
	return &rights{
		namespace: f.namespace, needs: needs, asks: a, rules: rules{a}, groups: a, emit: func(...event.Event) {},
		missing: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "missing"}, []string{"part"}),
	}
}

// running are the parts that a manager with these flags runs.
func running(f flags) (parts []right.Part) {
	for part, on := range map[right.Part]bool{
		right.Core: true, right.Machines: f.machines, right.EvictionRequests: f.evictionRequests != evictionrequest.ModeOff,
		right.Rollouts: f.rollouts, right.ClusterAPI: f.bridges.Has(bridge.ClusterAPI), right.OpenShift: f.bridges.Has(bridge.OpenShift),
	} {
		if on {
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	return parts
}

// Each rule of each role is taken away in turn: the parts that have it do not run and say what
// they lack, and all others run. Without one of its core rights a manager is not ready.
func TestAMissingRightStopsNothingButThePartsThatNeedIt(t *testing.T) {
	t.Parallel()
	f := everything(t)
	all := rightsOf(t, &f, &account{})
	if parts := running(f); len(parts) != 6 || len(all.needs) != len(parts) {
		t.Fatalf("the parts %v run, and there are roles of %v", parts, all.needs.Parts())
	}
	taken := map[right.Right]bool{}
	if err := all.needs.Each(func(one right.Right) error {
		taken[one] = true
		assertWithout(t, one, all.needs)
		return nil
	}); err != nil || len(taken) < 100 {
		t.Errorf("%d rights were taken away: %v", len(taken), err)
	}
}

// assertWithout starts a manager that lacks a right of those that its parts need.
func assertWithout(t *testing.T, one right.Right, needs right.Rights) {
	t.Helper()
	f := everything(t)
	r := rightsOf(t, &f, &account{without: one})
	lacking, err := r.review(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.note(lacking)
	f.without(lacking.Optional())
	var want []right.Part
	for part, rights := range needs {
		lacks := slices.Contains(rights, one)
		if words := lacking.Message(part); lacks && words != one.String() || !lacks && words != "" {
			t.Errorf("without %s part %s is said to lack %q", one, part, words)
		}
		if !lacks || part == right.Core {
			want = append(want, part)
		}
	}
	slices.Sort(want)
	if got := running(f); !slices.Equal(got, want) || !f.bridges.Has(bridge.Karpenter) {
		t.Errorf("without %s the parts %v run, want %v", one, got, want)
	}
	fault := ""
	if slices.Contains(needs[right.Core], one) {
		fault = "the manager's account may not " + one.String()
	}
	if err := r.ready(nil); words(err) != fault {
		t.Errorf("without %s it is ready: %v, want %q", one, err, fault)
	}
}

// A part that is switched off lacks nothing.
func TestOnlyEnabledPartsNeedRights(t *testing.T) {
	t.Parallel()
	f := everything(t, "--machines=false", "--eviction-requests=off", "--bridge=karpenter")
	needs, err := f.needs()
	if parts := needs.Parts(); err != nil || !slices.Equal(parts, []right.Part{right.Core, right.Rollouts}) {
		t.Errorf("rights are asked for %v: %v, want core and rollouts", parts, err)
	}
}

// All controllers wait for what the core reads, and for nothing else.
func TestKindsOfOptionalPartsAreReadApart(t *testing.T) {
	t.Parallel()
	f := everything(t)
	needs, err := f.needs()
	if err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[schema.GroupResource]bool{
		{Resource: "nodes"}: true, {Group: "ebbtide.dev", Resource: "nodemaintenances"}: true, {Group: "ebbtide.dev", Resource: "machines"}: false,
		{Group: "ebbtide.dev", Resource: "noderollouts"}: false, {Group: "ebbtide.dev", Resource: "nodebudgets"}: false,
		{Group: "lifecycle.k8s.io", Resource: "evictions"}: false, {Group: "storage.k8s.io", Resource: "volumeattachments"}: false,
	} {
		if got := needs.Lists(right.Core, resource.Group, resource.Resource); got != want {
			t.Errorf("the core reads %s: %t, want %t", resource, got, want)
		}
	}
}

// Where nothing serves the API of a part nobody is told that it lacks rights for it.
func TestAPartWithoutItsAPINeedsNoRights(t *testing.T) {
	t.Parallel()
	f := everything(t)
	a := &account{unserved: "lifecycle.k8s.io"}
	r := rightsOf(t, &f, a)
	a.without = r.needs[right.EvictionRequests][len(r.needs[right.EvictionRequests])-1]
	if lacking, err := r.review(t.Context()); err != nil || len(lacking) > 0 {
		t.Errorf("it lacks %v: %v", lacking, err)
	}
	a.unserved = ""
	if lacking, err := r.review(t.Context()); err != nil || !slices.Equal(lacking.Parts(), []right.Part{right.EvictionRequests}) {
		t.Errorf("where it is served it lacks %v: %v", lacking, err)
	}
}

// Where accounts may not even ask, nothing is known, and that is what is missing.
func TestMissingRightToReviewIsReported(t *testing.T) {
	t.Parallel()
	f := everything(t)
	r := rightsOf(t, &f, &account{fails: apierrors.NewForbidden(schema.GroupResource{Resource: "selfsubjectaccessreviews"}, "", nil)})
	lacking, err := r.review(t.Context())
	const want = "create selfsubjectaccessreviews.authorization.k8s.io"
	if err != nil || len(lacking) != 6 || lacking.Message(right.Core) != want || lacking.Message(right.Machines) != want {
		t.Errorf("it lacks %v: %v, want %s", lacking, err, want)
	}
}

// What is granted or taken away while the manager runs has it begin anew with other parts. An
// answer that is missing changes nothing, and the core does not stop for rights that vanish: it
// is not ready until they are back.
func TestRightsThatChangeAreNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := everything(t)
		a := &account{}
		r := rightsOf(t, &f, a)
		r.note(nil)
		var told []string
		ctx, cancel := context.WithTimeout(t.Context(), 2*reviewEvery)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			ended <- r.watch(ctx, func(events ...event.Event) {
				for _, e := range events {
					told = append(told, e.Message)
				}
			})
		}()
		next := func() {
			time.Sleep(lookEvery)
			synctest.Wait()
		}
		next()
		reviewed := a.asked
		next()
		if a.asked != reviewed {
			t.Errorf("%d rights were asked for though no rule has changed", a.asked-reviewed)
		}
		a.without = right.Right{Verb: "create", Resource: "pods", Subresource: "eviction"}
		next()
		const want = "Part core of the manager does not run: its account may not create pods --subresource=eviction. It starts when the rights are granted."
		if err := r.ready(nil); err == nil || !slices.Equal(told, []string{want}) {
			t.Errorf("without %s it is ready: %v, and tells %q", a.without, err, told)
		}
		a.without, a.fails = r.needs[right.Machines][len(r.needs[right.Machines])-1], errNoAnswer
		next()
		select {
		case err := <-ended:
			t.Fatalf("it has ended without an answer: %v", err)
		default:
		}
		a.fails = nil
		next()
		if err := <-ended; !errors.Is(err, errRightsChanged) || r.ready(nil) != nil {
			t.Errorf("without %s it ends with %v, ready: %v", a.without, err, r.ready(nil))
		}
	})
}
