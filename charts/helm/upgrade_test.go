package helm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// byIdentity are the objects that Helm keeps track of: it deletes those that an upgrade no longer
// has, unless they are kept.
func byIdentity(objects []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	known := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		if !ofHook(o) {
			known[strings.Join([]string{o.GetKind(), o.GetNamespace(), o.GetName()}, " ")] = o
		}
	}
	return known
}

// lacks are those of the first objects that are none of the second, and are not kept.
func lacks(first, second map[string]*unstructured.Unstructured) []string {
	var names []string
	for name, o := range first {
		if second[name] == nil && o.GetAnnotations()["helm.sh/resource-policy"] == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// An upgrade that moves the agents out of the namespace of the managers leaves no old ones, and no
// right of their old account.
func TestAnUpgradeMovesTheAgents(t *testing.T) {
	t.Parallel()
	const oldUser, newUser = `system:serviceaccount:tides:ebbtide-agent\"`, `system:serviceaccount:ebbtide-agents:ebbtide-agent\"`
	before, after := byIdentity(render(t, "tides", read(t, "agent: {enabled: true, namespace: tides}"))), byIdentity(render(t, "tides", read(t, "agent: {enabled: true}")))
	deleted, created := lacks(before, after), lacks(after, before)
	if diff := cmp.Diff([]string{"DaemonSet tides ebbtide-agent", "ServiceAccount tides ebbtide-agent"}, deleted); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"DaemonSet ebbtide-agents ebbtide-agent", "Namespace  ebbtide-agents", "ServiceAccount ebbtide-agents ebbtide-agent"}, created); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	named, bound := 0, 0
	for name, o := range after {
		text := lines(t, o)
		if strings.Contains(text, oldUser) {
			t.Errorf("%s names the old account", name)
		}
		named += strings.Count(text, newUser)
		for _, namespace := range boundAgents(o) {
			bound++
			// A binding cannot be given another role.
			if namespace != "ebbtide-agents" || !cmp.Equal(before[name].Object["roleRef"], o.Object["roleRef"]) {
				t.Errorf("%s is bound to the agents of %s, with role %v", name, namespace, o.Object["roleRef"])
			}
		}
	}
	if named != 2 || bound == 0 {
		t.Errorf("policies name the new account %d times, want 2, and %d bindings do", named, bound)
	}
}

// boundAgents are the namespaces of the accounts of agents that a binding names.
func boundAgents(binding *unstructured.Unstructured) (namespaces []any) {
	subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	for _, one := range subjects {
		if subject := one.(map[string]any); subject["name"] == "ebbtide-agent" {
			namespaces = append(namespaces, subject["namespace"])
		}
	}
	return namespaces
}

// With the values of a chart that knew no namespace of agents they have their own.
func TestAnUpgradeThatReusesValuesMovesTheAgents(t *testing.T) {
	t.Parallel()
	reused, usual := byIdentity(render(t, "tides", read(t, "agent: {enabled: true, namespace: null}"))), byIdentity(render(t, "tides", read(t, "agent: {enabled: true}")))
	for name, o := range usual {
		if reused[name] == nil || lines(t, reused[name]) != lines(t, o) {
			t.Errorf("%s is another one", name)
		}
	}
}
