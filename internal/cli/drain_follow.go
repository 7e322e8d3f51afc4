package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// follow prints the progress until the nodes are drained.
func (o *drainOptions) follow(ctx context.Context, name string) error {
	streams := o.IOStreams
	// Standard output is for the request and its result.
	streams.Out = o.ErrOut
	f := &following{IOStreams: streams, connection: &o.connection, subjects: []subject{{kind: kindMaintenance, name: name}}, Timeout: o.Timeout}
	if err := f.follow(ctx); errors.Is(err, context.Canceled) {
		return detached("")
	} else if err != nil {
		return err
	}
	m := &v1alpha1.NodeMaintenance{}
	err := o.reached.Get(ctx, client.ObjectKey{Name: name}, m)
	if late := givenBack(m); err == nil && late != "" {
		return notDone("NodeMaintenance %s: %s", name, late)
	}
	if apierrors.IsNotFound(err) || err == nil && m.Spec.Stage == v1alpha1.StageComplete && !isDrained(m) {
		return notDone("NodeMaintenance %s was completed or deleted before its nodes were drained", name)
	}
	if err != nil {
		return err
	}
	to := o.Out
	if o.isForPrograms() {
		to = o.ErrOut
	}
	return o.printDrained(to, m)
}

// isDrained reports whether the nodes are drained, or were when the maintenance was completed.
func isDrained(m *v1alpha1.NodeMaintenance) bool {
	ended := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionSucceeded)
	return meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained) || ended != nil && ended.Reason == v1alpha1.ReasonDrained
}

// givenBack returns which nodes were given back at the deadline; empty if none were.
func givenBack(m *v1alpha1.NodeMaintenance) string {
	for _, c := range m.Status.Conditions {
		if c.Reason == v1alpha1.ReasonDeadlinePassed || c.Type == v1alpha1.ConditionPastDeadline && c.Reason == v1alpha1.ReasonGivenBack {
			return c.Message
		}
	}
	return ""
}

// printDrained prints that the nodes are drained, and how to complete the maintenance.
func (o *drainOptions) printDrained(to io.Writer, m *v1alpha1.NodeMaintenance) error {
	stay := int32(0)
	for i := range m.Status.NodeStatuses {
		stay += m.Status.NodeStatuses[i].PodsRetained
	}
	words := took(m)
	if stay > 0 {
		words += "; " + phrase.Count(stay, "pod retained", "pods retained")
	}
	_, err := fmt.Fprintf(to, "Drained %s%s. Return to service with\n  %s\n", selectionOf(m), words, o.command("complete %s", m.Name))
	return err
}

// took returns the duration of the drain by its status.
func took(m *v1alpha1.NodeMaintenance) string {
	done := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained)
	for _, stage := range m.Status.StageStatuses {
		if stage.Name == v1alpha1.StageDrain && stage.StartTimestamp != nil && done != nil {
			return " in " + duration.HumanDuration(max(done.LastTransitionTime.Sub(stage.StartTimestamp.Time), time.Duration(0)))
		}
	}
	return ""
}
