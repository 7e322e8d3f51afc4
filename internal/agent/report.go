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

// report tells the API of what has changed. What is refused is told in a later pass.
func (a *Agent) report(ctx context.Context, s core.Snapshot, d core.Decision) {
	a.metrics.count(d.Status.StaticPods)
	if s.Node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	condition := a.tellShutdown(s, &d.Status)
	a.trouble(unlessBehind(a.writeAgent(ctx, s, d.Status)))
	if condition != nil {
		a.trouble(kube.PublishConditions(ctx, a.Client, s.Node, kube.Conditions{Set: []corev1.NodeCondition{*condition}}))
	}
	for _, progress := range d.Evacuations {
		_, err := kube.WriteEvacuationStatus(ctx, a.Client, progress.Evacuation, progress.Status)
		a.trouble(unlessBehind(err))
	}
}

// tellShutdown adds what is known of the shutdown of the node, and returns what the Node is
// to say of it. Before anything is known, what the NodeAgent says stays.
func (a *Agent) tellShutdown(s core.Snapshot, status *v1alpha1.NodeAgentStatus) *corev1.NodeCondition {
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

// neighbour is what the loop of shutdowns knows of an agent.
type neighbour struct{ a *Agent }

// NodeAndPods returns what the watches of the agent have shown; nil is unknown.
func (n neighbour) NodeAndPods() (*corev1.Node, []*corev1.Pod) {
	f := &n.a.feeds
	if !f.node.known() || !f.pods.known() {
		return nil, nil
	}
	node, _ := only[*corev1.Node](f.node)
	return node, objects[*corev1.Pod](f.pods)
}

// ReportSoon has the agent report soon.
func (n neighbour) ReportSoon() { n.a.poke() }

// unlessBehind leaves out what comes of watches that have yet to show what they were told:
// the next pass comes with that.
func unlessBehind(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// writeAgent writes the NodeAgent, which ends with its Node.
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
