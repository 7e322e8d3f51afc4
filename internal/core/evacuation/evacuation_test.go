package evacuation_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/test/difference"
)

func TestName(t *testing.T) {
	tests := map[string]struct{ pod, want string }{
		"a short name":                 {"web-0", "0f1e-web-0"},
		"150 characters are kept":      {strings.Repeat("a", 150), "0f1e-" + strings.Repeat("a", 150)},
		"more are cut":                 {strings.Repeat("a", 253), "0f1e-" + strings.Repeat("a", 150)},
		"a cut never ends in a dash":   {strings.Repeat("a", 149) + "-b", "0f1e-" + strings.Repeat("a", 149)},
		"nor in a dot after a dash":    {strings.Repeat("a", 148) + "-.b", "0f1e-" + strings.Repeat("a", 148)},
		"dashes and dots inside it do": {"a-b.c", "0f1e-a-b.c"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: tc.pod, UID: "0f1e"}}
			if got := evacuation.Name(pod); got != tc.want {
				t.Errorf("Name() = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestNew(t *testing.T) {
	pod := webPod()
	pod.Labels[v1alpha1.CompleteLabel] = "true" // A pod cannot mark its Evacuation as complete.
	evacuators := []v1alpha1.Evacuator{
		{EvacuatorClass: "mover.example.com", Priority: 20},
		{EvacuatorClass: "backup.example.com", Priority: 10},
	}
	got := evacuation.New(pod, v1alpha1.NodeMaintenanceInstigator, evacuators)
	deadline := int32(1800)
	want := &v1alpha1.Evacuation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "0f1e-web-0",
			Labels:      map[string]string{"app": "web"},
			Annotations: map[string]string{v1alpha1.NodeAnnotation: "node-one"},
			Finalizers:  []string{v1alpha1.NodeMaintenanceInstigator},
		},
		Spec: v1alpha1.EvacuationSpec{
			PodRef:                  v1alpha1.LocalPodReference{Name: "web-0", UID: "0f1e"},
			ProgressDeadlineSeconds: &deadline,
			Evacuators:              evacuators,
		},
	}
	difference.None(t, "evacuation", want, got)
	got.Labels["app"] = "changed"
	if pod.Labels["app"] != "web" {
		t.Error("the evacuation shares its labels with the pod")
	}
}
