package event

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// Events with the message of the decision.
var (
	InvalidSpec           = warning(v1alpha1.EventInvalidSpec, "Validate").onMaintenance
	MaintenanceBlocked    = warning(v1alpha1.EventBlocked, "Drain").onMaintenance
	PodBlocked            = warning(v1alpha1.EventBlocked, "Drain").onPod
	DrainLabelIgnored     = warning(v1alpha1.EventDrainLabelIgnored, "Drain").onPod
	OnUpgradeLabelIgnored = warning(v1alpha1.EventOnUpgradeLabelIgnored, "Drain").onPod
	PastDeadline          = warning(v1alpha1.EventPastDeadline, "Drain").onMaintenance
	NodesGivenBack        = warning(v1alpha1.EventNodeGivenBack, "GiveBack").onMaintenance
)

const maxNames = 3

// StageStarted reports that the controller acts on a new stage.
func StageStarted(m *v1alpha1.NodeMaintenance, stage v1alpha1.NodeMaintenanceStage, nodes int) Event {
	return normal(v1alpha1.EventStageStarted, string(stage)).onMaintenance(m,
		fmt.Sprintf("Stage %s started, nodes: %d.", stage, nodes))
}

// MaintenanceDrained reports that no pod is left that has to leave.
func MaintenanceDrained(m *v1alpha1.NodeMaintenance, nodes int) Event {
	return normal(v1alpha1.EventDrained, "Drain").onMaintenance(m,
		fmt.Sprintf("Every node is drained, nodes: %d.", nodes))
}

// CompletedByItself reports that a maintenance was completed automatically, and why.
func CompletedByItself(m *v1alpha1.NodeMaintenance, why string) Event {
	return normal(v1alpha1.EventCompletedByItself, "Complete").onMaintenance(m,
		"Stage Complete was set, as completeWhen asks: "+why)
}

// NoNodes warns that a maintenance drains nothing because nothing matches.
func NoNodes(m *v1alpha1.NodeMaintenance) Event {
	return warning(v1alpha1.EventNoNodes, "Drain").onMaintenance(m,
		"spec.nodeSelector matches no node, so there is nothing to drain.")
}

// FastForwarded reports that an older maintenance has brought a node ahead of a drain plan
// (KEP-4212).
func FastForwarded(m *v1alpha1.NodeMaintenance, node, older string) Event {
	return warning(v1alpha1.EventFastForwarded, "Drain").onMaintenance(m,
		fmt.Sprintf("On node %s the drain plan is fast-forwarded, because the drain of older %s has come further there and does not go back.", node, older))
}

// NodeBlocked warns that something holds a maintenance up on a node.
func NodeBlocked(node *corev1.Node, maintenance, why string) Event {
	return warning(v1alpha1.EventBlocked, "Drain").onNode(node,
		fmt.Sprintf("NodeMaintenance %s is blocked. %s", maintenance, why))
}

// NodeDrained reports that a node has lost all pods that a maintenance waited for.
func NodeDrained(node *corev1.Node, maintenance string) Event {
	return normal(v1alpha1.EventNodeDrained, "Drain").onNode(node,
		fmt.Sprintf("Drained for %s.", maintenance))
}

// NodeCordoned reports that a node was made unschedulable.
func NodeCordoned(node *corev1.Node, maintenances []string) Event {
	return normal(v1alpha1.EventNodeCordoned, "Cordon").onNode(node,
		fmt.Sprintf("Cordoned for %s.", strings.Join(maintenances, ", ")))
}

// NodeRestored reports that the last maintenance has given a node back as it was.
func NodeRestored(node *corev1.Node, unschedulable bool) Event {
	message := "Made schedulable again: no maintenance holds the node any more."
	if unschedulable {
		message = "Left cordoned, as it was before the maintenance."
	}
	return normal(v1alpha1.EventNodeRestored, "Uncordon").onNode(node, message)
}

// NodeUncordoned reports that a completed maintenance uncordoned a node that it had not cordoned.
func NodeUncordoned(node *corev1.Node, maintenance string) Event {
	return normal(v1alpha1.EventNodeUncordoned, "Uncordon").onNode(node,
		fmt.Sprintf("Made schedulable, as the completed %s asks.", maintenance))
}

// LedgerUnreadable warns that the state of a node before its maintenance is unknown.
func LedgerUnreadable(node *corev1.Node, fault error) Event {
	return warning(v1alpha1.EventLedgerUnreadable, "Cordon").onNode(node,
		fmt.Sprintf("Annotation %s cannot be read (%v), so the node will stay cordoned after the maintenance. %s",
			v1alpha1.CordonAnnotation, fault, command.Of("To uncordon it then: kubectl uncordon %s", node.Name)))
}

// NodeLeftCordoned warns that a node stays cordoned because its earlier state is unknown.
func NodeLeftCordoned(node *corev1.Node) Event {
	return warning(v1alpha1.EventNodeLeftCordoned, "Uncordon").onNode(node,
		command.Of("Left cordoned because its state before the maintenance is unknown. To uncordon it: kubectl uncordon %s", node.Name))
}

// ScaleDownAllowed reports that another client has changed a protection from autoscalers.
func ScaleDownAllowed(node *corev1.Node, key string) Event {
	return warning(v1alpha1.EventScaleDownAllowed, "Protect").onNode(node,
		command.Of("Annotation %s was changed or removed, so the node may be removed when it is empty. The annotation stays as it is, also after the maintenance. To keep the node: kubectl annotate node %s %s=true --overwrite",
			key, node.Name, key))
}

