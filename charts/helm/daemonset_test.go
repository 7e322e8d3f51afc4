package helm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ebbtide.dev/ebbtide/charts/helm"
)

// selectors say which pods are held back.
type selectors struct{ By, Namespaces, Pods any }

// holdingBack are the parts of an object that hold back pods of DaemonSets.
func holdingBack(o *unstructured.Unstructured) (all []selectors) {
	if o.GetKind() == "MutatingAdmissionPolicy" && o.GetName() == "ebbtide-daemonset-pods" {
		constraints, _, _ := unstructured.NestedMap(o.Object, "spec", "matchConstraints")
		all = append(all, selectors{"policy", constraints["namespaceSelector"], constraints["objectSelector"]})
	}
	webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	for _, one := range webhooks {
		if webhook := one.(map[string]any); webhook["name"] == "daemonset-pods.ebbtide.dev" {
			all = append(all, selectors{"webhook", webhook["namespaceSelector"], webhook["objectSelector"]})
		}
	}
	return all
}

// Pods of DaemonSets are held back by one of two: a policy, or a webhook where the API server has
// no such policies. Who answers for the webhook may change what it is asked about, so that the API
// server shows it no pod that cannot be held back, nor any that an administrator leaves out.
func TestPodsOfDaemonSetsAreHeldBackByAPolicyOrAWebhook(t *testing.T) {
	t.Parallel()
	retained := map[string]any{"key": "cluster.x-k8s.io/drain", "operator": "NotIn", "values": []any{"skip"}}
	expressions := func(all ...any) map[string]any { return map[string]any{"matchExpressions": all} }
	by := map[string]any{
		"policy":  expressions(map[string]any{"key": "controller-revision-hash", "operator": "Exists"}, retained),
		"webhook": expressions(retained),
	}
	for values, want := range map[string]struct {
		held       bool
		namespaces any
	}{
		"{}":                             {held: true},
		"webhook: {daemonSetPods: null}": {held: true}, // as after an upgrade with --reuse-values
		"webhook: {daemonSetPods: {enabled: false}}":                                    {},
		"webhook: {daemonSetPods: {namespaceSelector: {matchLabels: {team: logging}}}}": {true, map[string]any{"matchLabels": map[string]any{"team": "logging"}}},
	} {
		for which, kinds := range map[string][]string{"policy": nil, "webhook": {}} {
			var got, all []selectors
			if want.held {
				all = append(all, selectors{which, want.namespaces, by[which]})
			}
			for _, o := range renderFor(t, helm.Release{Namespace: "tides", Kinds: kinds, Values: read(t, values)}) {
				got = append(got, holdingBack(o)...)
			}
			if diff := cmp.Diff(all, got); diff != "" {
				t.Errorf("%s with %s (-want +got):\n%s", which, values, diff)
			}
		}
	}
}
