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

// follow tells how the drain goes on until the nodes are drained.
func (o *drainOptions) follow(ctx context.Context, name string) error {
	streams := o.IOStreams
	// Standard output is for what has been asked for and what has become of it.
	streams.Out = o.ErrOut
	f := &following{IOStreams: streams, connection: &o.connection, Names: []string{name}, Timeout: o.Timeout}
	if err := f.follow(ctx); errors.Is(err, context.Canceled) {
		return detached{}
	} else if err != nil {
		return err
	}
	m := &v1alpha1.NodeMaintenance{}
	err := o.reached.Get(ctx, client.ObjectKey{Name: name}, m)
	if apierrors.IsNotFound(err) || err == nil && m.Spec.Stage == v1alpha1.StageComplete && !drained(m) {
		return notDone("NodeMaintenance %s was completed or deleted by somebody else", name)
	}
	if err != nil {
		return err
	}
	to := o.Out
	if o.forPrograms() {
		to = o.ErrOut
	}
	return o.finished(to, m)
}

// drained is true if the nodes are, or were when the maintenance was completed.
func drained(m *v1alpha1.NodeMaintenance) bool {
	ended := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionSucceeded)
	return meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained) || ended != nil && ended.Reason == v1alpha1.ReasonDrained
}

// finished says that the nodes are empty, and how they are given back.
func (o *drainOptions) finished(to io.Writer, m *v1alpha1.NodeMaintenance) error {
	stay := int32(0)
	for i := range m.Status.NodeStatuses {
		stay += m.Status.NodeStatuses[i].PodsRetained
	}
	words := took(m)
	if stay > 0 {
		words += "; " + phrase.Count(stay, "pod stays on purpose", "pods stay on purpose")
	}
	_, err := fmt.Fprintf(to, "drained: %s%s. When the work is done, give back what it has with\n  %s\n", meant(m), words, o.command("complete %s", m.Name))
	return err
}

// took says how long the drain took, by the times of its status.
func took(m *v1alpha1.NodeMaintenance) string {
	done := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained)
	for _, stage := range m.Status.StageStatuses {
		if stage.Name == v1alpha1.StageDrain && stage.StartTimestamp != nil && done != nil {
			return " in " + duration.HumanDuration(max(done.LastTransitionTime.Sub(stage.StartTimestamp.Time), time.Duration(0)))
		}
	}
	return ""
}
