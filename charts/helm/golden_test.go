package helm_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/test/golden"
)

// sets are how people install Ebbtide.
var sets = map[string]struct{ namespace, values string }{
	"defaults":         {"ebbtide-system", ""},
	"rollouts":         {"ebbtide-system", "rollouts: {jobNamespaces: [ops, patching]}"},
	"machines":         {"ebbtide-system", "machines: {enabled: true}\nrollouts: {replace: [karpenter, machines]}"},
	"evictionrequests": {"ebbtide-system", "evictionRequests: {enabled: true}"},
	"bridges": {"ebbtide-system", `
bridges: [cluster-api, openshift, karpenter, cluster-autoscaler]
rollouts: {replace: [cluster-api, openshift]}
serviceMonitor: {enabled: true}
alerts: {enabled: true, labels: {release: prometheus}}`},
	"operators": {"ebbtide-system", `
certManager: {enabled: true}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
alerts: {enabled: true}
networkPolicy: {metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}`},
	"agent": {"ebbtide-system", `
shutdowns: {depth: Static, deleteBefore: 45s}
agent: {enabled: true, manifestDir: /var/lib/kubelet/manifests, shutdown: {delay: 2m}, reboot: {enabled: true}, extraArgs: [--v=1], nodeSelector: {pool: workers}, resources: {limits: {memory: 64Mi}}}`},
	"hosts": {"tides", "agent: {hosts: true}\nserviceMonitor: {enabled: true}\nalerts: {enabled: true}\n" + ownCertificate},
	"hardened": {"ebbtide-system", `
image: {digest: "sha256:0123456789012345678901234567890123456789012345678901234567890123"}
webhook:
  clientCA: {configMap: webhook-callers, names: [kube-apiserver-1, "kube-apiserver 2"]}
  daemonSetPods: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: logging}}}
networkPolicy:
  apiServerCIDRs: [192.0.2.10/32, "2001:db8::/64"]
  egress:
  - {to: [{ipBlock: {cidr: 192.0.2.10/32}}], ports: [{port: 6443}]}
  - {ports: [{protocol: UDP, port: 53}]}
  metricsFrom:
  - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}
    podSelector: {matchLabels: {app: prometheus}}
  - ipBlock: {cidr: 198.51.100.0/24}
topologySpread: DoNotSchedule
resources: {limits: {memory: 1Gi}}`},
	"renamed": {"tides", `
image: {repository: "registry.example.com:5000/mirror/ebb", tag: v1, pullPolicy: Always}
imagePullSecrets: [{name: registry}]
serviceAccount: {name: moon}
replicas: 3
extraArgs: [--surge=auto, --v=1]
uninstall: {onMaintenances: Complete, timeoutSeconds: 600}
certManager: {enabled: true, issuerRef: {kind: ClusterIssuer, name: internal}}
priorityClassName: important
resources: {requests: {cpu: 1, memory: 1Gi}}
nodeSelector: {node-role.kubernetes.io/infra: ""}
tolerations: [{key: infra, operator: Exists, effect: NoSchedule}]
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: gpu, operator: DoesNotExist}]}]}}}
podAnnotations: {example.com/team: tides}
podLabels: {team: tides}`},
}

// What is installed is read before it changes: all that is not in charts/sandbox.yaml as it
// is, which is read, too. The kinds are in files of their own.
func TestWhatIsInstalled(t *testing.T) {
	t.Parallel()
	for name := range sets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden.Equal(t, name+".yaml", excerpt(t, name))
		})
	}
}

// excerpt is what one set of values installs, and what it does not install.
func excerpt(t *testing.T, set string) string {
	t.Helper()
	sandbox, err := charts.Sandbox(true)
	if err != nil {
		t.Fatal(err)
	}
	known, all := map[string]string{}, ""
	for _, o := range sandbox {
		known[o.GetKind()+" "+o.GetName()] = text(t, o)
	}
	for _, o := range render(t, sets[set].namespace, read(t, sets[set].values)) {
		name := o.GetKind() + " " + o.GetName()
		if now := text(t, o); known[name] != now && o.GetKind() != "CustomResourceDefinition" {
			all += "---\n" + now
		}
		delete(known, name)
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		all += fmt.Sprintf("# There is no %s.\n", name)
	}
	return all
}

func text(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