// ForeignUncordon warns on the node that another client uncordoned it during a maintenance.
func ForeignUncordon(node *corev1.Node, maintenances []string) Event {
	return warning(v1alpha1.EventForeignUncordon, "Cordon").onNode(node,
		fmt.Sprintf("The node was uncordoned during its maintenance and is cordoned again for %s.", strings.Join(maintenances, ", ")))
}

// ForeignUncordonOf is ForeignUncordon on a maintenance of the node.
func ForeignUncordonOf(m *v1alpha1.NodeMaintenance, node string) Event {
	return warning(v1alpha1.EventForeignUncordon, "Cordon").onMaintenance(m,
		fmt.Sprintf("Node %s was uncordoned during its maintenance and is cordoned again.", node))
}

// CancellationForbidden warns that evacuators forbid the cancellation of unwanted evacuations.
func CancellationForbidden(node *corev1.Node, evacuations []string) Event {
	return warning(v1alpha1.EventCancellationForbidden, "Withdraw").onNode(node,
		fmt.Sprintf("These evacuations are not withdrawn, because their evacuators forbid it: %s.", phrase.Some(evacuations, maxNames)))
}

// CancellationForbiddenOf is CancellationForbidden on a maintenance that has requested them.
func CancellationForbiddenOf(m *v1alpha1.NodeMaintenance, node string, evacuations []string) Event {
	return warning(v1alpha1.EventCancellationForbidden, "Withdraw").onMaintenance(m,
		fmt.Sprintf("These evacuations on node %s are not withdrawn, because their evacuators forbid it: %s.", node, phrase.Some(evacuations, maxNames)))
}

// ShortToleration is the reason why a pod that asks to stay on a node does not last there.
type ShortToleration struct {
	// Taint is the key of the taint that the pod tolerates for Endured only.
	Taint   string
	Endured time.Duration
	// Needed is the time for which the node is away in a maintenance of this name.
	Needed      time.Duration
	Maintenance string
}

// TolerationTooShort warns that a pod cannot stay because it does not tolerate the downtime.
func TolerationTooShort(pod *corev1.Pod, short ShortToleration) Event {
	return warning(v1alpha1.EventTolerationTooShort, "Drain").onPod(pod, fmt.Sprintf(
		"The pod does not stay on node %s: the node is away for %s in %s, and the pod tolerates taint %s with effect NoExecute for %s only. Give it a toleration with tolerationSeconds %d or more, or without.",
		pod.Spec.NodeName, short.Needed, short.Maintenance, short.Taint, short.Endured, int64(short.Needed.Seconds())))
}

// TooManyBudgets warns that a pod cannot stay because it has too many budgets to lock.
func TooManyBudgets(pod *corev1.Pod, why string) Event {
	return warning(v1alpha1.EventTooManyBudgets, "Drain").onPod(pod, fmt.Sprintf("The pod does not stay on node %s: %s", pod.Spec.NodeName, why))
}

// LatePod is a pod that is left at a deadline.
type LatePod struct {
	// Maintenance is the name of the NodeMaintenance, Deadline when the pod had to be gone.
	Maintenance        string
	Deadline           time.Time
	GracePeriodSeconds int64
}

// DeletedPastDeadline warns on the pod that a deadline deleted it past its budgets.
func DeletedPastDeadline(pod *corev1.Pod, late LatePod) Event {
	return warning(v1alpha1.EventPastDeadline, "Delete").onPod(pod, fmt.Sprintf(
		"Deleted past its disruption budgets with a grace period of %d s: NodeMaintenance %s wants node %s to be empty by %s.",
		late.GracePeriodSeconds, late.Maintenance, pod.Spec.NodeName, late.Deadline.UTC().Format(time.RFC3339)))
}

// PodsDeletedPastDeadline warns on the node which pods a deadline deleted past their budgets.
func PodsDeletedPastDeadline(node *corev1.Node, maintenance string, pods []string) Event {
	return warning(v1alpha1.EventPastDeadline, "Delete").onNode(node,
		fmt.Sprintf("Deleted past their disruption budgets for the deadline of NodeMaintenance %s: %s.", maintenance, phrase.Some(pods, maxNames)))
}

// NodeGivenBack warns that a node was not drained by a deadline and is given back.
func NodeGivenBack(node *corev1.Node, maintenance string, deadline time.Time) Event {
	return warning(v1alpha1.EventNodeGivenBack, "GiveBack").onNode(node, fmt.Sprintf(
		"Given back by NodeMaintenance %s, as the node was not drained by the deadline %s.", maintenance, phrase.Time(deadline)))
}

// DeadlineUnconfirmed warns that a deadline deletes nothing because it could not be read again.
func DeadlineUnconfirmed(m *v1alpha1.NodeMaintenance, err error) Event {
	return warning(v1alpha1.EventPastDeadline, "Confirm").onMaintenance(m,
		fmt.Sprintf("Nothing is deleted for the deadline, because the API server does not say whether it still holds; it is asked again within a minute: %v", err))
}

// DecisionFailed warns of a defect of Ebbtide that prevents decisions about a maintenance.
func DecisionFailed(m *v1alpha1.NodeMaintenance, cause string) Event {
	return warning(v1alpha1.EventDecisionFailed, "Decide").onMaintenance(m,
		fmt.Sprintf("Nothing is done for this maintenance and those that share nodes with it, because of a defect of Ebbtide; "+
			"please report it with the manager's log: %s", cause))
}

// MaintenanceRefused warns that the maintenance itself cannot be written, so its status may be old.
func MaintenanceRefused(m *v1alpha1.NodeMaintenance, refusal error) Event {
	return warning(v1alpha1.EventWriteRefused, "Record").onMaintenance(m,
		fmt.Sprintf("This maintenance could not be written and is tried again within a minute; until then its status is old: %v", refusal))
}
