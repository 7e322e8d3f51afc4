//go:build linux

package agent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/nodeagent"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodeagents,verbs=create
// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodeagents/status;evacuations/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=nodes/status,verbs=patch

// report writes what has changed to the API. A failed write is retried in a later pass.
func (a *Agent) report(ctx context.Context, s core.Snapshot, d core.Decision) {
	a.metrics.count(d.Status.StaticPods)
	if s.Node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	condition := a.addShutdown(s, &d.Status)
	a.logTrouble(unlessBehind(a.writeAgent(ctx, s, d.Status)))
	if condition != nil {
		a.logTrouble(kube.PublishConditions(ctx, a.Client, s.Node, kube.Conditions{Set: []corev1.NodeCondition{*condition}}))
	}
	for _, progress := range d.Evacuations {
		_, err := kube.WriteEvacuationStatus(ctx, a.Client, progress.Evacuation, progress.Status)
		a.logTrouble(unlessBehind(err))
	}
}

// addShutdown adds the shutdown to the status, and returns the condition for the Node. Until it is
// known, the status stays.
func (a *Agent) addShutdown(s core.Snapshot, status *v1alpha1.NodeAgentStatus) *corev1.NodeCondition {
	if a.Shutdown == nil {
		return nil
	}
	d, known := a.Shutdown.Decided()
	if !known {
		return nil
	}
	d.SetStatus(status, s.Now)
	return d.NodeCondition
}

// neighbour is the agent as the shutdown loop sees it.
type neighbour struct{ a *Agent }

// NodeAndPods returns what the feeds have shown; nil is unknown.
func (n neighbour) NodeAndPods() (*corev1.Node, []*corev1.Pod) {
	f := &n.a.feeds
	if !f.node.known() || !f.pods.known() {
		return nil, nil
	}
	node, _ := only[*corev1.Node](f.node)
	return node, objects[*corev1.Pod](f.pods)
}

// ReportSoon wakes the agent.
func (n neighbour) ReportSoon() { n.a.poke() }

// unlessBehind drops stale writes: the next pass comes when the watches catch up.
func unlessBehind(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// writeAgent writes the NodeAgent, which the Node owns.
func (a *Agent) writeAgent(ctx context.Context, s core.Snapshot, status v1alpha1.NodeAgentStatus) error {
	known := s.Agent
	if known == nil {
		known = &v1alpha1.NodeAgent{ObjectMeta: metav1.ObjectMeta{
			Name: a.Self.Node, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: s.Node.Name, UID: s.Node.UID}},
		}}
		if err := a.Client.Create(ctx, known); err != nil {
			return fmt.Errorf("create the NodeAgent: %w", err)
		}
	}
	if equality.Semantic.DeepEqual(known.Status, status) {
		return nil
	}
	changed := known.DeepCopy()
	changed.Status = status
	if err := a.Client.Status().Patch(ctx, changed, kube.Change(known)); err != nil {
		return fmt.Errorf("write the status of the NodeAgent: %w", err)
	}
	return nil
}
