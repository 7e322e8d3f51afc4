package main

import (
	"flag"
	"fmt"
	"io"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/charts/helm"
)

// A flag that the chart has and the manager has not, or a port that is not the one that it
// listens on, would be noticed on clusters only.
func TestTheChartStartsTheManagerAsItCanBeStarted(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	for name, test := range map[string]struct {
		values object
		want   string
	}{
		"defaults": {want: "namespace tides, machines false, rotates true, callers of  []"},
		"everything": {
			values: object{
				"machines": object{"enabled": true}, "certManager": object{"enabled": true},
				"webhook":   object{"clientCA": object{"configMap": "callers", "names": []any{"a", "b"}}},
				"extraArgs": []any{"--surge=auto", "--namespace=elsewhere"},
			},
			want: "namespace elsewhere, machines true, rotates false, callers of /etc/ebbtide/webhook-client/ca.crt [a b]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			container := deployment(t, test.values).Spec.Template.Spec.Containers[0]
			set := flag.NewFlagSet("ebbtide", flag.ContinueOnError)
			set.SetOutput(io.Discard)
			f, err := parseFlags(set, container.Args)
			got := fmt.Sprintf("namespace %s, machines %t, rotates %t, callers of %s %v", f.namespace, f.machines, f.rotate, f.webhookClient.CAFile, f.webhookClient.Names)
			if got != test.want || err != nil || !f.leaderElect || !f.webhooks || set.NArg() > 0 {
				t.Errorf("%s (%v), want %s", got, err, test.want)
			}
			listens := map[string]string{"webhook": f.webhookAddress, "metrics": f.metricsAddress, "probes": f.probeAddress}
			for _, port := range container.Ports {
				if want := fmt.Sprintf(":%d", port.ContainerPort); listens[port.Name] != want {
					t.Errorf("port %s is %s, and the manager listens on %s", port.Name, want, listens[port.Name])
				}
				delete(listens, port.Name)
			}
			if len(listens) > 0 {
				t.Errorf("the chart does not say that the manager listens on %v", listens)
			}
		})
	}
}

// deployment is that of the manager.
func deployment(t *testing.T, values map[string]any) *appsv1.Deployment {
	t.Helper()
	rendered, err := helm.Render(t.Context(), helm.Release{Namespace: "tides", Values: values})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := charts.Objects(rendered)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		d := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, d, true); err != nil {
			t.Fatal(err)
		}
		return d
	}
	t.Fatal("the chart has no Deployment")
	return nil
}
