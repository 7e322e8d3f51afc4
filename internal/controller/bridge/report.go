package bridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	core "ebbtide.dev/ebbtide/internal/core/bridge"
)

// reportEvery is the interval of writing the condition of a Machine while pods leave.
const reportEvery = 5 * time.Second

// fieldManager owns the condition.
const fieldManager = "ebbtide-bridge"

// report writes the condition that a decision has, and returns when to come again if it was
// written just now. A Machine that is gone needs none.
func (r *reconciler) report(ctx context.Context, seen *observed, d core.Decision) (wait time.Duration, err error) {
	if d.Condition == nil || seen.object == nil {
		return 0, nil
	}
	if last, known := r.reported.Load(seen.request); known && d.Hook == core.Keep {
		if wait := reportEvery - seen.Now.Sub(last.(time.Time)); wait > 0 && wait <= reportEvery {
			return wait, nil
		}
	}
	condition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d.Condition)
	if err != nil {
		return 0, fmt.Errorf("write a condition: %w", err)
	}
	machine := blank(seen.object.GroupVersionKind())
	machine.SetNamespace(seen.object.GetNamespace())
	machine.SetName(seen.object.GetName())
	machine.SetUID(seen.object.GetUID())
	machine.Object["status"] = map[string]any{"conditions": []any{condition}}
	applied := client.ApplyConfigurationFromUnstructured(machine)
	if err := r.kinds.writer.Status().Apply(ctx, applied, client.FieldOwner(fieldManager), client.ForceOwnership); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("write the condition of Machine %s: %w", client.ObjectKeyFromObject(machine), err)
	}
	r.reported.Store(seen.request, seen.Now)
	return 0, nil
}

// tellRefusal tells people of an act in another cluster that has failed, as for want of a
// right, and returns the error.
func (r *reconciler) tellRefusal(ctx context.Context, seen *observed, d core.Decision, err error) error {
	if !d.Remote || seen.Remote == nil {
		return err
	}
	seen.Remote.Failed, seen.Remote.Report = true, err.Error()
	refused := core.Decide(seen.Snapshot)
	r.tell(seen.request, seen, refused)
	_, reportErr := r.report(ctx, seen, refused)
	return errors.Join(err, reportErr)
}
