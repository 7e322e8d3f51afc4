package view

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	// maxMaintenances is how many maintenances of one node are told of.
	maxMaintenances = 5
	// maxCommand is how long something may be that is to be typed: half a command is none.
	maxCommand = 2048
)

// PodFacts are what the API says of a pod that is to leave its node.
type PodFacts struct {
	// Namespace and Name are those that were asked for.
	Namespace, Name string
	// Pod is nil if there is none.
	Pod *corev1.Pod
	// Node is its node, or that of the agent that has taken it down; empty if there is none.
	Node string
	// Evacuation is that of the pod; nil if there is none.
	Evacuation *v1alpha1.Evacuation
	// Static is what the agent of the node says of a static pod; nil if it says nothing.
	Static *v1alpha1.StaticPod
	// Stranded is a volume that keeps a pod on no node from all nodes but held ones; nil if none does.
	Stranded *Stranded
	// Maintenances are those that hold the node, or those of the stranded volume.
	Maintenances []*v1alpha1.NodeMaintenance
	// Around is what else there is of the pod; nil if it was not read.
	Around *Surroundings
	// Unknown is true if something of all this could not be read.
	Unknown bool
}

// Why says, a sentence a line, where a pod is on its way off its node, what is in the way,
// and what would help.
func (f PodFacts) Why() []string {
	lines := []string{f.whereIsIt()}
	if f.Stranded != nil {
		lines = append(lines, f.Stranded.why())
	}
	for i, m := range f.Maintenances {
		if i == maxMaintenances {
			lines = append(lines, fmt.Sprintf("So do %d more NodeMaintenances.", len(f.Maintenances)-i))
			break
		}
		stage := string(m.Spec.Stage)
		if m.Spec.Deadline != nil {
			stage += ", deadline " + m.Spec.Deadline.Time.UTC().Format(time.RFC3339)
		}
		lines = append(lines, fmt.Sprintf("NodeMaintenance %s (stage %s) holds the node: %s", m.Name, stage, excerpt.Line(m.Status.Summary, maxWords)))
	}
	return append(lines, f.whatIsNext()...)
}

func (f PodFacts) whereIsIt() string {
	name := f.Namespace + "/" + f.Name
	switch {
	case f.Static != nil:
		line := fmt.Sprintf("%s is a static pod of node %s, %s", name, f.Node, excerpt.Line(string(f.Static.State), maxWords))
		if f.Static.Reason != "" {
			line += " (" + excerpt.Line(f.Static.Reason, maxWords) + ")"
		}
		if f.Static.Message == "" {
			return line + "."
		}
		return line + ": " + excerpt.Line(f.Static.Message, maxWords)
	case f.Node == "":
		return name + " is on no node" + f.unscheduled()
	case f.Pod.DeletionTimestamp != nil && f.Around != nil && f.Around.Now.Before(f.Pod.DeletionTimestamp.Time):
		return fmt.Sprintf("%s terminates on node %s, and has until %s to end by itself.", name, f.Node, f.Pod.DeletionTimestamp.UTC().Format(time.RFC3339))
	case f.Pod.DeletionTimestamp != nil:
		return fmt.Sprintf("%s terminates on node %s.", name, f.Node)
	}
	return fmt.Sprintf("%s is on node %s.", name, f.Node)
}

// unscheduled is since when the scheduler finds no node, and its words.
func (f PodFacts) unscheduled() string {
	if f.Pod == nil {
		return "."
	}
	c := podclass.Unscheduled(f.Pod)
	if c == nil {
		return "."
	}
	return fmt.Sprintf(" since %s (%s): %s", c.LastTransitionTime.UTC().Format(time.RFC3339), excerpt.Line(c.Reason, maxWords), excerpt.Line(c.Message, maxWords))
}

// whatIsNext is what keeps the pod, or has it come back, and the line that helps.
func (f PodFacts) whatIsNext() []string {
	if f.isAway() {
		return f.comesBack()
	}
	retained, stays := f.retained()
	switch {
	case f.Evacuation != nil:
		return append(f.leaving(), f.stuck()...)
	case stays:
		return []string{
			fmt.Sprintf("It stays on purpose (%s): %s", excerpt.Line(string(retained.Type), maxWords), excerpt.Line(retained.Message, maxWords)),
			excerpt.Line(retained.Suggestion, maxCommand),
		}
	case f.Unknown:
		return append([]string{"Whether anybody has asked it to leave is unknown."}, f.stuck()...)
	case f.Stranded != nil && len(f.Maintenances) > 0:
		return f.untilComplete()
	case f.Node == "":
		return []string{command.Of("The scheduler tries again when there is room. Which nodes are cordoned, and for whom: kubectl ebbtide status")}
	case len(f.Maintenances) == 0:
		return append([]string{"Nobody asks it to leave: no NodeMaintenance holds its node."}, f.foreseen()...)
	case len(f.drains()) == 0:
		return append([]string{"Nobody asks it to leave: no NodeMaintenance of its node is in stage Drain."}, f.foreseen()...)
	case f.Static != nil && f.Static.State == v1alpha1.StaticPodUnmanageable:
		return []string{"It stays, and nobody waits for it."}
	}
	return append([]string{command.Of("Nobody has asked it to leave yet: its turn is to come, or it stays on purpose. Which pods stay, and why: "+
		`kubectl get nodemaintenance %s -o jsonpath='{.status.nodeStatuses[?(@.nodeRef.name=="%s")].retained}'`, f.Maintenances[0].Name, f.Node)}, f.stuck()...)
}

