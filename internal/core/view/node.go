package view

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// Node is a printed node of a maintenance.
type Node struct {
	Name    string `json:"name"`
	State   State  `json:"state"`
	Message string `json:"message,omitempty"`
	// PodsLeft must leave: PodsEvacuating were asked to, PodsBlocked are blocked.
	PodsLeft       int `json:"podsLeft"`
	PodsEvacuating int `json:"podsEvacuating"`
	PodsBlocked    int `json:"podsBlocked"`
	PodsRetained   int `json:"podsRetained"`
	// PodsGone left while the maintenance was watched.
	PodsGone int `json:"podsGone,omitempty"`
	// Blockers are sorted by importance; Retained are reasons why pods stay.
	Blockers []Blocker `json:"blockers,omitempty"`
	Retained []Blocker `json:"retained,omitempty"`
	// Pods are at most ten of those that were asked to leave, blocked ones first.
	Pods             []Pod `json:"pods,omitempty"`
	OmittedPodsCount int   `json:"omittedPodsCount,omitempty"`
}

var nodeOrder = map[State]int{StateBlocked: 0, StateDraining: 1, StateWaiting: 2, StateCordoning: 3, StatePlanned: 4, StateCompleting: 5, StateReturned: 6, StateDrained: 7, StateComplete: 8}

// Pod is a printed pod that was asked to leave.
type Pod struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	State     PodState `json:"state"`
	// Reason of a refusal; Message starts with it.
	Reason    string       `json:"reason,omitempty"`
	Message   string       `json:"message,omitempty"`
	SinceTime *metav1.Time `json:"sinceTime,omitempty"`
}

// PodState is the progress of a pod.
type PodState string

// States of pods that were asked to leave.
const (
	PodRefused     PodState = "refused"
	PodAsked       PodState = "asked"
	PodMoved       PodState = "moved"
	PodTerminating PodState = "terminating"
)

var podOrder = map[PodState]int{PodRefused: 0, PodAsked: 1, PodMoved: 2, PodTerminating: 3}

func (s *Snapshot) node(m *v1alpha1.NodeMaintenance, said *v1alpha1.NodeMaintenanceNodeStatus) Node {
	node := Node{
		Name: said.NodeRef.Name, Message: excerpt.Line(said.DrainMessage, maxWords),
		PodsLeft: count(said.PodsPendingEvacuation) + count(said.PodsEvacuating), PodsEvacuating: count(said.PodsEvacuating), PodsRetained: count(said.PodsRetained),
		PodsGone: s.Seen[m.Name].Nodes[said.NodeRef.Name],
		Blockers: inOrder(said.Blockers), Retained: inOrder(said.Retained),
	}
	held := false
	for _, b := range node.Blockers {
		held = held || !b.AtWork
		if !b.AtWork {
			node.PodsBlocked += b.PodCount
		}
	}
	node.PodsBlocked = min(node.PodsBlocked, node.PodsLeft)
	node.State = nodeState(m, said, held)
	node.Pods = PodsOf(s.Pods[node.Name], said.Blockers)
	node.OmittedPodsCount = max(0, len(node.Pods)-maxPods)
	node.Pods = node.Pods[:len(node.Pods)-node.OmittedPodsCount]
	return node
}

// PodsOf returns the pods that were asked to leave, blocked ones first.
func PodsOf(leaving []Leaving, said []v1alpha1.Blocker) []Pod {
	var pods []Pod
	for _, one := range leaving {
		if one.Pod != nil && one.Evacuation != nil {
			pods = append(pods, podOf(one, said))
		}
	}
	slices.SortFunc(pods, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(podOrder[a.State], podOrder[b.State]), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

func count(n int32) int { return max(0, int(n)) }

func nodeState(m *v1alpha1.NodeMaintenance, said *v1alpha1.NodeMaintenanceNodeStatus, held bool) State {
	stage := maintenance.Stage(m)
	switch {
	case stage == v1alpha1.StageIdle:
		return StatePlanned
	case stage == v1alpha1.StageDrain && said.State == v1alpha1.NodeStateReturned:
		return StateReturned
	case stage == v1alpha1.StageDrain && said.State.IsDrained():
		return StateDrained
	case held:
		return StateBlocked
	case stage == v1alpha1.StageCordon:
		return StateCordoning
	case stage == v1alpha1.StageComplete:
		return StateCompleting
	case said.PodsEvacuating > 0:
		return StateDraining
	}
	return StateWaiting
}

func podOf(one Leaving, said []v1alpha1.Blocker) Pod {
	pod := Pod{Namespace: one.Pod.Namespace, Name: one.Pod.Name, State: PodAsked, SinceTime: one.Evacuation.CreationTimestamp.DeepCopy()}
	status := &one.Evacuation.Status
	pod.Message = excerpt.Line(status.Message, maxWords)
	refusal, refused := refusalOf(pod.Namespace, status, said)
	switch {
	case one.Pod.DeletionTimestamp != nil:
		pod.State, pod.Message, pod.SinceTime = PodTerminating, "", nil
		if grace := one.Pod.DeletionGracePeriodSeconds; grace != nil && *grace > 0 {
			pod.Message = fmt.Sprintf("grace period ends at %s", one.Pod.DeletionTimestamp.UTC().Format("15:04:05 MST"))
		}
	case refused:
		pod.State, pod.SinceTime = PodRefused, refusal.SinceTime.DeepCopy()
		pod.Reason = excerpt.Line(string(refusal.Type), maxWords)
		pod.Message = excerpt.Line(string(refusal.Type)+": "+refusal.Message, maxWords)
	case status.ActiveEvacuatorClass != "" && !status.ActiveEvacuatorCompleted:
		pod.State = PodMoved
		said := pod.Message
		pod.Message = "by " + excerpt.Line(status.ActiveEvacuatorClass, maxWords)
		if said != "" {
			pod.Message = excerpt.Line(pod.Message+": "+said, maxWords)
		}
	}
	return pod
}
