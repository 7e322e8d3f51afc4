package preflight

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/nodebudget"
)

const (
	// hypothetical is a valid name of no object.
	hypothetical = "(this one)"
	// maxWaves limits the simulated waves: 64 entries of a plan, with a few orders each.
	maxWaves = 1000
	maxWakes = 8
)

// run is one simulated drain. Pods leave in its order.
type run struct {
	*Snapshot
	// world holds the simulated cluster. Its objects are copies where they have changed.
	world maintenance.Snapshot
	name  string
	order order
	// nodes and maintenances are places in the world, by name.
	nodes, maintenances map[string]int
	placer              Placer
	owners              *owners
	budgets             simulatedBudgets
	sets                map[ownerKey]*statefulSet
	// pods holds the simulated pods, by the object that was read and by its stand-in.
	pods map[*corev1.Pod]*pod
	// touched are the nodes whose pods have changed since the world was last put in order.
	touched map[string]bool
	// silent are, by name, nodes that confirm the end of no pod.
	silent map[string]bool
	// opened are budgets that may let go of a pod that waits.
	opened   []*simulatedBudget
	unplaced []*replacement
	wave     int
	// moved is true if anything has changed since the last decision.
	moved bool
	// before and after are the verdicts on the nodes at the beginning and at the end.
	before, after []maintenance.NodeVerdict
	// invalid is the reason why the maintenance is not understood; empty if it is.
	invalid string
}

type order func(a, b *corev1.Pod) int

// state names the progress of a pod.
type state int

const (
	// held is requested and does not leave.
	held state = iota + 1
	// ending is one that terminates and never ends.
	ending
	gone
)

type pod struct {
	object, shown *corev1.Pod
	evacuation    *v1alpha1.Evacuation
	state         state
	wave          int
	action        Action
	why           string
	budgets       []*simulatedBudget
	refusal       evacuation.Outcome
	// chance is true if a budget has let it go that others of its pods would have needed.
	chance bool
	// replaced is true if its replacement is made already; replacement is nil if there is none.
	replaced    bool
	replacement *replacement
}

// newRun begins with the cluster as it is, and the maintenance in stage Drain.
func newRun(s *Snapshot, o *owners, by order) *run {
	r := &run{
		Snapshot: s, world: s.World, order: by, owners: o, name: cmp.Or(s.Maintenance.Name, hypothetical), placer: roomy{},
		pods: map[*corev1.Pod]*pod{}, touched: map[string]bool{}, silent: map[string]bool{},
	}
	if s.Place != nil {
		r.placer = s.Place()
	}
	// A NodeBudget delays a drain, and autoscalers make no difference to pods. Who has responders is asked by an
	// Evacuation here, whatever it was or will be asked by: its forecast reports them.
	r.world.NodeBudgets, r.world.Protect, r.world.Requester = nodebudget.Set{}, nil, evictionrequest.Availability{}
	r.world.Maintenances = slices.DeleteFunc(slices.Clone(s.World.Maintenances), func(m *v1alpha1.NodeMaintenance) bool { return m.Name == r.name })
	asked := *s.Maintenance
	asked.Name, asked.Spec.Stage = r.name, v1alpha1.StageDrain
	if asked.CreationTimestamp.IsZero() {
		asked.CreationTimestamp.Time = s.World.Now
	}
	r.world.Maintenances = append(r.world.Maintenances, &asked)
	r.maintenances = make(map[string]int, len(r.world.Maintenances))
	for i, m := range r.world.Maintenances {
		r.maintenances[m.Name] = i
	}
	r.world.Nodes = slices.Clone(s.World.Nodes)
	r.nodes = make(map[string]int, len(s.World.Nodes))
	for i, node := range s.World.Nodes {
		r.nodes[node.Name] = i
	}
	r.budgets = newSimulatedBudgets(s.World.Budgets)
	r.world.Budgets = r.budgets.all()
	r.copyPods()
	r.loseAgents()
	return r
}

// copyPods copies the list of each node and drops pods without a node.
func (r *run) copyPods() {
	r.world.Pods = make(map[string][]maintenance.Pod, len(r.Snapshot.World.Pods))
	for node, pods := range r.Snapshot.World.Pods {
		if node != "" {
			own := slices.SortedFunc(slices.Values(pods), func(a, b maintenance.Pod) int { return byName(a.Object, b.Object) })
			for i := range own {
				own[i].Request, own[i].Eviction = nil, nil
			}
			r.world.Pods[node] = own
		}
	}
}

// loseAgents has silent agents be silent for long: they will not take anything down.
func (r *run) loseAgents() {
	agents := make(map[string]maintenance.Agent, len(r.world.Runners.Agents))
	for node, agent := range r.world.Runners.Agents {
		if !agent.SilentSince.IsZero() {
			agent.SilentSince = earlier(agent.SilentSince, r.world.Now.Add(-maintenance.AgentPatience))
		}
		agents[node] = agent
	}
	r.world.Runners.Agents = agents
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// simulate lets happen what would happen until nothing moves any more.
func simulate(s *Snapshot, o *owners, by order) *run {
	r := newRun(s, o, by)
	_, r.before = maintenance.Inspect(r.world, r.name)
	r.placeUnscheduled()
	r.endTerminating()
	wakes := 0
	for r.wave < maxWaves {
		wake := r.step()
		if r.moved {
			continue
		}
		if wake == 0 || wakes == maxWakes || !r.deletes() {
			break
		}
		wakes++
		r.world.Now = r.world.Now.Add(wake)
	}
	r.conclude()
	return r
}

// step decides and acts once. It returns the delay until time changes the decision.
func (r *run) step() time.Duration {
	r.moved = false
	decision := maintenance.Decide(r.world)
	asked := r.carryOut(&decision)
	if r.wave == 0 {
		asked = append(asked, r.evacuating()...)
	}
	if len(asked) > 0 {
		r.wave++
		r.moved = true
	}
	slices.SortStableFunc(asked, func(a, b *pod) int { return r.order(a.object, b.object) })
	for _, p := range asked {
		if p.action != ActionAlreadyLeaving {
			p.wave = r.wave
		}
		r.evacuate(p)
		r.open()
	}
	r.placeAgain()
	r.tidy()
	return decision.RequeueAfter
}

func (r *run) deletes() bool {
	return slices.ContainsFunc(r.world.Maintenances, func(m *v1alpha1.NodeMaintenance) bool {
		return m.Spec.Deadline != nil && m.Spec.Deadline.OnDeadline == v1alpha1.DeadlineDelete
	})
}

// conclude writes refusals into the Evacuations of pods that are left, and reads the verdicts.
func (r *run) conclude() {
	for _, p := range r.pods {
		if p.state == held && p.refusal.Type != "" {
			told := *p.evacuation
			told.Status = evacuation.Refuse(told.Status, evacuation.Refusal{Outcome: p.refusal, Times: 1}, r.world.Now)
			p.evacuation = &told
			r.touch(p)
		}
	}
	r.tidy()
	var decision maintenance.Decision
	decision, r.after = maintenance.Inspect(r.world, r.name)
	for i := range decision.Maintenances {
		if d := &decision.Maintenances[i]; d.Maintenance.Name == r.name && len(r.after) == 0 {
			r.invalid = invalidity(d.Status)
		}
	}
}

func invalidity(status v1alpha1.NodeMaintenanceStatus) string {
	for _, condition := range status.Conditions {
		if condition.Reason == v1alpha1.ReasonInvalidSpec {
			return condition.Message
		}
	}
	return ""
}
