package helm_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/charts/helm"
)

func render(t *testing.T, namespace string, values map[string]any) []*unstructured.Unstructured {
	t.Helper()
	rendered, err := helm.Render(t.Context(), helm.Release{Namespace: namespace, Values: values})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := charts.Objects(rendered)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// names are the objects as an administrator calls them.
func names(objects []*unstructured.Unstructured) (all []string) {
	for _, o := range objects {
		name := o.GetKind() + " " + o.GetName()
		if o.GetNamespace() != "" {
			name += " in " + o.GetNamespace()
		}
		all = append(all, name)
	}
	return all
}

var always = []string{
	"NetworkPolicy ebbtide in tides",
	"ValidatingAdmissionPolicy ebbtide-bypass-budgets",
	"ValidatingAdmissionPolicyBinding ebbtide-bypass-budgets",
	"ValidatingAdmissionPolicy ebbtide-bypass-budgets-record",
	"ValidatingAdmissionPolicyBinding ebbtide-bypass-budgets-record",
	"ValidatingAdmissionPolicy ebbtide-cordons",
	"ValidatingAdmissionPolicyBinding ebbtide-cordons",
	"ValidatingAdmissionPolicy ebbtide-locks",
	"ValidatingAdmissionPolicyBinding ebbtide-locks",
	"ValidatingAdmissionPolicy ebbtide-drain-locks",
	"ValidatingAdmissionPolicyBinding ebbtide-drain-locks",
	"ValidatingAdmissionPolicy ebbtide-machine-deletion",
	"ValidatingAdmissionPolicyBinding ebbtide-machine-deletion",
	"ValidatingAdmissionPolicy ebbtide-machine-status",
	"ValidatingAdmissionPolicyBinding ebbtide-machine-status",
	"ValidatingAdmissionPolicy ebbtide-cluster-status",
	"ValidatingAdmissionPolicyBinding ebbtide-cluster-status",
	"ValidatingAdmissionPolicy ebbtide-manager-pods",
	"ValidatingAdmissionPolicyBinding ebbtide-manager-pods",
	"ValidatingAdmissionPolicy ebbtide-manager-budgets",
	"ValidatingAdmissionPolicyBinding ebbtide-manager-budgets",
	"ValidatingAdmissionPolicy ebbtide-manager-maintenances",
	"ValidatingAdmissionPolicyBinding ebbtide-manager-maintenances",
	"ValidatingAdmissionPolicy ebbtide-manager-nodes",
	"ValidatingAdmissionPolicyBinding ebbtide-manager-nodes",
	"ValidatingAdmissionPolicy ebbtide-evacuators",
	"ValidatingAdmissionPolicyBinding ebbtide-evacuators",
	"ValidatingAdmissionPolicy ebbtide-surge",
	"ValidatingAdmissionPolicyBinding ebbtide-surge",
	"ClusterRole ebbtide",
	"ClusterRoleBinding ebbtide",
	"Role ebbtide in tides",
	"RoleBinding ebbtide in tides",
	"ServiceAccount ebbtide in tides",
	"Secret ebbtide-webhook-certificate in tides",
	"Service ebbtide-webhook in tides",
	"MutatingWebhookConfiguration ebbtide",
	"ValidatingWebhookConfiguration ebbtide",
}

func TestByDefaultTheManagerHasNoRightsOverMachines(t *testing.T) {
	t.Parallel()
	objects := render(t, "tides", nil)
	if diff := cmp.Diff(always, names(objects)); diff != "" {
		t.Errorf("what is installed (-want +got):\n%s", diff)
	}
	for _, o := range objects {
		var role rbacv1.Role
		if !strings.HasSuffix(o.GetKind(), "Role") {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			deletesNodes := slices.Contains(rule.Resources, "nodes") && slices.Contains(rule.Verbs, "delete")
			if deletesNodes || slices.Contains(rule.Resources, "machines") || slices.Contains(rule.Resources, "*") || slices.Contains(rule.Verbs, "*") {
				t.Errorf("%s %s allows %v", o.GetKind(), o.GetName(), rule)
			}
		}
	}
}

func TestWithMachinesTheManagerHasRolesForThem(t *testing.T) {
	t.Parallel()
	more := map[string]bool{}
	for _, name := range names(render(t, "tides", map[string]any{"machines": map[string]any{"enabled": true}})) {
		more[name] = true
	}
	for _, name := range always {
		if !more[name] {
			t.Errorf("%s is not installed", name)
		}
		delete(more, name)
	}
	want := map[string]bool{
		"ClusterRole ebbtide-machines": true, "ClusterRoleBinding ebbtide-machines": true,
		"ClusterRole ebbtide-providers": true, "ClusterRoleBinding ebbtide-providers": true,
		"ClusterRole ebbtide-kubeconfigs": true,
	}
	if diff := cmp.Diff(want, more); diff != "" {
		t.Errorf("what is installed beside (-want +got):\n%s", diff)
	}
}

// The sandbox has no Helm, and installs what make generate has rendered.
func TestTheSandboxInstallsTheChart(t *testing.T) {
	t.Parallel()
	objects, err := charts.Sandbox()
	if err != nil {
		t.Fatal(err)
	}
	want := render(t, "ebbtide-system", map[string]any{"machines": map[string]any{"enabled": true}})
	if diff := cmp.Diff(want, objects); diff != "" {
		t.Errorf("charts/sandbox.yaml is not what the chart renders, run make generate (-want +got):\n%s", diff)
	}
}

// Names that YAML would take for a number and for a truth are names.
func TestNamespaceAndAccountAreNamedByWhoInstalls(t *testing.T) {
	t.Parallel()
	machines := map[string]any{"enabled": true}
	usual := render(t, "ebbtide-system", map[string]any{"machines": machines})
	named := render(t, "42", map[string]any{"machines": machines, "serviceAccount": map[string]any{"name": "true"}})
	toldApart := 0
	for i, o := range named {
		expected := usual[i]
		switch {
		case o.GetKind() == "ServiceAccount":
			expected.SetName("true")
		case strings.HasSuffix(o.GetKind(), "RoleBinding"):
			expected.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "namespace": "42", "name": "true"}}
		}
		got, want := lines(t, o), lines(t, expected)
		toldApart += strings.Count(got, `\"system:serviceaccount:42:true\"`)
		want = strings.ReplaceAll(want, "system:serviceaccount:ebbtide-system:ebbtide", "system:serviceaccount:42:true")
		want = strings.ReplaceAll(want, `"namespace": "ebbtide-system"`, `"namespace": "42"`)
		if diff := cmp.Diff(want, got); diff != "" || strings.Contains(got, "ebbtide-system") {
			t.Errorf("%s %s (-want +got):\n%s", o.GetKind(), o.GetName(), diff)
		}
	}
	if len(named) != len(usual) || toldApart != 19 {
		t.Errorf("%d objects, want %d; %d policies and webhooks tell the manager from others, want 19", len(named), len(usual), toldApart)
	}
}

