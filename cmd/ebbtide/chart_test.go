package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/charts/helm"
)

// A flag that the chart has and the manager has not, or a port that is not the one that it
// listens on, would be noticed on clusters only.
func TestTheChartStartsTheManagerAsItCanBeStarted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ values, want string }{
		"defaults": {want: "namespace tides, machines false, callers of  [], shutdowns to DaemonSet and 30% [], bridges [], EvictionRequests off, Jobs in []"},
		"everything": {
			values: `
machines: {enabled: true}
bridges: [karpenter, cluster-api]
rollouts: {jobNamespaces: [ops, patching], prometheusURL: "https://prometheus:9090"}
evictionRequests: {enabled: true}
certManager: {enabled: true}
shutdowns: {depth: Static, deleteBefore: 45s, priorities: [0, 100000, 1000000000]}
webhook: {port: 10250, clientCA: {configMap: callers, names: [a, b]}}
extraArgs: [--surge=auto, --namespace=elsewhere]`,
			want: "namespace elsewhere, machines true, callers of /etc/ebbtide/webhook-client/ca.crt [a b], shutdowns to Static and 45s [0 100000 1000000000], bridges [cluster-api karpenter], EvictionRequests auto, Jobs in [ops patching]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d appsv1.Deployment
			found(t, test.values, "Deployment ebbtide", &d)
			container := d.Spec.Template.Spec.Containers[0]
			set := flag.NewFlagSet("ebbtide", flag.ContinueOnError)
			set.SetOutput(io.Discard)
			f, err := parseFlags(set, container.Args)
			got := fmt.Sprintf("namespace %s, machines %t, callers of %s %v, shutdowns to %s and %s %v, bridges %v, EvictionRequests %s, Jobs in %v",
				f.namespace, f.machines, f.webhookClient.CAFile, f.webhookClient.Names, f.shutdowns.Depth, f.shutdowns.DeleteBefore, f.shutdowns.Priorities, f.bridges, f.evictionRequests, f.jobNamespaces)
			if got != test.want || err != nil || (f.prometheus != nil) != (name == "everything") || !f.leaderElect || !f.webhooks || set.NArg() > 0 {
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

// The hooks of the chart say to their verbs what their values say.
func TestTheChartRunsVerbsThatThereAre(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere")
	for values, want := range map[string]string{
		"{}": "check of tides for 1m0s; certificates of tides and tides; uninstall of tides and account ebbtide for 2m0s, Refuse",
		"{serviceAccount: {name: moon}, uninstall: {onMaintenances: Complete, timeoutSeconds: 600}}": "check of tides for 1m0s; certificates of tides and tides; uninstall of tides and account moon for 10m0s, Complete",
	} {
		var pod corev1.Pod
		var before, after, job batchv1.Job
		found(t, values, "Pod ebbtide-check", &pod)
		found(t, values, "Job ebbtide-certificate-before", &before)
		found(t, values, "Job ebbtide-certificate-after", &after)
		found(t, values, "Job ebbtide-uninstall", &job)
		check, uninstall := told(t, pod.Spec.Containers[0].Args), told(t, job.Spec.Template.Spec.Containers[0].Args)
		prepare, finish := told(t, before.Spec.Template.Spec.Containers[0].Args), told(t, after.Spec.Template.Spec.Containers[0].Args)
		mode := job.Spec.Template.Spec.Containers[0].Args[3]
		got := fmt.Sprintf("check of %s for %s; certificates of %s and %s; uninstall of %s and account %s for %s, %s",
			check("namespace"), check("timeout"), prepare("namespace"), finish("namespace"),
			uninstall("namespace"), uninstall("service-account"), uninstall("timeout"), strings.TrimPrefix(mode, "--on-maintenances="))
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// told runs a verb where there is no cluster, and returns what its flags have become.
func told(t *testing.T, args []string) func(flag string) string {
	t.Helper()
	set := flag.NewFlagSet(args[0], flag.ContinueOnError)
	err := verbs[args[0]](t.Context(), set, args[1:], io.Discard)
	if err == nil || !strings.HasPrefix(err.Error(), "load the kubeconfig: ") {
		t.Fatalf("%v: %v, want that there is no cluster", args, err)
	}
	return func(flag string) string { return set.Lookup(flag).Value.String() }
}

// found reads the object of this kind and name that the chart has.
func found(t *testing.T, values, name string, into any) {
	t.Helper()
	var parsed map[string]any
	if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
		t.Fatal(err)
	}
	rendered, err := helm.Render(t.Context(), helm.Release{Namespace: "tides", Values: parsed})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := charts.Objects(rendered)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind()+" "+o.GetName() == name })
	if at < 0 {
		t.Fatalf("the chart has no %s", name)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[at].Object, into, true); err != nil {
		t.Fatal(err)
	}
}
