package helm_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/charts/helm"
)

func render(t *testing.T, namespace string, values map[string]any) []*unstructured.Unstructured {
	t.Helper()
	return renderFor(t, helm.Release{Namespace: namespace, Values: values})
}

func renderFor(t *testing.T, release helm.Release) []*unstructured.Unstructured {
	t.Helper()
	rendered, err := helm.Render(t.Context(), release)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := charts.Objects(rendered)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// ofHook is true for what is there only while Helm runs a hook.
func ofHook(o *unstructured.Unstructured) bool { return o.GetAnnotations()["helm.sh/hook"] != "" }

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

// An upgrade updates what is in the templates, an uninstall leaves alone what says so.
func TestTheKindsAreUpdatedAndKept(t *testing.T) {
	t.Parallel()
	documents, err := charts.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	var want, got []*unstructured.Unstructured
	for _, document := range documents {
		crd, err := charts.Objects(document)
		if err != nil {
			t.Fatal(err)
		}
		annotations := crd[0].GetAnnotations()
		annotations["helm.sh/resource-policy"], annotations["ebbtide.dev/chart-version"] = "keep", "0.1.0"
		crd[0].SetAnnotations(annotations)
		want = append(want, crd...)
	}
	isKind := func(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" }
	for _, o := range render(t, "tides", nil) {
		if isKind(o) {
			got = append(got, o)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 9 {
		t.Errorf("%d kinds (-want +got):\n%s", len(want), diff)
	}
	if slices.ContainsFunc(render(t, "tides", read(t, "crds: {enabled: false}")), isKind) {
		t.Error("there are kinds that somebody else installs")
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
		case ofHook(o):
		case o.GetKind() == "ServiceAccount":
			expected.SetName("true")
		case o.GetKind() == "Deployment":
			pod := expected.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
			pod["serviceAccountName"] = "true"
		case strings.HasSuffix(o.GetKind(), "RoleBinding"):
			expected.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "namespace": "42", "name": "true"}}
		}
		got, want := lines(t, o), lines(t, expected)
		toldApart += strings.Count(got, `\"system:serviceaccount:42:true\"`)
		want = strings.ReplaceAll(want, `system:serviceaccount:ebbtide-system:ebbtide\"`, `system:serviceaccount:42:true\"`)
		want = strings.ReplaceAll(want, "system:serviceaccount:ebbtide-system:", "system:serviceaccount:42:")
		want = strings.ReplaceAll(want, `"namespace": "ebbtide-system"`, `"namespace": "42"`)
		want = strings.ReplaceAll(want, `"--namespace=ebbtide-system"`, `"--namespace=42"`)
		want = strings.ReplaceAll(want, `"--service-account=ebbtide"`, `"--service-account=true"`)
		if diff := cmp.Diff(want, got); diff != "" || strings.Contains(got, "ebbtide-system") {
			t.Errorf("%s %s (-want +got):\n%s", o.GetKind(), o.GetName(), diff)
		}
	}
	if len(named) != len(usual) || toldApart != 25 {
		t.Errorf("%d objects, want %d; %d policies and webhooks tell the manager from others, want 25", len(named), len(usual), toldApart)
	}
}

// Managers write no webhook configuration and no Secret, and read one by its name, whoever makes
// the certificate. Where somebody else does, no account has the right to.
func TestManagersMayNotWriteCertificates(t *testing.T) {
	t.Parallel()
	for values, hooks := range map[string]int{
		"{}": 7, "certManager: {enabled: true}": 0, ownCertificate: 0,
	} {
		var got []string
		for _, right := range rights(t, values) {
			if strings.Contains(right, " secrets ") || strings.Contains(right, "webhookconfigurations ") {
				got = append(got, right)
			}
		}
		if diff := cmp.Diff([]string{"list secrets [ebbtide-webhook-tls]", "watch secrets [ebbtide-webhook-tls]"}, got); diff != "" {
			t.Errorf("with %s (-want +got):\n%s", values, diff)
		}
		objects := render(t, "tides", read(t, values))
		made := slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return !strings.HasPrefix(o.GetName(), "ebbtide-certificate") })
		if len(made) != hooks {
			t.Errorf("with %s the hooks are %v", values, names(made))
		}
	}
}

// ownCertificate are values of who makes the certificate; its authority only looks like one.
const ownCertificate = `webhook: {caBundle: "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n"}`

// An authority that is a value is what all webhooks trust.
func TestWebhooksTrustTheAuthorityOfTheValues(t *testing.T) {
	t.Parallel()
	for _, o := range render(t, "tides", read(t, ownCertificate+"\nevictionRequests: {enabled: true}")) {
		webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		for _, webhook := range webhooks {
			bundle, _, err := unstructured.NestedString(webhook.(map[string]any), "clientConfig", "caBundle")
			if want := base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n")); bundle != want || err != nil {
				t.Errorf("webhook %v trusts %q, %v", webhook.(map[string]any)["name"], bundle, err)
			}
		}
	}
}

// rights are those of the manager.
func rights(t *testing.T, values string) (all []string) {
	t.Helper()
	for _, o := range render(t, "tides", read(t, values)) {
		var role rbacv1.Role
		if !strings.HasSuffix(o.GetKind(), "Role") || ofHook(o) {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, fmt.Sprint(verb, " ", resource, " ", rule.ResourceNames))
				}
			}
		}
	}
	return all
}

// The rights of a hook are those of nobody while it does not run: they come before it, and
// go after it, whatever came of it. The Service leads to managers only.
func TestHooksHaveRightsWhileTheyRun(t *testing.T) {
	t.Parallel()
	policies := map[string]int{}
	for _, o := range render(t, "tides", read(t, "podLabels: {team: tides}")) {
		if !ofHook(o) {
			continue
		}
		annotations := o.GetAnnotations()
		policy := annotations["helm.sh/hook-delete-policy"]
		policies[annotations["helm.sh/hook"]+" "+annotations["helm.sh/hook-weight"]+" "+policy]++
		if strings.Contains(lines(t, o), `"app.kubernetes.io/name": "ebbtide"`) {
			t.Errorf("%s %s is taken for a manager", o.GetKind(), o.GetName())
		}
	}
	const always = "before-hook-creation,hook-succeeded,hook-failed"
	before, after := []string{"pre-install", "pre-upgrade", "pre-rollback"}, []string{"post-install", "post-upgrade", "post-rollback"}
	want := map[string]int{
		strings.Join(slices.Concat(after, before), ",") + " -1 " + always:   5,
		strings.Join(before, ",") + "  before-hook-creation,hook-succeeded": 1,
		strings.Join(after, ",") + "  before-hook-creation,hook-succeeded":  1,
		"pre-delete -1 " + always: 7, "pre-delete  before-hook-creation,hook-succeeded": 1,
		"test -1 " + always: 5, "test  before-hook-creation,hook-succeeded": 1,
	}
	if diff := cmp.Diff(want, policies); diff != "" {
		t.Errorf("when what is there (-want +got):\n%s", diff)
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

// Where the API server has no such policies the chart goes without.
func TestPodsNameOurResponderWhereThatIsServed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		release helm.Release
		want    bool
	}{
		"served":        {helm.Release{Values: map[string]any{"evictionRequests": map[string]any{"enabled": true}}}, true},
		"not served":    {helm.Release{Kinds: []string{}, Values: map[string]any{"evictionRequests": map[string]any{"enabled": true}}}, false},
		"not asked for": {helm.Release{}, false},
	} {
		test.release.Namespace = "ebbtide-system"
		rendered, err := helm.Render(t.Context(), test.release)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(rendered), "name: ebbtide-responders"); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
