package maintenance

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/maintenance/deadline"
	"ebbtide.dev/ebbtide/internal/core/maintenance/handover"
)

// maxDowntime is what the API allows for InPlace.ExpectedDowntimeSeconds.
const maxDowntime = 3600

// maintenance is a NodeMaintenance as it was seen.
type maintenance struct {
	object *v1alpha1.NodeMaintenance
	// age is its place among all maintenances, 0 is the oldest.
	age int
	// stage is the effective stage: a maintenance that is being deleted is Complete.
	stage v1alpha1.NodeMaintenanceStage
	// starts is true if this decision starts the stage.
	starts bool
	// began is when the Drain stage was recorded; zero if it was not yet.
	began time.Time
	// finished is true if the Complete stage has run: nothing is touched any more.
	finished bool
	// invalid is why the spec is not understood; nil if it is.
	invalid error

	selector *NodeSelector
	plan     drainplan.Plan
	// depth is the depth of the deepest pods that have to leave.
	depth int
	// inPlace is how pods stay; nil if all leave. downtime is how long a node is away.
	inPlace  *v1alpha1.InPlace
	downtime time.Duration
	// completeWhen is nil if somebody else completes the maintenance.
	completeWhen *handover.When
	// deadline is until when pods have to be gone; nil if they have all the time.
	deadline *deadline.Deadline
	// ofMachine is true if the Machine of another controller goes with the node.
	ofMachine bool
	// paused is true if it waits for pods and asks none to leave.
	paused bool
	// observed finds the nodes of the observed status by name.
	observed map[string]*v1alpha1.NodeMaintenanceNodeStatus
	// selections are the nodes that it selects, listed those whose ledger has it, both by name.
	selections []*selection
	listed     []*node
}

func (m *maintenance) name() string { return m.object.Name }

// holds returns true if the maintenance keeps its nodes cordoned.
func (m *maintenance) holds() bool {
	return m.stage == v1alpha1.StageCordon || m.stage == v1alpha1.StageDrain
}

// selects returns true if the maintenance has to do with the node.
func (m *maintenance) selects(node *corev1.Node) bool {
	return !m.finished && m.invalid == nil && m.selector.Match(node)
}

// keeps returns true if the maintenance leaves the pod on its node.
func (m *maintenance) keeps(p *pod) bool {
	return p.staying.Stays && m.inPlace != nil && p.staying.Endurance >= m.downtime
}

// counts returns true if the maintenance waits for the pod. It does not wait for
// pods that nobody removes, nor for those below its drainDepth or that it leaves on
// the node: another one may be removing these, but that is not its concern. Where a Machine
// goes with the node, nobody waits for what the node can no longer confirm.
func (m *maintenance) counts(p *pod) bool {
	return !p.retained() && p.Depth() <= m.depth && !m.keeps(p) && !(m.ofMachine && p.givenUp)
}

// compareAge orders maintenances, the oldest first.
func compareAge(a, b *v1alpha1.NodeMaintenance) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// readMaintenances reads all maintenances, oldest first.
func readMaintenances(objects []*v1alpha1.NodeMaintenance) []*maintenance {
	sorted := slices.SortedFunc(slices.Values(objects), compareAge)
	maintenances := make([]*maintenance, 0, len(sorted))
	for age, object := range sorted {
		m := &maintenance{object: object, age: age, stage: effectiveStage(object), ofMachine: bridge.OfMachine(object), paused: bridge.Paused(object)}
		m.starts = m.stage != v1alpha1.StageIdle && !hasStarted(object, m.stage)
		m.began = drainBegan(object)
		m.finished = isFinished(object, m.stage)
		if !m.finished {
			m.invalid = m.understand()
		}
		maintenances = append(maintenances, m)
	}
	return maintenances
}

func byName(maintenances []*maintenance) map[string]*maintenance {
	named := make(map[string]*maintenance, len(maintenances))
	for _, m := range maintenances {
		named[m.name()] = m
	}
	return named
}

// understand compiles the spec. The error names the field at fault.
func (m *maintenance) understand() error {
	spec := &m.object.Spec
	if _, known := stageOrder[m.stage]; !known {
		return fmt.Errorf("spec.stage: must be Idle, Cordon, Drain or Complete, is %q", spec.Stage)
	}
	var err error
	if m.selector, err = compileSelector(spec); err != nil || m.stage != v1alpha1.StageDrain {
		return err
	}
	if m.plan, err = drainplan.New(spec.DrainPlan, spec.DrainDepth); err != nil {
		return err
	}
	m.depth = m.plan.Depth()
	m.observed = make(map[string]*v1alpha1.NodeMaintenanceNodeStatus, len(m.object.Status.NodeStatuses))
	for i := range m.object.Status.NodeStatuses {
		status := &m.object.Status.NodeStatuses[i]
		m.observed[status.NodeRef.Name] = status
	}
	if err := m.understandInPlace(); err != nil {
		return err
	}
	if m.deadline, err = deadline.Read(spec.Deadline); err != nil {
		return err
	}
	m.completeWhen, err = handover.Read(m.object, bridge.NodeUnder(m.object))
	return err
}

// understandInPlace reads spec.inPlace. A downtime that nobody meant would have
// pods stay that do not last.
func (m *maintenance) understandInPlace() error {
	inPlace := m.object.Spec.InPlace
	if inPlace == nil {
		return nil
	}
	if seconds := inPlace.ExpectedDowntimeSeconds; seconds < 1 || seconds > maxDowntime {
		return fmt.Errorf("spec.inPlace.expectedDowntimeSeconds: must be from 1 to %d, is %d", maxDowntime, seconds)
	}
	m.inPlace, m.downtime = inPlace, time.Duration(inPlace.ExpectedDowntimeSeconds)*time.Second
	return nil
}
