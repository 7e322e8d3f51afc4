package lab

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOnlyFreePodsOnTheNodesLeave(t *testing.T) {
	load := newLoad("run", Work{Nodes: 2, Pods: 1})
	tests := map[string]struct {
		app, node string
		want      bool
	}{
		"a free pod on the last node": {"app-1", "run-node-2", true},
		"a free pod on the refuge":    {"app-1", "run-refuge", false},
		"a pod that has no node yet":  {"app-1", "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": test.app}},
				Spec:       corev1.PodSpec{NodeName: test.node},
			}
			if got := load.leaves(pod); got != test.want {
				t.Errorf("leaves = %t, want %t", got, test.want)
			}
		})
	}
}
