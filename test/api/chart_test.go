package api

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/charts/helm"
	"ebbtide.dev/ebbtide/test/cluster"
)

// The longest names that a namespace and an account can have.
var (
	longNamespace = strings.Repeat("n", 63)
	longest       = strings.Repeat("a", 253)
)

// installations are values that turn on what the API server can check. It does not know
// cert-manager and the Prometheus operator.
var installations = map[string]string{
	"defaults": "{}",
	"everything": `
replicas: 3
image: {digest: "sha256:0123456789012345678901234567890123456789012345678901234567890123"}
imagePullSecrets: [{name: registry}]
serviceAccount: {name: ` + longest + `}
machines: {enabled: true}
webhook: {clientCA: {configMap: callers, names: [kube-apiserver]}}
extraArgs: [--surge=auto]
agent: {enabled: true}
networkPolicy: {apiServerCIDRs: [192.0.2.10/32], metricsFrom: [{namespaceSelector: {}}], egress: [{to: [{ipBlock: {cidr: 192.0.2.10/32}}], ports: [{port: 6443}]}]}
topologySpread: DoNotSchedule
resources: {requests: {cpu: 1, memory: 64Mi}, limits: {memory: 1Gi}}
nodeSelector: {node-role.kubernetes.io/infra: ""}
tolerations: [{key: infra, operator: Exists, effect: NoSchedule}]
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: gpu, operator: DoesNotExist}]}]}}}
podAnnotations: {example.com/team: tides}
podLabels: {team: tides}`,
}

// Whoever installs the chart does not learn from the API server that it is wrong. Pods get
// into a namespace that lets in nobody who could be more than nobody.
func TestTheAPIServerTakesTheChart(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	create(t, c.Client, `
apiVersion: v1
kind: Namespace
metadata: {name: `+longNamespace+`, labels: {pod-security.kubernetes.io/enforce: restricted}}`)
	// Nothing is created here, so what the chart puts into a namespace of its own needs one.
	create(t, c.Client, `{apiVersion: v1, kind: Namespace, metadata: {name: ebbtide-agents}}`)
	for _, account := range []string{"ebbtide", longest, "ebbtide-certificate", "ebbtide-check", "ebbtide-uninstall"} {
		create(t, c.Client, `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: `+longNamespace+`, name: `+account+`}}`)
	}
	for name, values := range installations {
		t.Run(name, func(t *testing.T) {
			pods := 0
			for _, o := range rendered(t, helm.Release{Namespace: longNamespace, Values: parsed(t, values)}) {
				pods += takes(t, c.Client, o)
			}
			if pods != 5 {
				t.Errorf("%d objects have pods, want the manager and four hooks", pods)
			}
		})
	}
}

// takes asks the API server for an object, and for the pod that it would have, and returns
// the number of pods.
func takes(t *testing.T, c client.Client, o *unstructured.Unstructured) int {
	t.Helper()
	// A field that nobody knows is refused by every server-side apply.
	apply := client.ApplyConfigurationFromUnstructured(o)
	if err := c.Apply(t.Context(), apply, client.DryRunAll, client.ForceOwnership, client.FieldOwner("helm")); err != nil {
		t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
	pod := podOf(t, o)
	if pod == nil {
		return 0
	}
	if err := c.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Errorf("pod of %s %s: %v", o.GetKind(), o.GetName(), err)
	}
	return 1
}

// podOf is a pod that an object would have, or nil.
func podOf(t *testing.T, o *unstructured.Unstructured) *corev1.Pod {
	t.Helper()
	template := o.Object
	switch o.GetKind() {
	case "Deployment", "Job":
		template, _, _ = unstructured.NestedMap(o.Object, "spec", "template")
	case "Pod":
	default:
		return nil
	}
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, pod); err != nil {
		t.Fatal(err)
	}
	pod.Namespace, pod.Name, pod.GenerateName = o.GetNamespace(), "", o.GetName()+"-"
	return pod
}

func rendered(t *testing.T, release helm.Release) []*unstructured.Unstructured {
	t.Helper()
	release.Kinds = cluster.Kinds()
	text, err := helm.Render(t.Context(), release)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := charts.Objects(text)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func parsed(t *testing.T, values string) (parsed map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

// lookup answers what a chart looks up, as Helm does.
type lookup struct{ c *cluster.Cluster }

func (l lookup) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	mapping, err := l.c.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, false, err
	}
	all, err := dynamic.NewForConfig(l.c.Config)
	if err != nil {
		return nil, false, err
	}
	return all.Resource(mapping.Resource), mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// What is in a cluster already is not installed over. That of the same release is upgraded.
func TestAClusterThatTheChartDoesNotGoInto(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	install := func(t *testing.T, want string) {
		t.Helper()
		_, err := helm.Render(t.Context(), helm.Release{Name: "tide", Namespace: "ocean", Cluster: lookup{c}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	install(t, "")
	for name, test := range map[string]struct{ annotations, want string }{
		"the same release": {`{meta.helm.sh/release-name: tide, meta.helm.sh/release-namespace: ocean}`, ""},
		"another release": {
			`{meta.helm.sh/release-name: moon, meta.helm.sh/release-namespace: ocean}`,
			`Ebbtide is in this cluster already, as release "moon" in namespace "ocean". Two managers would fight over the same nodes: upgrade that one, or uninstall it first.`,
		},
		"one of the same name elsewhere": {
			`{meta.helm.sh/release-name: tide, meta.helm.sh/release-namespace: lake}`, `as release "tide" in namespace "lake"`,
		},
		"no release": {`{}`, "Ebbtide is in this cluster already, installed by something else than Helm: ValidatingWebhookConfiguration ebbtide is not of a release."},
	} {
		t.Run(name, func(t *testing.T) {
			create(t, c.Client, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: ebbtide, annotations: `+test.annotations+`}`)
			install(t, test.want)
		})
	}
	for version, want := range map[string]string{
		"0.0.9": "", "0.1.0-rc.1": "", "0.1.0": "",
		"0.1.1":      "CustomResourceDefinition machines.ebbtide.dev is of chart version 0.1.1 and this chart is 0.1.0: what was stored under the newer one could be lost.",
		"0.10.0":     "is of chart version 0.10.0 and this chart is 0.1.0",
		"0.2.0-rc.1": "is of chart version 0.2.0-rc.1 and this chart is 0.1.0",
	} {
		t.Run("kinds of "+version, func(t *testing.T) {
			stamp(t, c, version)
			install(t, want)
		})
	}
}

// stamp says of one of our kinds which chart has installed it, until the test ends.
func stamp(t *testing.T, c *cluster.Cluster, version string) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.FromAPIVersionAndKind("apiextensions.k8s.io/v1", "CustomResourceDefinition"))
	crd.SetName("machines.ebbtide.dev")
	if err := patch(t, c.Client, crd, `metadata: {annotations: {ebbtide.dev/chart-version: "`+version+`"}}`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		without := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"ebbtide.dev/chart-version":null}}}`))
		if err := c.Client.Patch(context.WithoutCancel(t.Context()), crd, without); err != nil {
			t.Error(err)
		}
	})
}
