package right

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestARoleIsReadRightByRight(t *testing.T) {
	t.Parallel()
	var words []string
	for _, one := range append(
		Of("", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "pods/eviction"}, Verbs: []string{"list", "create"}}),
		Of("tides", rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"a", "b"}, Verbs: []string{"get"}})...) {
		words = append(words, one.String())
	}
	if diff := cmp.Diff([]string{
		"list pods", "create pods", "list pods --subresource=eviction", "create pods --subresource=eviction",
		"get leases.coordination.k8s.io/a --namespace=tides", "get leases.coordination.k8s.io/b --namespace=tides",
	}, words); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
}

func TestEachRightIsAskedForOnceUntilAnAnswerIsMissing(t *testing.T) {
	t.Parallel()
	pods, nodes := Right{Verb: "list", Resource: "pods"}, Right{Verb: "list", Resource: "nodes"}
	rights := Rights{Machines: {pods, nodes}, Core: {pods}}
	var asked []Right
	broken := errors.New("no answer")
	ask := func(until Right) error {
		asked = nil
		return rights.Each(func(one Right) error {
			asked = append(asked, one)
			if one == until {
				return broken
			}
			return nil
		})
	}
	if err := ask(Right{}); err != nil || !slices.Equal(asked, []Right{pods, nodes}) {
		t.Errorf("asked for %v: %v, want pods and nodes once", asked, err)
	}
	if err := ask(pods); !errors.Is(err, broken) || !slices.Equal(asked, []Right{pods}) {
		t.Errorf("asked for %v: %v, want no more than pods", asked, err)
	}
}

func TestManyMissingRightsAreListed(t *testing.T) {
	t.Parallel()
	rights := Rights{Core: Of("", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"a", "b", "c", "d", "e", "f"}})}
	if got, want := rights.Message(Core), "a pods, b pods, c pods, d pods, e pods, …"; got != want {
		t.Errorf("they are told as %q, want %q", got, want)
	}
	if got := rights.Message(Machines); got != "" {
		t.Errorf("a part without any is told as %q", got)
	}
}

// Whoever may write the Lease puts nothing into the words of a command.
func TestTheLabelHasNoPartsButOurs(t *testing.T) {
	t.Parallel()
	all := Rights{OpenShift: nil, Core: nil, Machines: nil, ClusterAPI: nil, EvictionRequests: nil}
	label := Label(all.Optional())
	if label != "machines.eviction-requests.cluster-api.openshift" || !slices.Equal(ParseLabel(label), all.Optional()) {
		t.Errorf("the label is %q, and reads as %v", label, ParseLabel(label))
	}
	for value, want := range map[string][]Part{"": nil, "x.machines.$(reboot)": {Machines}} {
		if got := ParseLabel(value); !slices.Equal(got, want) {
			t.Errorf("%q reads as %v, want %v", value, got, want)
		}
	}
}
