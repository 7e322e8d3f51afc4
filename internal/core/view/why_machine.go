package view

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

const maxHooks = 10

// MachineWhy returns lines about the step of a Machine and what it waits for.
func MachineWhy(m *v1alpha1.Machine) []string {
	name := m.Namespace + "/" + m.Name
	node := ""
	if m.Status.NodeRef != nil {
		node = ", node " + excerpt.Line(m.Status.NodeRef.Name, maxWords)
	}
	if m.DeletionTimestamp == nil {
		lines := []string{fmt.Sprintf("Machine %s is not being deleted. It is %s%s.", name, excerpt.Line(string(m.Status.Phase), maxWords), node)}
		lines = append(lines, lacking(m)...)
		return append(lines, hooks("preCreate", m.Spec.LifecycleHooks.PreCreate, m.Spec.ProviderID == "")...)
	}
	lines := []string{fmt.Sprintf("Machine %s has been deleting since %s%s.", name, m.DeletionTimestamp.UTC().Format("2006-01-02T15:04:05Z"), node)}
	deleting := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDeleting)
	if deleting == nil {
		return append(lines, "Its deletion has not started. Check that the manager runs with Machines enabled: kubectl -n ebbtide-system get pods")
	}
	lines = append(lines, fmt.Sprintf("Step %s since %s: %s", excerpt.Line(deleting.Reason, maxWords),
		deleting.LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z"), excerpt.Line(deleting.Message, maxCommand)))
	lines = append(lines, hooks("preDrain", m.Spec.LifecycleHooks.PreDrain, deleting.Reason == v1alpha1.ReasonWaitingForPreDrainHook)...)
	lines = append(lines, hooks("preTerminate", m.Spec.LifecycleHooks.PreTerminate, deleting.Reason == v1alpha1.ReasonWaitingForPreTerminateHook)...)
	for step, condition := range map[string]string{
		v1alpha1.ReasonDrainingNode: v1alpha1.ConditionDrainingSucceeded, v1alpha1.ReasonWaitingForVolumeDetach: v1alpha1.ConditionVolumeDetachSucceeded,
	} {
		said := meta.FindStatusCondition(m.Status.Conditions, condition)
		if deleting.Reason == step && said != nil && said.Message != deleting.Message && said.Message != "" {
			lines = append(lines, excerpt.Line(said.Message, maxCommand))
		}
	}
	return append(lines, whatHelpsMachine(m, deleting.Reason)...)
}

func hooks(kind string, all []v1alpha1.LifecycleHook, now bool) []string {
	if !now {
		return nil
	}
	var lines []string
	for i, hook := range all {
		if i == maxHooks {
			lines = append(lines, fmt.Sprintf("%d more %s hooks.", len(all)-i, kind))
			break
		}
		lines = append(lines, fmt.Sprintf("Waiting for hook %s (%s) of %s", excerpt.Line(hook.Name, maxWords), kind, excerpt.Line(hook.Owner, maxWords)))
	}
	return lines
}

func lacking(m *v1alpha1.Machine) []string {
	var lines []string
	for i := range m.Status.Conditions {
		c := &m.Status.Conditions[i]
		wanted := []string{v1alpha1.ConditionCreatable, v1alpha1.ConditionBootstrapReady, v1alpha1.ConditionInfrastructureReady, v1alpha1.ConditionNodeReady}
		if c.Status != metav1.ConditionTrue && slices.Contains(wanted, c.Type) {
			lines = append(lines, fmt.Sprintf("%s is %s (%s): %s", c.Type, strings.ToLower(string(c.Status)), excerpt.Line(c.Reason, maxWords), excerpt.Line(c.Message, maxWords)))
		}
	}
	if paused := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionPaused); paused != nil && paused.Status == metav1.ConditionTrue {
		lines = append(lines, "It is not changed while its Cluster is paused.")
	}
	return lines
}

func whatHelpsMachine(m *v1alpha1.Machine, step string) []string {
	of := m.Namespace
	node := "NODE"
	if m.Status.NodeRef != nil {
		node = m.Status.NodeRef.Name
	}
	switch step {
	case v1alpha1.ReasonWaitingForPreDrainHook, v1alpha1.ReasonWaitingForPreTerminateHook:
		return []string{command.Of("Hooks have no timeout. Contact the owner. To see all hooks: kubectl -n %s get machine.ebbtide.dev %s -o yaml", of, m.Name)}
	case v1alpha1.ReasonDrainingNode:
		return []string{"To see why one of its pods does not leave: kubectl ebbtide why pod/NAME -n NAMESPACE"}
	case v1alpha1.ReasonWaitingForVolumeDetach:
		return []string{command.Of("To see the attached volumes: kubectl get volumeattachments | grep %s", node)}
	case v1alpha1.ReasonWaitingForInfrastructureDeletion, v1alpha1.ReasonWaitingForBootstrapDeletion:
		ref := m.Spec.InfrastructureRef
		return []string{command.Of("To see the status of its provider: kubectl -n %s get %s %s -o yaml", of, strings.ToLower(ref.Kind), ref.Name)}
	}
	return nil
}

// MaintenanceWhy returns lines about what blocks a maintenance.
func MaintenanceWhy(s *Status) []string {
	lines := []string{fmt.Sprintf("NodeMaintenance %s: %s.", s.Name, s.Brief())}
	if s.RequestedBy != "" {
		lines = append(lines, "Requested by "+s.RequestedBy+".")
	}
	if s.Estimate.Text != "" && !s.Estimate.Known {
		lines = append(lines, "Remaining time: "+s.Estimate.Text+".")
	}
	lines = append(lines, s.Circles...)
	shown := 0
	for i := range s.Blockers {
		b := &s.Blockers[i]
		if b.AtWork {
			continue
		}
		if shown++; shown > mostObstacles {
			continue
		}
		lines = append(lines, capital(b.Sentence()))
	}
	if shown > mostObstacles {
		lines = append(lines, command.Of("%d more block pods: kubectl ebbtide status %s", shown-mostObstacles+s.OmittedBlockersCount, s.Name))
	}
	if shown == 0 {
		lines = append(lines, whatNext(s))
	}
	return lines
}

func whatNext(s *Status) string {
	switch s.State {
	case StatePlanned:
		return command.Of("It is only planned. To start: kubectl ebbtide drain nodemaintenance/%s", s.Name)
	case StateCordoning:
		return "Its nodes accept no new pods and keep the existing ones."
	case StateDrained:
		return command.Of("Its nodes are drained. When your work is done: kubectl ebbtide complete %s", s.Name)
	case StateComplete:
		return "It is complete."
	case StateInvalid:
		return "Its spec is invalid: " + s.Summary
	}
	return "Nothing blocks it."
}
