package alert

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/charts/helm"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

// The alerts of the chart fire when something is wrong, not before, and not because of other
// Ebbtides. What they say fits what is installed: without bridges no Machine waits.
func TestLongAlerts(t *testing.T) {
	t.Parallel()
	for stories, bridges := range map[string][]any{"bridges.yaml": {"cluster-api", "openshift"}, "plain.yaml": nil} {
		t.Run(stories, func(t *testing.T) {
			t.Parallel()
			rules := rulesOf(t, bridges)
			if said, err := promtool(t, "check", "rules", "--lint=all", "--lint-fatal", rules); err != nil {
				t.Errorf("Prometheus takes exception to the rules: %v\n%s", err, said)
			}
			told, err := os.ReadFile(filepath.Join("testdata", stories))
			if err != nil {
				t.Fatal(err)
			}
			// They name the file with the rules, which is beside them.
			tests := filepath.Join(filepath.Dir(rules), stories)
			if err := os.WriteFile(tests, told, 0o600); err != nil {
				t.Fatal(err)
			}
			if said, err := promtool(t, "test", "rules", tests); err != nil {
				t.Errorf("%v\n%s", err, said)
			}
		})
	}
}

// rulesOf is a file, in a folder of its own, with the rules of the chart in the namespace
// tides.
func rulesOf(t *testing.T, bridges []any) (path string) {
	t.Helper()
	rendered, err := helm.Render(t.Context(), helm.Release{Namespace: "tides", Values: map[string]any{
		"serviceMonitor": map[string]any{"enabled": true}, "alerts": map[string]any{"enabled": true}, "bridges": bridges,
	}})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := charts.Objects(rendered)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetKind() != "PrometheusRule" {
			continue
		}
		groups, _, err := unstructured.NestedSlice(o.Object, "spec", "groups")
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(map[string]any{"groups": groups})
		if err != nil {
			t.Fatal(err)
		}
		path = filepath.Join(t.TempDir(), "rules.yaml")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Fatal("the chart has no alerts")
	return ""
}

func promtool(t *testing.T, args ...string) (said string, err error) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), prebuilt.Path(t, "promtool"), args...).CombinedOutput()
	return string(output), err
}
