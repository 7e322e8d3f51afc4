package cluster_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

func TestAFailureShowsWhatMattersOfAnObject(t *testing.T) {
	t.Parallel()
	m := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{
		Name: "kernel", UID: "0815", Finalizers: []string{"ebbtide.dev/drain"},
		Annotations: map[string]string{"ebbtide.dev/note": "mine", "example.com/theirs": "no"},
	}}
	m.Status.Summary = "two pods left"
	m.Status.Conditions = []metav1.Condition{
		{Type: "Drained", Status: "False", Reason: "Evacuating", Message: strings.Repeat("long ", 200)},
		{Type: "Blocked", Status: "True", Reason: "PDBExhausted", Message: "a budget"},
	}
	lines := strings.Split(cluster.Brief(m), "\n")
	for n, words := range []string{
		"NodeMaintenance kernel, finalizers [ebbtide.dev/drain], ebbtide.dev/note=mine",
		"Drained=False (Evacuating): long", "Blocked=True (PDBExhausted): a budget", "two pods left",
	} {
		if n >= len(lines) || !strings.Contains(lines[n], words) || len(lines[n]) > 310 {
			t.Errorf("line %d lacks %q:\n%s", n+1, words, strings.Join(lines, "\n"))
		}
	}
	if all := strings.Join(lines, "\n"); strings.Contains(all, "0815") || strings.Contains(all, "theirs") {
		t.Errorf("shows what does not matter:\n%s", all)
	}
}

func TestAFailureShowsOneLineForEachItem(t *testing.T) {
	t.Parallel()
	pods := []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web-0"}}, {ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}}
	pods[0].Status.Conditions = []corev1.PodCondition{{Type: "Ready", Status: "True"}}
	if got := strings.Split(cluster.Brief(pods), "\n"); len(got) != 2 || !strings.Contains(got[0], "Ready=True") || !strings.Contains(got[1], "web-1") {
		t.Errorf("two pods are shown as %q", got)
	}
	for want, seen := range map[string]any{
		"nothing": nil, "none": []corev1.Pod{}, "broken": errors.New("broken"), "as it is": "as it is", "a\nb": []string{"a", "b"}, "7": 7,
	} {
		if got := cluster.Brief(seen); got != want {
			t.Errorf("%v is shown as %q, want %q", seen, got, want)
		}
	}
	var absent *corev1.Pod
	if got := cluster.Brief(absent); got != "nothing" {
		t.Errorf("no pod is shown as %q", got)
	}
}
