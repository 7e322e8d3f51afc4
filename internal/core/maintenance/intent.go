package maintenance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
)

// intent is a NodeMaintenance in a pass.
type intent struct {
	object *v1alpha1.NodeMaintenance
	// age is its place among all intents, 0 is the oldest.
	age int
	// stage is the effective stage: a maintenance that is being deleted is
	// Complete.
	stage v1alpha1.NodeMaintenanceStage
	// starts is true if this pass starts the stage.
	starts bool
	// finished is true if the Complete stage has run: nothing is touched any more.
	finished bool
	// invalid is why the spec cannot be understood, nil if it can.
	invalid error

	selector *nodeaffinity.NodeSelector
	plan     drainplan.Plan
	depth    int
	// inPlace is how pods stay; nil if all leave. downtime is how long a node is away.
	inPlace  *v1alpha1.InPlace
	downtime time.Duration
	// observed finds the nodes of the observed status by name.
	observed map[string]*v1alpha1.NodeMaintenanceNodeStatus
	// shares are its sites, by name.
	shares []*share

	// position is how far it has come in its plan, entry the entry there and own
	// what the plan selects up to it. idle is true if no counted pod is left.
	position int
	entry    drainplan.Entry
	own      drainplan.Set
	idle     bool
	// answer is what ask returned; asked is true if it did.
	answer []*share
	asked  bool
}

// compareAge orders maintenances, the oldest first.
func compareAge(a, b *v1alpha1.NodeMaintenance) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// newIntents reads all maintenances, oldest first.
func newIntents(maintenances []*v1alpha1.NodeMaintenance) []*intent {
	sorted := slices.SortedFunc(slices.Values(maintenances), compareAge)
	intents := make([]*intent, 0, len(sorted))
	for age, object := range sorted {
		i := &intent{object: object, age: age, stage: effectiveStage(object)}
		i.starts = i.stage != v1alpha1.StageIdle && !hasStarted(object, i.stage)
		i.finished = isFinished(object, i.stage)
		if !i.finished {
			i.invalid = i.understand()
		}
		intents = append(intents, i)
	}
	return intents
}

// understand compiles the spec. The error names the field at fault.
func (i *intent) understand() error {
	spec := &i.object.Spec
	if i.stage != v1alpha1.StageIdle && i.stage != v1alpha1.StageCordon && i.stage != v1alpha1.StageDrain && i.stage != v1alpha1.StageComplete {
		return fmt.Errorf("spec.stage: must be Idle, Cordon, Drain or Complete, is %q", spec.Stage)
	}
	selector, err := compileSelector(spec.NodeSelector)
	if err != nil {
		return err
	}
	i.selector = selector
	if i.stage != v1alpha1.StageDrain {
		return nil
	}
	if i.plan, err = drainplan.New(spec.DrainPlan, spec.DrainDepth); err != nil {
		return err
	}
	i.depth = i.plan.Depth()
	if err := i.understandInPlace(); err != nil {
		return err
	}
	i.observed = make(map[string]*v1alpha1.NodeMaintenanceNodeStatus, len(i.object.Status.NodeStatuses))
	for n := range i.object.Status.NodeStatuses {
		status := &i.object.Status.NodeStatuses[n]
		i.observed[status.NodeRef.Name] = status
	}
	return nil
}

func compileSelector(selector *corev1.NodeSelector) (*nodeaffinity.NodeSelector, error) {
	if selector == nil {
		return nil, errors.New("spec.nodeSelector: is required")
	}
	return nodeaffinity.NewNodeSelector(selector, field.WithPath(field.NewPath("spec", "nodeSelector")))
}

// matches returns true if the intent has to do with the node.
func (i *intent) matches(node *corev1.Node) bool {
	return !i.finished && i.invalid == nil && i.selector.Match(node)
}

// holds returns true if the intent keeps its nodes cordoned.
func (i *intent) holds() bool {
	return i.stage == v1alpha1.StageCordon || i.stage == v1alpha1.StageDrain
}

// keepsUnread returns true if the intent cannot be understood any more and still
// holds the node of this ledger.
func (i *intent) keepsUnread(l ledger) bool {
	return i.invalid != nil && i.holds() && l.lists(i.name())
}

func (i *intent) name() string { return i.object.Name }

// compare orders intents by how much they ask for: those with pods left come
// first, then by the entry that they are at, then by age. Where no pods are left
// nobody has to be waited for, and the deepest comes first.
func (i *intent) compare(other *intent) int {
	entries := i.entry.Compare(other.entry)
	if i.idle {
		entries = -entries
	}
	return cmp.Or(
		cmp.Compare(ones(i.idle), ones(other.idle)),
		entries,
		cmp.Compare(i.age, other.age),
	)
}
