package lab

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStuckPodsAreOneForEachNodeAndNeverGo(t *testing.T) {
	load := newLoad("run", Work{Nodes: 3, Apps: 2, Pods: 30, Stuck: true})

	replicas := map[string]int32{}
	for _, app := range load.apps {
		replicas[app.name] = app.replicas
	}
	if diff := cmp.Diff(map[string]int32{"app-1": 30, "app-2": 30, "stuck": 3}, replicas); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
	budget := load.budget(load.apps[2])
	if budget.Name != "stuck" || budget.Spec.MinAvailable.String() != "100%" || budget.Spec.Selector.MatchLabels["app"] != "stuck" {
		t.Errorf("budget %s wants %s of %v, want it to need every stuck pod", budget.Name, budget.Spec.MinAvailable, budget.Spec.Selector)
	}
}

func TestOnlyFreePodsOnTheNodesLeave(t *testing.T) {
	load := newLoad("run", Work{Nodes: 2, Pods: 1, Stuck: true})
	tests := map[string]struct {
		app, node string
		want      bool
	}{
		"a free pod on the last node": {"app-1", "run-node-2", true},
		"a free pod on the refuge":    {"app-1", "run-refuge", false},
		"a stuck pod":                 {"stuck", "run-node-1", false},
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

func TestWorkIsOneDeploymentOnOneNodeByDefault(t *testing.T) {
	load := newLoad("run", Work{Pods: 5})
	if len(load.Nodes) != 1 || len(load.apps) != 1 || load.apps[0].budget != nil {
		t.Errorf("nodes %v, apps %v, want one of each and no budget", load.Nodes, load.apps)
	}
}
