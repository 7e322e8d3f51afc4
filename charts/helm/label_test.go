package helm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

const everywhere = `
commonLabels: {team: platform}
logFormat: json
image: {registry: registry.example.com:5000/mirror}
securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: false}
serviceAccount: {annotations: {example.com/owner: platform}}
podLabels: {tier: control}
agent:
  enabled: true
  tolerations: [{key: pool, operator: Exists}]
  affinity: {nodeAffinity: {}}
  podAnnotations: {example.com/scrape: "no"}
  priorityClassName: agents
  updateStrategy: {type: OnDelete}
`

// What belongs to a namespace, and every pod, has the labels that Helm recommends, and those
// that an administrator wants everywhere.
func TestLabelsAreEverywhere(t *testing.T) {
	t.Parallel()
	labelled := 0
	for _, o := range render(t, "tides", read(t, everywhere)) {
		if o.GetNamespace() == "" || slices.Contains([]string{"Role", "RoleBinding", "Job"}, o.GetKind()) || ofHook(o) && o.GetKind() != "Pod" {
			continue
		}
		labelled++
		got := o.GetLabels()
		for key, want := range map[string]string{
			"team": "platform", "app.kubernetes.io/instance": "ebbtide", "app.kubernetes.io/part-of": "ebbtide", "app.kubernetes.io/managed-by": "Helm",
		} {
			if got[key] != want {
				t.Errorf("%s %s: label %s is %q, want %q", o.GetKind(), o.GetName(), key, got[key], want)
			}
		}
	}
	if labelled < 6 {
		t.Errorf("%d objects were looked at", labelled)
	}
}

// Each value gets to where it belongs.
func TestValuesOfPods(t *testing.T) {
	t.Parallel()
	objects := render(t, "tides", read(t, everywhere))
	for _, name := range []string{"Deployment ebbtide", "DaemonSet ebbtide-agent"} {
		container := podOf(t, objects, name).Containers[0]
		if container.Image != "registry.example.com:5000/mirror/ebbtide/ebbtide:0.1.0" || !slices.Contains(container.Args, "--log-format=json") {
			t.Errorf("%s runs %s with %v", name, container.Image, container.Args)
		}
	}
	if context := podOf(t, objects, "Deployment ebbtide").Containers[0].SecurityContext; ptr.Deref(context.ReadOnlyRootFilesystem, true) {
		t.Errorf("managers have the security context %+v", context)
	}
	for _, o := range objects {
		if want := o.GetName() == "ebbtide"; o.GetKind() == "ServiceAccount" && (o.GetAnnotations()["example.com/owner"] == "platform") != want {
			t.Errorf("account %s has annotations %v", o.GetName(), o.GetAnnotations())
		}
	}
}

func TestValuesOfAgents(t *testing.T) {
	t.Parallel()
	objects := render(t, "tides", read(t, everywhere))
	n := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "DaemonSet" })
	var agents appsv1.DaemonSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[n].Object, &agents); err != nil {
		t.Fatal(err)
	}
	template := agents.Spec.Template
	got := []any{agents.Spec.UpdateStrategy.Type, template.Annotations, template.Labels["team"], template.Spec.PriorityClassName, template.Spec.Affinity, template.Spec.Tolerations}
	want := []any{
		appsv1.OnDeleteDaemonSetStrategyType,
		map[string]string{"example.com/scrape": "no"},
		"platform", "agents",
		&corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}},
		[]corev1.Toleration{{Key: "pool", Operator: corev1.TolerationOpExists}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
}

// Agents that reboot their nodes need the flag, the folder of the sentinel and D-Bus.
func TestAgentsThatRebootReachLogindAndTheSentinel(t *testing.T) {
	t.Parallel()
	const dbus, sentinel = "/run/dbus", "/sentinel"
	for values, want := range map[string]struct{ args, mounts []string }{
		"reboot: {enabled: true}": {[]string{"--reboot", "--reboot-sentinel=/sentinel/reboot-required"}, []string{sentinel, dbus}},
		"reboot: {enabled: true, sentinel: /var/run/x/needed}, shutdown: {mode: \"off\"}": {[]string{"--reboot", "--reboot-sentinel=/sentinel/needed"}, []string{sentinel, dbus}},
		"reboot: {enabled: true, sentinel: \"\"}, shutdown: {mode: \"off\"}":              {[]string{"--reboot"}, []string{dbus}},
		"shutdown: {mode: \"off\"}":               {},
		"reboot: null, shutdown: {mode: \"off\"}": {},
	} {
		agent := podOf(t, render(t, "tides", read(t, "agent: {enabled: true, "+values+"}")), "DaemonSet ebbtide-agent")
		var args, mounts []string
		for _, arg := range agent.Containers[0].Args {
			if strings.HasPrefix(arg, "--reboot") {
				args = append(args, arg)
			}
		}
		for _, mount := range agent.Containers[0].VolumeMounts {
			if mount.MountPath == sentinel || mount.MountPath == dbus {
				mounts = append(mounts, mount.MountPath)
			}
		}
		if !slices.Equal(args, want.args) || !slices.Equal(mounts, want.mounts) {
			t.Errorf("%s: agents have %v and mount %v, want %v and %v", values, args, mounts, want.args, want.mounts)
		}
	}
}

// An upgrade with --reuse-values keeps those of a chart that knew none of them.
func TestValuesOfAnOlderChart(t *testing.T) {
	t.Parallel()
	old := render(t, "tides", read(t, "{commonLabels: null, logFormat: null, securityContext: null, image: {registry: null}, agent: {enabled: true, tolerations: null, priorityClassName: null, updateStrategy: null}}"))
	agent := podOf(t, old, "DaemonSet ebbtide-agent")
	if len(agent.Tolerations) != 1 || agent.PriorityClassName != "system-node-critical" || agent.Containers[0].Image != "ghcr.io/ebbtide/ebbtide:0.1.0" {
		t.Errorf("agents are %+v", agent)
	}
	if context := podOf(t, old, "Deployment ebbtide").Containers[0].SecurityContext; !ptr.Deref(context.ReadOnlyRootFilesystem, false) || len(context.Capabilities.Drop) != 1 {
		t.Errorf("managers have the security context %+v", context)
	}
}
