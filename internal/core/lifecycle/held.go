package lifecycle

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
)

// preDrainHooksStep is phase 2 of the deletion-process page. Hooks never time out.
var preDrainHooksStep = step{
	name:  StepPreDrainHook,
	title: func(*planner) string { return "Waiting for pre-drain hooks" },
	look:  (*planner).lookPreDrain,
	began: func(d *v1alpha1.MachineDeletionStatus) **metav1.Time { return &d.PreDrainHookWaitStartTime },
}

// lookPreDrain waits for hooks until the drain is over, also for those added meanwhile.
func (p *planner) lookPreDrain() verdict {
	if hooks := preDrainHooks(p.Machine); len(hooks) > 0 && p.untouchable == "" && !p.isDrained() {
		return verdict{outcome: waits, message: nodedrain.List(hooks, namedHooks)}
	}
	return verdict{}
}

// preTerminateHooksStep is phase 7 of the deletion-process page.
var preTerminateHooksStep = step{
	name:  StepPreTerminateHook,
	title: func(*planner) string { return "Waiting for pre-terminate hooks" },
	look:  (*planner).lookPreTerminate,
	began: func(d *v1alpha1.MachineDeletionStatus) **metav1.Time { return &d.PreTerminateHookWaitStartTime },
}

// lookPreTerminate waits for hooks until the deletion of the infrastructure has begun.
func (p *planner) lookPreTerminate() verdict {
	if hooks := preTerminateHooks(p.Machine); len(hooks) > 0 && !p.terminating() {
		return verdict{outcome: waits, message: nodedrain.List(hooks, namedHooks)}
	}
	return verdict{}
}

func (p *planner) terminating() bool {
	r := p.Infrastructure
	going := r.missing() || r.Object != nil && r.Object.Deleting
	return p.terminated() || p.began().InfrastructureDeletionStartTime != nil && going
}

func (p *planner) terminated() bool {
	return p.began().BootstrapDeletionStartTime != nil || p.began().NodeDeletionStartTime != nil
}
