package helm_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/charts/helm"
)

// podOf is the template of the pods of an object.
func podOf(t *testing.T, objects []*unstructured.Unstructured, name string) corev1.PodSpec {
	t.Helper()
	var deployment appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(find(t, objects, name), &deployment); err != nil {
		t.Fatal(err)
	}
	return deployment.Spec.Template.Spec
}

// An API server that does not reach pods reaches the hosts of managers, at a port that firewalls
// let through.
func TestManagersOnTheNetworkOfTheirNodes(t *testing.T) {
	t.Parallel()
	objects := render(t, "tides", read(t, "{hostNetwork: true, webhook: {port: 10250}}"))
	pod := podOf(t, objects, "Deployment ebbtide")
	if !pod.HostNetwork || pod.DNSPolicy != corev1.DNSClusterFirstWithHostNet || pod.Containers[0].Ports[0].ContainerPort != 10250 ||
		!slices.Contains(pod.Containers[0].Args, "--webhook-bind-address=:10250") {
		t.Errorf("the pods of managers are %+v", pod)
	}
	for kind, want := range map[string]string{"Service": `"targetPort": 10250`, "NetworkPolicy": `"port": 10250`} {
		i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
		if text := lines(t, objects[i]); !strings.Contains(text, want) || strings.Contains(text, "9443") {
			t.Errorf("the %s leads elsewhere: %s", kind, text)
		}
	}
	if pod := podOf(t, render(t, "tides", nil), "Deployment ebbtide"); pod.HostNetwork || pod.DNSPolicy != "" {
		t.Errorf("without values managers are on their hosts: %+v", pod)
	}
}

// OpenShift gives each namespace its own user, and refuses others.
func TestTheUserIsThatOfThePlatform(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kinds  []string
		values string
		user   *int64
	}{
		"Kubernetes": {nil, "{}", ptr.To[int64](65532)},
		"OpenShift":  {[]string{"security.openshift.io/v1"}, "{}", nil},
		"left out":   {nil, "podSecurityContext: {runAsUser: null, runAsGroup: null}", nil},
		"another":    {nil, "podSecurityContext: {runAsUser: 1000}", ptr.To[int64](1000)},
	} {
		rendered, err := helm.Render(t.Context(), helm.Release{Namespace: "tides", Kinds: test.kinds, Values: read(t, test.values)})
		if err != nil {
			t.Fatal(err)
		}
		objects, err := charts.Objects(rendered)
		if err != nil {
			t.Fatal(err)
		}
		got := podOf(t, objects, "Deployment ebbtide").SecurityContext
		if !ptr.Equal(got.RunAsUser, test.user) || !*got.RunAsNonRoot || got.SeccompProfile == nil {
			t.Errorf("%s: managers run as %+v, want user %v", name, got, test.user)
		}
	}
}

// Only agents use the hosts of their nodes, in a namespace that lets them: that of the managers
// can stay restricted.
func TestAgentsAloneArePrivileged(t *testing.T) {
	t.Parallel()
	for _, own := range []string{"ebbtide-agents", "ebbtide-system"} {
		privileged := map[string]bool{}
		for _, o := range render(t, "ebbtide-system", map[string]any{"agent": map[string]any{"enabled": true, "namespace": own}}) {
			text := lines(t, o)
			if o.GetKind() == "Namespace" {
				privileged[o.GetName()] = o.GetLabels()["pod-security.kubernetes.io/enforce"] == "privileged"
			}
			usesHost := strings.Contains(text, `"hostPath":`) || strings.Contains(text, `"hostNetwork": true`)
			if isAgent := o.GetKind() == "DaemonSet"; usesHost != isAgent || isAgent && o.GetNamespace() != own {
				t.Errorf("%s %s/%s uses its host: %t", o.GetKind(), o.GetNamespace(), o.GetName(), usesHost)
			}
		}
		if created := privileged[own]; created != (own == "ebbtide-agents") || privileged["ebbtide-system"] {
			t.Errorf("with agents in %s these namespaces are created privileged: %v", own, privileged)
		}
	}
}

// The page of platforms has values that the chart takes.
func TestValuesOfPlatforms(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/install-on.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for row := range strings.Lines(string(page)) {
		cells := strings.Split(row, "|")
		if len(cells) != 5 {
			continue
		}
		values := map[string]any{}
		for _, setting := range regexp.MustCompile("`([a-zA-Z.]+)=([^`]+)`").FindAllStringSubmatch(cells[3], -1) {
			var value any
			if err := yaml.Unmarshal([]byte(setting[2]), &value); err != nil {
				t.Fatal(err)
			}
			if err := unstructured.SetNestedField(values, value, strings.Split(setting[1], ".")...); err != nil {
				t.Fatal(err)
			}
			rows++
		}
		if _, err := helm.Render(t.Context(), helm.Release{Namespace: "tides", Values: values}); err != nil {
			t.Errorf("%s:%v", cells[1], err)
		}
	}
	if rows < 7 {
		t.Errorf("the page has %d values", rows)
	}
}
