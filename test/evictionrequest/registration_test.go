package evictionrequest

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// respondersOf are those of a pod.
func respondersOf(pod *corev1.Pod) string {
	var all []string
	for _, one := range pod.Spec.EvictionResponders {
		all = append(all, fmt.Sprintf("%s %d", one.Name, *one.Priority))
	}
	return strings.Join(all, ", ")
}

// The pods of a Deployment that asks for surging name our responder: they are replaced in its
// turn, and not in that of the evictor.
func TestPodsOfADeploymentNameOurResponder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// A policy takes a moment to count.
	w.eventually("the policy to count", func() (bool, any) {
		probe := w.ofReplicaSet("probe", "10000/controller")
		w.must(w.client.Create(w.ctx, probe, client.DryRunAll))
		return respondersOf(probe) != "", respondersOf(probe)
	})
	pod, letNew := w.serve(annotated)
	endpoints := w.cluster.WatchEndpoints(t, client.ObjectKey{Namespace: w.ns, Name: "web"})
	if got := respondersOf(pod); got != surger+" 10000" {
		t.Fatalf("the pod names %q", got)
	}
	w.ask("example.com/upgrade", pod)
	letNew()
	w.awaitGone(pod)
	w.awaitEviction("pod-1-"+pod.Name, gone(pod.Name), surger+" Completed, "+evictor+" Inactive")
	endpoints.AssertAtLeast(t, 1)

	for name, test := range map[string]struct {
		value  string
		change func(*corev1.Pod)
		want   string
	}{
		"one that names others": {"10000/controller", responders("example.com/leader 20000"), "example.com/leader 20000, " + surger + " 10000"},
		"one that names it":     {"10000/controller", responders(surger + " 12000"), surger + " 12000"},
		"one with as many as there may be": {
			"10000/controller", responders(ten()...), strings.Join(ten(), ", "),
		},
		"one that asks for nothing":   {"", unchanged, ""},
		"one that says something odd": {"ten thousand", unchanged, ""},
		"one that says too much":      {strings.Repeat("9", 200_000), unchanged, ""},
		"one of a PodGroup": {"10000/controller", func(pod *corev1.Pod) {
			pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("training")}
		}, ""},
		"one of nobody": {"10000/controller", func(pod *corev1.Pod) { pod.OwnerReferences = nil }, ""},
		"one of a Job": {"10000/controller", func(pod *corev1.Pod) {
			pod.OwnerReferences[0].APIVersion, pod.OwnerReferences[0].Kind = "batch/v1", "Job"
		}, ""},
		"one that a ReplicaSet shares": {"10000/controller", func(pod *corev1.Pod) { pod.OwnerReferences[0].Controller = nil }, ""},
	} {
		pod := w.ofReplicaSet("probe", test.value)
		test.change(pod)
		if err := w.client.Create(w.ctx, pod, client.DryRunAll); err != nil || respondersOf(pod) != test.want {
			t.Errorf("%s: %v, names %q, want %q", name, err, respondersOf(pod), test.want)
		}
	}
}

// Who may make pods and nothing else can have none refused by what is in annotations, and has
// nobody else's pod name anything.
func TestOddAnnotationsBreakNoPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, mallory := w.cluster.User(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "delete"}})
	for n, value := range []string{"", "\x00\n", "10000/" + strings.Repeat("x", 100_000), "-1", "1e4", "'); drop", "世界", "00000000000000010000"} {
		pod := w.ofReplicaSet(fmt.Sprintf("odd-%d", n), "")
		pod.Annotations = map[string]string{surgeAnnotation: value}
		if err := mallory.Create(w.ctx, pod, client.DryRunAll); err != nil {
			t.Errorf("a pod with %.20q is refused: %v", value, err)
		}
	}
}

func unchanged(*corev1.Pod) {}

func responders(all ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for _, one := range all {
			responder := corev1.EvictionResponder{Priority: new(int32(0))}
			_, _ = fmt.Sscan(one, &responder.Name, responder.Priority)
			pod.Spec.EvictionResponders = append(pod.Spec.EvictionResponders, responder)
		}
	}
}

func ten() []string {
	var all []string
	for n := range 10 {
		all = append(all, fmt.Sprintf("example.com/responder-%d %d", n, 2000+n))
	}
	return all
}

// ofReplicaSet is a pod as the controller of a ReplicaSet makes it.
func (w *world) ofReplicaSet(name, value string) *corev1.Pod {
	pod := w.newPod(name)
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ReplicaSet", Name: "web", UID: "5d2f1d6e-3f0a-4c8b-9f0e-0a1b2c3d4e5f", Controller: new(true),
	}}
	if value != "" {
		pod.Annotations = map[string]string{surgeAnnotation: value}
	}
	return pod
}
