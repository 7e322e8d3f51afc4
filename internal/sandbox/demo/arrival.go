package demo

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// arrival is the story of Machines until they run. Each phase is said once.
type arrival struct {
	say    say
	want   int
	phases map[string]v1alpha1.MachinePhase
}

func newArrival(want int, say say) *arrival {
	return &arrival{say: say, want: want, phases: map[string]v1alpha1.MachinePhase{}}
}

func (a *arrival) allRun() bool {
	running := 0
	for _, phase := range a.phases {
		if phase == v1alpha1.MachineRunning {
			running++
		}
	}
	return running == a.want
}

// see takes notice of one change.
func (a *arrival) see(at time.Duration, change watch.Event) error {
	machine, ok := change.Object.(*v1alpha1.Machine)
	if !ok {
		return fmt.Errorf("a watch ended early: %v", change)
	}
	if phase := machine.Status.Phase; phase != "" && phase != a.phases[machine.Name] {
		a.phases[machine.Name] = phase
		a.say(at, machine.Name, arrived(machine))
	}
	return nil
}

// arrived is the phase of a Machine and what it has by then.
func arrived(machine *v1alpha1.Machine) string {
	text := string(machine.Status.Phase)
	switch ref := machine.Status.NodeRef; {
	case ref != nil:
		text += ": it has Node " + ref.Name
	case machine.Spec.ProviderID != "":
		text += ": it is known as " + machine.Spec.ProviderID
	}
	return text
}

// lastStatus says how far the Machines have come, for an error.
func (a *arrival) lastStatus() string { return fmt.Sprintf("phases %v", a.phases) }
