package cli

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func TestPlanIsOfTheMaintenanceThatADrainCreates(t *testing.T) {
	t.Parallel()
	o := &planOptions{drainSpec: drainSpec{Depth: "DaemonSet", InPlace: time.Minute, Deadline: "30m", OnDeadline: "Delete"}}
	m, err := o.maintenance([]*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}}, noon)
	if err != nil {
		t.Fatal(err)
	}
	spec := &m.Spec
	if spec.Stage != v1alpha1.StageDrain || spec.DrainDepth != v1alpha1.PodTypeDaemonSet || spec.InPlace.ExpectedDowntimeSeconds != 60 ||
		!spec.Deadline.Time.Time.Equal(noon.Add(30*time.Minute)) || spec.Deadline.OnDeadline != v1alpha1.DeadlineDelete ||
		spec.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Values[0] != "node-1" {
		t.Errorf("the maintenance is %+v", spec)
	}
}
