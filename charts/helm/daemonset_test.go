package helm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Who answers in the place of a manager may change what it is asked about, so that the API
// server shows it no pod that cannot be held back, nor any that an administrator leaves out.
func TestManagersAreAskedAboutFewPodsOfDaemonSets(t *testing.T) {
	t.Parallel()
	type selectors struct{ Namespaces, Pods any }
	retained := map[string]any{"matchExpressions": []any{
		map[string]any{"key": "cluster.x-k8s.io/drain", "operator": "NotIn", "values": []any{"skip"}},
	}}
	for values, want := range map[string][]selectors{
		"{}":                             {{nil, retained}},
		"webhook: {daemonSetPods: null}": {{nil, retained}}, // as after an upgrade with --reuse-values
		"webhook: {daemonSetPods: {enabled: false}}":                                    nil,
		"webhook: {daemonSetPods: {namespaceSelector: {matchLabels: {team: logging}}}}": {{map[string]any{"matchLabels": map[string]any{"team": "logging"}}, retained}},
	} {
		var got []selectors
		for _, o := range render(t, "tides", read(t, values)) {
			webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
			for _, one := range webhooks {
				if webhook := one.(map[string]any); webhook["name"] == "daemonset-pods.ebbtide.dev" {
					got = append(got, selectors{webhook["namespaceSelector"], webhook["objectSelector"]})
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with %s (-want +got):\n%s", values, diff)
		}
	}
}
