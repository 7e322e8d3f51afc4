package cli

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

func TestAPlanRefusesWhatNoClusterWouldMakeRight(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"error: name a node, or choose nodes by labels with -l\n":                                                    {},
		"error: name nodes, or choose them by labels with -l, not both\n":                                            {"node-1", "-l", "a=b"},
		"error: --depth must be Default, DaemonSet or Static, not \"all\"\n":                                         {"node-1", "--depth", "all"},
		"error: --on-deadline is about a --deadline, and there is none\n":                                            {"node-1", "--on-deadline", "delete"},
		"error: --on-deadline must be Wait or Delete, not \"evict\"\n":                                               {"node-1", "--deadline", "5m", "--on-deadline", "evict"},
		"error: --in-place is how long a node is away, in whole seconds from 1s to 1h, not 2h0m0s\n":                 {"node-1", "--in-place", "2h"},
		"error: --deadline must be a time such as 2026-03-01T22:00:00Z, or from now, such as 30m, not \"tonight\"\n": {"node-1", "--deadline", "tonight"},
		"error: -o must be json, yaml, wide or name, not \"table\"\n":                                                {"node-1", "-o", "table"},
	} {
		got := run(t.Context(), append([]string{"plan"}, args...)...)
		if got.ErrOut != want || got.Out != "" || got.Code != codeError {
			t.Errorf("plan %v: exit code %d, %q and %q, want %q", args, got.Code, got.Out, got.ErrOut, want)
		}
	}
}

func TestAPlanIsOfWhatADrainWouldAskFor(t *testing.T) {
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
		t.Errorf("it asks for %+v", spec)
	}
}
