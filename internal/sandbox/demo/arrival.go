package demo

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// arrival is the story of Machines until they run and pods can be scheduled to
// their nodes. Each phase is said once.
type arrival struct {
	say    say
	want   int
	phases map[string]v1alpha1.MachinePhase
	open   map[string]bool // nodes that take pods
}

func newArrival(want int, say say) *arrival {
	return &arrival{say: say, want: want, phases: map[string]v1alpha1.MachinePhase{}, open: map[string]bool{}}
}

func (a *arrival) allRun() bool {
	running := 0
	for _, phase := range a.phases {
		if phase == v1alpha1.MachineRunning {
			running++
		}
	}
	return running == a.want && len(a.open) == a.want
}

// see adds one change to the story.
func (a *arrival) see(at time.Duration, change watch.Event) error {
	switch object := change.Object.(type) {
	case *v1alpha1.Machine:
		if phase := object.Status.Phase; phase != "" && phase != a.phases[object.Name] {
			a.phases[object.Name] = phase
			a.say(at, object.Name, arrived(object))
		}
	case *corev1.Node:
		if podclass.NodeReady(object) && len(object.Spec.Taints) == 0 && !a.open[object.Name] {
			a.open[object.Name] = true
			a.say(at, object.Name, "Node "+object.Name+" is ready for pods")
		}
	default:
		return fmt.Errorf("a watch ended early: %v", change)
	}
	return nil
}

// arrived describes the phase of a Machine with its node or provider ID.
func arrived(machine *v1alpha1.Machine) string {
	text := string(machine.Status.Phase)
	switch ref := machine.Status.NodeRef; {
	case ref != nil:
		text += ": Node " + ref.Name
	case machine.Spec.ProviderID != "":
		text += ": providerID " + machine.Spec.ProviderID
	}
	return text
}

// lastStatus describes the progress for an error.
func (a *arrival) lastStatus() string {
	return fmt.Sprintf("the phases are %v, %d nodes are ready for pods", a.phases, len(a.open))
}
