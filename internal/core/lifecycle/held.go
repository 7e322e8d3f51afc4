package lifecycle

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
)

// preDrainHooksStep is phase 2 of the deletion-process page. Hooks never time out.
var preDrainHooksStep = step{
	name:  StepPreDrainHook,
	title: func(*pass) string { return "Waiting for pre-drain hooks" },
	look:  (*pass).lookPreDrain,
	began: func(d *v1alpha1.MachineDeletionStatus) **metav1.Time { return &d.PreDrainHookWaitStartTime },
}

// lookPreDrain waits for the hooks until the drain that they hold up is over: one
// that turns up while pods leave holds the rest of them.
func (p *pass) lookPreDrain() verdict {
	if hooks := preDrainHooks(p.Machine); len(hooks) > 0 && p.untouchable == "" && !p.drained() {
		return verdict{outcome: waits, message: nodedrain.List(hooks, namedHooks)}
	}
	return verdict{}
}

// preTerminateHooksStep is phase 7 of the deletion-process page.
var preTerminateHooksStep = step{
	name:  StepPreTerminateHook,
	title: func(*pass) string { return "Waiting for pre-terminate hooks" },
	look:  (*pass).lookPreTerminate,
	began: func(d *v1alpha1.MachineDeletionStatus) **metav1.Time { return &d.PreTerminateHookWaitStartTime },
}

// lookPreTerminate waits for the hooks, also of a Machine that has no Node or no
// infrastructure, until we have begun to delete what they hold.
func (p *pass) lookPreTerminate() verdict {
	if hooks := preTerminateHooks(p.Machine); len(hooks) > 0 && !p.terminating() {
		return verdict{outcome: waits, message: nodedrain.List(hooks, namedHooks)}
	}
	return verdict{}
}

// terminating tells whether the infrastructure goes or is gone because of us.
func (p *pass) terminating() bool {
	r := p.Infrastructure
	going := r.missing() || r.Object != nil && r.Object.Deleting
	return p.terminated() || p.began().InfrastructureDeletionStartTime != nil && going
}

// terminated tells whether the deletion has come past the infrastructure.
func (p *pass) terminated() bool {
	return p.began().BootstrapDeletionStartTime != nil || p.began().NodeDeletionStartTime != nil
}
