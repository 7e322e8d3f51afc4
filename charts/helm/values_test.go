package helm_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/charts/helm"
)

// mistakes are values, and what is said of them.
var mistakes = map[string]string{
	"machine: {enabled: true}":                                     "additional properties 'machine' not allowed",
	"machines: {enable: true}":                                     "additional properties 'enable' not allowed",
	"machines: {enabled: 'false'}":                                 "at '/machines/enabled': got string, want boolean",
	"machines: {enabled: null}":                                    "at '/machines': missing property 'enabled'",
	"serviceAccount: {create: false}":                              "additional properties 'create' not allowed",
	"serviceAccount: {name: 42}":                                   "at '/serviceAccount/name': got number, want string",
	"serviceAccount: {name: ''}":                                   "at '/serviceAccount/name': '' does not match pattern",
	"serviceAccount: {name: Ebbtide}":                              "at '/serviceAccount/name': 'Ebbtide' does not match pattern",
	`serviceAccount: {name: "x\" || true || \"x"}`:                 "at '/serviceAccount/name':",
	"serviceAccount: {name: " + strings.Repeat("a", 254) + "}":     "at '/serviceAccount/name': maxLength: got 254, want 253",
	"networkPolicy: {apiServerCIDRs: 10.0.0.1/32}":                 "at '/networkPolicy/apiServerCIDRs': got string, want array",
	"networkPolicy: {apiServerCIDRs: [10.0.0.1]}":                  "at '/networkPolicy/apiServerCIDRs/0': '10.0.0.1' does not match pattern",
	"networkPolicy: {metricsFrom: [{}]}":                           "at '/networkPolicy/metricsFrom/0': minProperties: got 0, want 1",
	"networkPolicy: {metricsFrom: [{podSelector: {app: a}}]}":      "additional properties 'app' not allowed",
	"networkPolicy: {metricsFrom: [{podSelectors: {}}]}":           "additional properties 'podSelectors' not allowed",
	"networkPolicy: {metricsFrom: {namespaceSelector: {}}}":        "at '/networkPolicy/metricsFrom': got object, want array",
	"networkPolicy: true":                                          "at '/networkPolicy': got boolean, want object",
	"networkPolicy: {metricsFrom: [{ipBlock: {cidrs: []}}]}":       "additional properties 'cidrs' not allowed",
	"evictionRequests: {enabled: auto}":                            "at '/evictionRequests/enabled': got string, want boolean",
	"evictionRequests: {mode: auto}":                               "additional properties 'mode' not allowed",
	"bridges: cluster-api":                                         "at '/bridges': got string, want array",
	"bridges: [capi]":                                              "at '/bridges/0': value must be one of 'cluster-api', 'openshift', 'karpenter', 'cluster-autoscaler'",
	"bridges: [karpenter, karpenter]":                              "at '/bridges': items at 0 and 1 are equal",
	"agent: true":                                                  "at '/agent': got boolean, want object",
	"agent: {namespace: My_Agents}":                                "at '/agent/namespace': 'My_Agents' does not match pattern",
	"agent: {hosts: [node-7]}":                                     "at '/agent/hosts': got array, want boolean",
	"agent: {manifestDir: manifests}":                              "at '/agent/manifestDir': 'manifests' does not match pattern",
	"agent: {manifestDir: /}":                                      "at '/agent/manifestDir': '/' does not match pattern",
	"agent: {manifestDir: /etc/../../}":                            "at '/agent/manifestDir': '/etc/../../' does not match pattern",
	"agent: {manifestDir: '/a\nb: c'}":                             "at '/agent/manifestDir':",
	"agent: {manifestDir: /var/lib/ebbtide/manifests}":             "at '/agent/manifestDir': 'not' failed",
	"agent: {manifestDir: /run/systemd/manifests}":                 "at '/agent/manifestDir': 'not' failed",
	"agent: {shutdown: true}":                                      "at '/agent/shutdown': got boolean, want object",
	"agent: {shutdown: {mode: Drain}}":                             "at '/agent/shutdown/mode': value must be one of 'drain', 'report', 'off'",
	"agent: {shutdown: {delay: 60}}":                               "at '/agent/shutdown/delay': got number, want string",
	"agent: {shutdown: {delay: 0s}}":                               "at '/agent/shutdown/delay': '0s' does not match pattern",
	"agent: {shutdown: {delay: 25h}}":                              "at '/agent/shutdown/delay': '25h' does not match pattern",
	"agent: {shutdown: {deadline: 1m}}":                            "additional properties 'deadline' not allowed",
	"webhook: {port: 443}":                                         "at '/webhook/port': minimum: got 443, want 1,024",
	"extraArgs: [--webhook-bind-address=:10250]":                   "at '/extraArgs/0': 'not' failed",
	"dnsPolicy: None":                                              "at '/dnsPolicy': value must be one of '', 'ClusterFirst', 'ClusterFirstWithHostNet', 'Default'",
	"agent: {reboot: {enabled: 1}}":                                "at '/agent/reboot/enabled': got number, want boolean",
	"agent: {reboot: {enabled: true, sentinel: /reboot-required}}": "at '/agent/reboot/sentinel': '/reboot-required' does not match pattern",
	"agent: {reboot: {enabled: true, sentinel: run/../etc/x}}":     "at '/agent/reboot/sentinel': 'run/../etc/x' does not match pattern",
	"shutdowns: {depth: all}":                                      "at '/shutdowns/depth': value must be one of 'Default', 'DaemonSet', 'Static'",
	"shutdowns: {priorities: [high]}":                              "at '/shutdowns/priorities/0': got string, want integer",
	"shutdowns: {deleteBefore: 30}":                                "at '/shutdowns/deleteBefore': got number, want string",
	"shutdowns: {deleteBefore: 101%}":                              "at '/shutdowns/deleteBefore': '101%' does not match pattern",
	"shutdowns: {deleteBefore: 0%}":                                "at '/shutdowns/deleteBefore': '0%' does not match pattern",
	"shutdowns: {deleteBefore: 9s}":                                "at '/shutdowns/deleteBefore': '9s' does not match pattern",
	"shutdowns: {deleteBefore: 25h}":                               "at '/shutdowns/deleteBefore': '25h' does not match pattern",
	"shutdowns: {completeAfterBoot: true}":                         "additional properties 'completeAfterBoot' not allowed",
	"shutdowns: true":                                              "at '/shutdowns': got boolean, want object",
	"serviceAccount: {name: ebbtide-agent}":                        "at '/serviceAccount/name': 'not' failed",
	"replicas: '2'":                                                "at '/replicas': got string, want integer",
	"replicas: 2.5":                                                "at '/replicas': got number, want integer",
	"replicas: 0":                                                  "at '/replicas': minimum: got 0, want 1",
	"replicas: 11":                                                 "at '/replicas': maximum: got 11, want 10",
	"replicaCount: 2":                                              "additional properties 'replicaCount' not allowed",
	"image: ghcr.io/ebbtide/ebbtide:0.1.0":                         "at '/image': got string, want object",
	"image: {name: ebbtide}":                                       "additional properties 'name' not allowed",
	"image: {repository: 'ghcr.io/a/b:0.1'}":                       "at '/image/repository': 'ghcr.io/a/b:0.1' does not match pattern",
	"image: {repository: GHCR.io/Ebbtide}":                         "at '/image/repository': 'GHCR.io/Ebbtide' does not match pattern",
	"image: {tag: 0.1}":                                            "at '/image/tag': got number, want string",
	"image: {tag: 'a tag'}":                                        "at '/image/tag': 'a tag' does not match pattern",
	"image: {digest: 'sha256:abc'}":                                "at '/image/digest': 'sha256:abc' does not match pattern",
	"image: {pullPolicy: Sometimes}":                               "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'",
	"imagePullSecrets: [registry]":                                 "at '/imagePullSecrets/0': got string, want object",
	"imagePullSecrets: [{names: registry}]":                        "additional properties 'names' not allowed",
	"extraArgs: --v=1":                                             "at '/extraArgs': got string, want array",
	"extraArgs: [v=1]":                                             "at '/extraArgs/0': 'v=1' does not match pattern",
	"extraArgs: [--v, 1]":                                          "at '/extraArgs/1': got number, want string",
	"extraArgs: ['--surge auto']":                                  "at '/extraArgs/0': '--surge auto' does not match pattern",
	"webhook: {clientCA: {secret: a}}":                             "additional properties 'secret' not allowed",
	"webhook: {clientCA: {configMap: A_b}}":                        "at '/webhook/clientCA/configMap': 'A_b' does not match pattern",
	"webhook: {clientCA: {key: ../token}}":                         "at '/webhook/clientCA/key': '../token' does not match pattern",
	"webhook: {clientCA: {names: ['a,b']}}":                        "at '/webhook/clientCA/names/0': 'a,b' does not match pattern",
	"webhook: {clientCA: {names: caller}}":                         "at '/webhook/clientCA/names': got string, want array",
	"webhook: {daemonSetPods: false}":                              "at '/webhook/daemonSetPods': got boolean, want object",
	"webhook: {daemonSetPods: {namespaceSelector: {app: a}}}":      "additional properties 'app' not allowed",
	"webhook: {caBundle: YQ==}":                                    "at '/webhook/caBundle': 'YQ==' does not match pattern",
	"serviceAccount: {name: ebbtide-certificate}":                  "at '/serviceAccount/name': 'not' failed",
	"certManager: {enabled: 'yes'}":                                "at '/certManager/enabled': got string, want boolean",
	"certManager: true":                                            "at '/certManager': got boolean, want object",
	"certManager: {issuerRef: letsencrypt}":                        "at '/certManager/issuerRef': got string, want object",
	"certManager: {issuerRef: {kinds: a}}":                         "additional properties 'kinds' not allowed",
	"certManager: {issuerRef: {kind: ClusterIssuer}}":              "at '/certManager/issuerRef': properties 'name' required, if 'kind' exists",
	"serviceMonitor: {enabled: 1}":                                 "at '/serviceMonitor/enabled': got number, want boolean",
	"serviceMonitor: {interval: 30}":                               "at '/serviceMonitor/interval': got number, want string",
	"serviceMonitor: {interval: often}":                            "at '/serviceMonitor/interval': 'often' does not match pattern",
	"serviceMonitor: {labels: [a]}":                                "at '/serviceMonitor/labels': got array, want object",
	"alerts: true":                                                 "at '/alerts': got boolean, want object",
	"alerts: {enabled: 'yes'}":                                     "at '/alerts/enabled': got string, want boolean",
	"alerts: {after: 30m}":                                         "additional properties 'after' not allowed",
	"alerts: {labels: [a]}":                                        "at '/alerts/labels': got array, want object",
	"networkPolicy: {egress: [{from: []}]}":                        "additional properties 'from' not allowed",
	"networkPolicy: {egress: [{}]}":                                "at '/networkPolicy/egress/0': minProperties: got 0, want 1",
	"networkPolicy: {egress: [{to: []}]}":                          "at '/networkPolicy/egress/0/to': minItems: got 0, want 1",
	"crds: {install: true}":                                        "additional properties 'install' not allowed",
	"crds: {enabled: 'true'}":                                      "at '/crds/enabled': got string, want boolean",
	"uninstall: {onMaintenances: Delete}":                          "at '/uninstall/onMaintenances': value must be one of 'Complete', 'Refuse'",
	"uninstall: {onMaintenances: true}":                            "at '/uninstall/onMaintenances': value must be one of",
	"uninstall: {timeout: 2m}":                                     "additional properties 'timeout' not allowed",
	"uninstall: {timeoutSeconds: 2m}":                              "at '/uninstall/timeoutSeconds': got string, want integer",
	"uninstall: {timeoutSeconds: 5}":                               "at '/uninstall/timeoutSeconds': minimum: got 5, want 10",
	"serviceAccount: {name: ebbtide-check}":                        "at '/serviceAccount/name': 'not' failed",
	"priorityClassName: 2000000000":                                "at '/priorityClassName': got number, want string",
	"topologySpread: Never":                                        "at '/topologySpread': value must be one of 'ScheduleAnyway', 'DoNotSchedule'",
	"resources: {request: {}}":                                     "additional properties 'request' not allowed",
	"resources: {requests: {memory: lots}}":                        "at '/resources/requests/memory': 'lots' does not match pattern",
	"resources: {requests: {memory: 128MiB}}":                      "at '/resources/requests/memory': '128MiB' does not match pattern",
	"resources: {limits: {mem: 1Gi}}":                              "additional properties 'mem' not allowed",
	"resources: {limits: {cpu: 0}}":                                "at '/resources/limits/cpu': exclusiveMinimum: got 0, want 0",
	"nodeSelector: {a: true}":                                      "at '/nodeSelector/a': got boolean, want string",
	"nodeSelector: [a]":                                            "at '/nodeSelector': got array, want object",
	"tolerations: {key: a}":                                        "at '/tolerations': got object, want array",
	"tolerations: [{keys: a}]":                                     "additional properties 'keys' not allowed",
	"tolerations: [{operator: Is}]":                                "at '/tolerations/0/operator': value must be one of",
	"tolerations: [{tolerationSeconds: 1s}]":                       "at '/tolerations/0/tolerationSeconds': got string, want integer",
	"affinity: {nodes: {}}":                                        "additional properties 'nodes' not allowed",
	"affinity: {nodeAffinity: []}":                                 "at '/affinity/nodeAffinity': got array, want object",
	"podAnnotations: {a: 1}":                                       "at '/podAnnotations/a': got number, want string",
	"podLabels: {app.kubernetes.io/name: a}":                       "at '/podLabels/app.kubernetes.io~1name': 'not' failed",
	"commonLabels: {helm.sh/chart: a}":                             "at '/commonLabels/helm.sh~1chart': 'not' failed",
	"logFormat: xml":                                               "at '/logFormat': value must be one of 'text', 'json'",
	"image: {registry: 'https://registry.example.com'}":            "at '/image/registry': 'https://registry.example.com' does not match pattern",
	"agent: {tolerations: [{keys: a}]}":                            "additional properties 'keys' not allowed",
	"agent: {priorityClassName: Highest}":                          "at '/agent/priorityClassName': 'Highest' does not match pattern",
	"networkPolicy: {apiServerCIDRs: [10.0.0.256/8]}":              "at '/networkPolicy/apiServerCIDRs/0': '10.0.0.256/8' does not match pattern",
	"networkPolicy: {apiServerCIDRs: [10.0.0.0/33]}":               "at '/networkPolicy/apiServerCIDRs/0': '10.0.0.0/33' does not match pattern",
	"networkPolicy: {apiServerCIDRs: ['2001:db8::/129']}":          "at '/networkPolicy/apiServerCIDRs/0': '2001:db8::/129' does not match pattern",
	"networkPolicy: {metricsFrom: [{ipBlock: {cidr: 10.0.0.1}}]}":  "at '/networkPolicy/metricsFrom/0/ipBlock/cidr': '10.0.0.1' does not match pattern",
	"alerts: {enabled: true}":                                      "alerts.enabled needs serviceMonitor.enabled",
	"podLabels: {a: " + strings.Repeat("a", 64) + "}":              "at '/podLabels/a': maxLength: got 64, want 63",
	"priorityClassName: " + strings.Repeat("a", 254):               "at '/priorityClassName': maxLength: got 254, want 253",
	"image: {repository: a/" + strings.Repeat("a", 254) + "}":      "at '/image/repository': maxLength: got 256, want 255",
	"image: {tag: " + strings.Repeat("a", 129) + "}":               "at '/image/tag': 'aaa",
	"webhook: {clientCA: {key: " + strings.Repeat("a", 254) + "}}": "at '/webhook/clientCA/key': maxLength: got 254, want 253",
}

func TestValuesThatAreMistakesAreRefused(t *testing.T) {
	t.Parallel()
	for values, want := range mistakes {
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
