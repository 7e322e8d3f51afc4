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
	maxMaintenances = 5
	// maxCommand limits commands, which must not be truncated.
	maxCommand = 2048
)

// PodFacts holds what the API shows of a pod that should leave its node.
type PodFacts struct {
	Namespace, Name string
	Pod             *corev1.Pod
	// Node is its node, or that of the agent that has taken it down.
	Node       string
	Evacuation *v1alpha1.Evacuation
	Static     *v1alpha1.StaticPod
	// Stranded is a volume that keeps an unscheduled pod from all other nodes.
	Stranded *Stranded
	// Maintenances hold the node, or the nodes of the stranded volume.
	Maintenances []*v1alpha1.NodeMaintenance
	// Around is nil if it was not read.
	Around  *Surroundings
	Unknown bool
}

// Why returns lines about the progress of a pod, what blocks it and what helps.
func (f PodFacts) Why() []string {
	lines := []string{f.whereIsIt()}
	if f.Stranded != nil {
		lines = append(lines, f.Stranded.why())
	}
	for i, m := range f.Maintenances {
		if i == maxMaintenances {
			lines = append(lines, fmt.Sprintf("%d more NodeMaintenances hold it.", len(f.Maintenances)-i))
			break
		}
		stage := string(m.Spec.Stage)
		if m.Spec.Deadline != nil {
			stage += ", deadline " + m.Spec.Deadline.Time.UTC().Format(time.RFC3339)
			if action := m.Spec.Deadline.OnDeadline; action == v1alpha1.DeadlineDelete || action == v1alpha1.DeadlineGiveBack {
				stage += " (" + string(action) + ")"
			}
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
		return name + " is not scheduled" + f.unscheduled()
	case f.Pod.DeletionTimestamp != nil && f.Around != nil && f.Around.Now.Before(f.Pod.DeletionTimestamp.Time):
		return fmt.Sprintf("%s is terminating on node %s. Its grace period ends at %s.", name, f.Node, f.Pod.DeletionTimestamp.UTC().Format(time.RFC3339))
	case f.Pod.DeletionTimestamp != nil:
		return fmt.Sprintf("%s is terminating on node %s.", name, f.Node)
	}
	return fmt.Sprintf("%s is on node %s.", name, f.Node)
}

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
			fmt.Sprintf("It stays as intended (%s): %s", excerpt.Line(string(retained.Type), maxWords), excerpt.Line(retained.Message, maxWords)),
			excerpt.Line(retained.Suggestion, maxCommand),
		}
	case f.Unknown:
		return append([]string{"Cannot determine whether it was asked to leave."}, f.stuck()...)
	case f.Stranded != nil && len(f.Maintenances) > 0:
		return f.untilComplete()
	case f.Node == "":
		return []string{command.Of("The scheduler retries when there is room. To see cordoned nodes: kubectl ebbtide status")}
	case len(f.Maintenances) == 0:
		return append([]string{"It was not asked to leave because no NodeMaintenance holds its node."}, f.foreseen()...)
	case len(f.drains()) == 0:
		return append([]string{"It was not asked to leave because no NodeMaintenance of its node is in stage Drain."}, f.foreseen()...)
	case f.Static != nil && f.Static.State == v1alpha1.StaticPodUnmanageable:
		return []string{"It stays, and no drain waits for it."}
	}
	return append([]string{command.Of("It was not asked to leave yet: a later wave includes it, or it stays as intended. To see which pods stay: "+
		`kubectl get nodemaintenance %s -o jsonpath='{.status.nodeStatuses[?(@.nodeRef.name=="%s")].retained}'`, f.Maintenances[0].Name, f.Node)}, f.stuck()...)
}

func (f PodFacts) drains() []*v1alpha1.NodeMaintenance {
	var drains []*v1alpha1.NodeMaintenance
	for _, m := range f.Maintenances {
		if maintenance.Stage(m) == v1alpha1.StageDrain {
			drains = append(drains, m)
		}
	}
	return drains
}

// retained returns why every draining maintenance leaves the pod on its node.
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

// stuck returns what keeps a terminating pod, as far as its object shows.
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

func (f PodFacts) foreseen() []string {
	if f.Around == nil || f.Pod == nil {
		return nil
	}
	if f.Pod.DeletionTimestamp != nil {
		return f.stuck()
	}
	if podclass.Type(f.Pod) != v1alpha1.PodTypeDefault {
		// Such pods are not evicted.
		return nil
	}
	var lines []string
	if b, found := f.Around.obstacle(f.Pod); found {
		lines = append(lines, "If its node was drained now, it would not leave:")
		lines = append(lines, told(&b)...)
	}
	return append(lines, lost(f.Pod)...)
}

// isAway reports whether an agent keeps a static pod away or takes it down.
func (f PodFacts) isAway() bool {
	return f.Static != nil && (f.Static.State == v1alpha1.StaticPodHeld || f.Static.State == v1alpha1.StaticPodHolding)
}

func (f PodFacts) comesBack() []string {
	if len(f.Maintenances) == 0 && f.Unknown {
		return []string{"Cannot determine which NodeMaintenance keeps it away."}
	}
	if len(f.Maintenances) == 0 {
		return []string{command.Of("No NodeMaintenance holds its node any more, so the agent restores it. To check the agent: kubectl ebbtide agents %s", f.Node)}
	}
	return f.untilComplete()
}

func (f PodFacts) untilComplete() []string {
	var lines []string
	for _, m := range f.Maintenances[:min(len(f.Maintenances), maxMaintenances)] {
		lines = append(lines, command.Of("To restore it, complete %s: kubectl ebbtide complete %s", m.Name, m.Name))
	}
	return lines
}

func (f PodFacts) leaving() []string {
	status := &f.Evacuation.Status
	if blocker.Unplaced(f.Evacuation) != nil && f.Pod != nil {
		b, _ := blocker.Of(&blocker.Facts{Pod: f.Pod, Evacuation: f.Evacuation})
		return told(&b)
	}
	b, refused := refusalOf(f.Namespace, status, BlockersOn(f.Maintenances, f.Node))
	if !refused {
		if status.Message == "" {
			return []string{"It was asked to leave."}
		}
		return []string{"It was asked to leave: " + excerpt.Line(status.Message, maxWords)}
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