// drains are the maintenances that have pods leave the node.
func (f PodFacts) drains() []*v1alpha1.NodeMaintenance {
	var drains []*v1alpha1.NodeMaintenance
	for _, m := range f.Maintenances {
		if maintenance.Stage(m) == v1alpha1.StageDrain {
			drains = append(drains, m)
		}
	}
	return drains
}

// retained is why the pod stays on its node for every maintenance that drains it.
func (f PodFacts) retained() (why v1alpha1.Blocker, stays bool) {
	for _, m := range f.drains() {
		if f.Pod == nil {
			return v1alpha1.Blocker{}, false
		}
		var said []v1alpha1.Blocker
		if on := statusOn(m, f.Node); on != nil {
			said = on.Retained
		}
		if why, stays = blocker.RetainedOf(said, f.Pod, m.Spec.DrainDepth); !stays {
			return v1alpha1.Blocker{}, false
		}
	}
	return why, stays
}

// stuck is what keeps a pod that terminates, as far as it shows without anything of ours.
func (f PodFacts) stuck() []string {
	if f.Around == nil || f.Pod == nil || f.Pod.DeletionTimestamp == nil {
		return nil
	}
	b, found := f.Around.obstacle(f.Pod)
	if !found {
		return nil
	}
	return told(&b)
}

// foreseen is what a drain would meet at the pod.
func (f PodFacts) foreseen() []string {
	if f.Around == nil || f.Pod == nil {
		return nil
	}
	if f.Pod.DeletionTimestamp != nil {
		return f.stuck()
	}
	if podclass.Type(f.Pod) != v1alpha1.PodTypeDefault {
		// Nobody evicts such pods: they go in other ways.
		return nil
	}
	var lines []string
	if b, found := f.Around.obstacle(f.Pod); found {
		lines = append(lines, "If somebody drained its node now, it would not leave:")
		lines = append(lines, told(&b)...)
	}
	return append(lines, lost(f.Pod)...)
}

// isAway is true of a static pod that an agent keeps away, or has begun to.
func (f PodFacts) isAway() bool {
	return f.Static != nil && (f.Static.State == v1alpha1.StaticPodHeld || f.Static.State == v1alpha1.StaticPodHolding)
}

func (f PodFacts) comesBack() []string {
	if len(f.Maintenances) == 0 && f.Unknown {
		return []string{"Which NodeMaintenance keeps it away is unknown."}
	}
	if len(f.Maintenances) == 0 {
		return []string{command.Of("No NodeMaintenance holds its node any more: the agent brings it back. Whether that answers: kubectl ebbtide agents %s", f.Node)}
	}
	return f.untilComplete()
}

// untilComplete says what ends each maintenance.
func (f PodFacts) untilComplete() []string {
	var lines []string
	for _, m := range f.Maintenances[:min(len(f.Maintenances), maxMaintenances)] {
		lines = append(lines, command.Of("It comes back when %s is complete: kubectl ebbtide complete %s", m.Name, m.Name))
	}
	return lines
}

// leaving is how far the evacuation of the pod has come.
func (f PodFacts) leaving() []string {
	status := &f.Evacuation.Status
	if blocker.Unplaced(f.Evacuation) != nil && f.Pod != nil {
		b, _ := blocker.Of(&blocker.Facts{Pod: f.Pod, Evacuation: f.Evacuation})
		return told(&b)
	}
	b, refused := refusalOf(f.Namespace, status, BlockersOn(f.Maintenances, f.Node))
	if !refused {
		if status.Message == "" {
			return []string{"It has been asked to leave."}
		}
		return []string{"It has been asked to leave: " + excerpt.Line(status.Message, maxWords)}
	}
	if b.Suggestion == "" && f.Around != nil && f.Pod != nil {
		facts := blocker.Facts{Now: f.Around.Now, Pod: f.Pod, Node: f.Around.Node, Evacuation: f.Evacuation, Budgets: f.Around.Budgets}
		own, _ := blocker.Of(&facts)
		b = explained(b, &own)
	}
	lines := []string{fmt.Sprintf("Its eviction is refused (%s): %s", excerpt.Line(string(b.Type), maxWords), excerpt.Line(b.Message, maxWords))}
	if b.Suggestion != "" {
		lines = append(lines, "What helps: "+excerpt.Line(b.Suggestion, maxCommand))
	}
	return lines
}