func lines(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	text, err := json.MarshalIndent(o.Object, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func text(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestValuesThatAreMistakesAreRefused(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"machine: {enabled: true}":                                 "additional properties 'machine' not allowed",
		"machines: {enable: true}":                                 "additional properties 'enable' not allowed",
		"machines: {enabled: 'false'}":                             "at '/machines/enabled': got string, want boolean",
		"machines: {enabled: null}":                                "at '/machines': missing property 'enabled'",
		"serviceAccount: {create: false}":                          "additional properties 'create' not allowed",
		"serviceAccount: {name: 42}":                               "at '/serviceAccount/name': got number, want string",
		"serviceAccount: {name: ''}":                               "at '/serviceAccount/name': '' does not match pattern",
		"serviceAccount: {name: Ebbtide}":                          "at '/serviceAccount/name': 'Ebbtide' does not match pattern",
		`serviceAccount: {name: "x\" || true || \"x"}`:             "at '/serviceAccount/name':",
		"serviceAccount: {name: " + strings.Repeat("a", 254) + "}": "at '/serviceAccount/name': maxLength: got 254, want 253",
		"networkPolicy: {apiServerCIDRs: 10.0.0.1/32}":             "at '/networkPolicy/apiServerCIDRs': got string, want array",
		"networkPolicy: {apiServerCIDRs: [10.0.0.1]}":              "at '/networkPolicy/apiServerCIDRs/0': '10.0.0.1' does not match pattern",
		"networkPolicy: {metricsFrom: [{}]}":                       "at '/networkPolicy/metricsFrom/0': minProperties: got 0, want 1",
		"networkPolicy: {metricsFrom: [{podSelector: {app: a}}]}":  "additional properties 'app' not allowed",
		"networkPolicy: {metricsFrom: [{podSelectors: {}}]}":       "additional properties 'podSelectors' not allowed",
		"networkPolicy: {metricsFrom: {namespaceSelector: {}}}":    "at '/networkPolicy/metricsFrom': got object, want array",
		"networkPolicy: true":                                      "at '/networkPolicy': got boolean, want object",
		"networkPolicy: {metricsFrom: [{ipBlock: {cidrs: []}}]}":   "additional properties 'cidrs' not allowed",
	} {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			rendered, err := helm.Render(t.Context(), helm.Release{Namespace: "tides", Values: read(t, values)})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%d bytes and error %v, want one that says %q", len(rendered), err, want)
			}
		})
	}
	// A chart of charts gives every part its own.
	render(t, "tides", map[string]any{"global": map[string]any{"registry": "registry.example.com"}})
}

func read(t *testing.T, values string) (parsed map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestThePortsOfTheManagerAreClosed(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{
		"default": "{}",
		"narrow": `networkPolicy:
  apiServerCIDRs: [192.0.2.10/32, "2001:db8::/64"]
  metricsFrom:
  - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}
    podSelector: {matchLabels: {app: prometheus}}
  - ipBlock: {cidr: 198.51.100.0/24}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden, err := os.ReadFile("testdata/networkpolicy-" + name + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(golden), networkPolicies(t, values)); diff != "" {
				t.Errorf("policy (-want +got):\n%s", diff)
			}
		})
	}
	if got := networkPolicies(t, "networkPolicy: {enabled: false}"); got != "" {
		t.Errorf("there is a policy that nobody wanted:\n%s", got)
	}
}

func networkPolicies(t *testing.T, values string) (all string) {
	t.Helper()
	for _, o := range render(t, "tides", read(t, values)) {
		if o.GetKind() == "NetworkPolicy" {
			all += text(t, o)
		}
	}
	return all
}
