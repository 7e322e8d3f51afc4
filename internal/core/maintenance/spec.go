package maintenance

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/maintenance/deadline"
	"ebbtide.dev/ebbtide/internal/core/maintenance/handover"
)

const maxDowntime = 3600

type maintenance struct {
	object *v1alpha1.NodeMaintenance
	age    int // the index in observation.maintenances
	stage  v1alpha1.NodeMaintenanceStage
	starts bool
	// began is the recorded start of the Drain stage; zero if there is none yet.
	began    time.Time
	finished bool
	invalid  error

	selector *NodeSelector
	plan     drainplan.Plan
	// depth ranks the deepest pods that have to leave.
	depth int
	// inPlace is nil if all pods leave.
	inPlace  *v1alpha1.InPlace
	downtime time.Duration
	// completeWhen is nil if the maintenance is not completed automatically.
	completeWhen *handover.When
	deadline     *deadline.Deadline
	// givenBack is nil if no deadline has given nodes back.
	givenBack *deadline.Record
	// ofMachine is true if the Machine of another controller goes with the node, paused if its
	// drain is paused: it waits for pods and requests none to leave.
	ofMachine, paused bool
	observed          map[string]*v1alpha1.NodeMaintenanceNodeStatus
	// selections are the nodes that it selects, listed those whose ledger lists it, by name.
	selections []*selection
	listed     []*node
	// waiting are selected nodes that wait for a NodeBudget.
	waiting []*selection
}

func (m *maintenance) name() string { return m.object.Name }

// holds returns true if the maintenance keeps its nodes cordoned.
func (m *maintenance) holds() bool {
	return m.stage == v1alpha1.StageCordon || m.stage == v1alpha1.StageDrain
}

func (m *maintenance) keeps(p *pod) bool {
	return p.staying.Stays && m.inPlace != nil && p.staying.Endurance >= m.downtime
}

// CompareAge orders maintenances, the oldest first.
func CompareAge(a, b *v1alpha1.NodeMaintenance) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

func readMaintenances(objects []*v1alpha1.NodeMaintenance) []*maintenance {
	sorted := slices.SortedFunc(slices.Values(objects), CompareAge)
	maintenances := make([]*maintenance, 0, len(sorted))
	for age, object := range sorted {
		m := &maintenance{object: object, age: age, stage: Stage(object), ofMachine: bridge.OfMachine(object), paused: bridge.Paused(object)}
		m.starts = m.stage != v1alpha1.StageIdle && !hasStarted(object, m.stage)
		m.began = drainBegan(object)
		m.givenBack = deadline.ReadRecord(object)
		m.finished = Finished(object)
		if !m.finished {
			m.invalid = m.parse()
		}
		maintenances = append(maintenances, m)
	}
	return maintenances
}

// parse compiles the spec. The error names the field at fault.
func (m *maintenance) parse() error {
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
	if inPlace := spec.InPlace; inPlace != nil {
		if seconds := inPlace.ExpectedDowntimeSeconds; seconds < 1 || seconds > maxDowntime {
			return fmt.Errorf("spec.inPlace.expectedDowntimeSeconds: must be from 1 to %d, is %d", maxDowntime, seconds)
		}
		m.inPlace, m.downtime = inPlace, time.Duration(inPlace.ExpectedDowntimeSeconds)*time.Second
	}
	if m.deadline, err = deadline.Read(spec.Deadline); err != nil {
		return err
	}
	m.completeWhen, err = handover.Read(m.object, bridge.NodeUnder(m.object))
	return err
}
