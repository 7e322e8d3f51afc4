package helm_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ebbtide.dev/ebbtide/internal/certificate"
)

// Prometheus verifies managers by the certificate that the API server knows, whoever makes it.
// test/cluster reads metrics in the same way.
func TestPrometheusVerifiesManagers(t *testing.T) {
	t.Parallel()
	const monitored = "serviceMonitor: {enabled: true}\n"
	inSecret := map[string]any{"secret": map[string]any{"name": certificate.SecretName, "key": "ca.crt"}}
	for name, test := range map[string]struct {
		values string
		ca     map[string]any
		also   func(*testing.T, []*unstructured.Unstructured)
	}{
		"a hook makes it":       {monitored, inSecret, nil},
		"cert-manager makes it": {monitored + "certManager: {enabled: true}", inSecret, isNamed},
		"you make it":           {monitored + ownCertificate, map[string]any{"configMap": map[string]any{"name": "ebbtide-webhook-ca", "key": "ca.crt"}}, isTrusted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := render(t, "tides", read(t, test.values))
			endpoints, _, _ := unstructured.NestedSlice(find(t, objects, "ServiceMonitor ebbtide"), "spec", "endpoints")
			want := map[string]any{"serverName": certificate.DNSName("tides"), "ca": test.ca}
			if diff := cmp.Diff(want, endpoints[0].(map[string]any)["tlsConfig"]); diff != "" {
				t.Errorf("TLS (-want +got):\n%s", diff)
			}
			if test.also != nil {
				test.also(t, objects)
			}
		})
	}
}

// isNamed wants the certificate of cert-manager to have the name that is verified.
func isNamed(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	names, _, _ := unstructured.NestedStringSlice(find(t, objects, "Certificate ebbtide-webhook"), "spec", "dnsNames")
	if diff := cmp.Diff([]string{certificate.DNSName("tides")}, names); diff != "" {
		t.Errorf("names in the certificate (-want +got):\n%s", diff)
	}
}

// isTrusted wants the authority of the values to be what is trusted.
func isTrusted(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	authority, _, _ := unstructured.NestedString(find(t, objects, "ConfigMap ebbtide-webhook-ca"), "data", "ca.crt")
	if want := "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n"; authority != want {
		t.Errorf("the authority is %q, want %q", authority, want)
	}
}

// find returns the object of a kind and name.
func find(t *testing.T, objects []*unstructured.Unstructured, name string) map[string]any {
	t.Helper()
	n := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind()+" "+o.GetName() == name })
	if n < 0 {
		t.Fatalf("there is no %s", name)
	}
	return objects[n].Object
}
