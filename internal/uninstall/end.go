package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/trace"
	"ebbtide.dev/ebbtide/internal/kube"
)

// end asks for the end of everything that is going on, and waits until managers have seen
// to that.
//
// Errors: something goes on when the time is up; the error names it and for whom it waits.
func (h Hook) end(ctx context.Context, s *surveyor) error {
	changed, err := watch(ctx, h.Client, maintenances, evacuations, requests, drainRecords, agents)
	if err != nil {
		return err
	}
	defer changed.end()
	told := map[string]bool{}
	for {
		going, err := h.endOnce(ctx, s, told)
		if err != nil {
			return ended(ctx, going, err)
		}
		if len(going) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ended(ctx, going, context.Cause(ctx))
		case <-changed.happened:
			if !kube.Wait(ctx, between) {
				return ended(ctx, going, context.Cause(ctx))
			}
		}
	}
}

// ended says what had not ended.
func ended(ctx context.Context, going []string, err error) error {
	switch {
	case notCalled(err):
		return noManager(err)
	case ctx.Err() == nil || len(going) == 0:
		return err
	}
	return fmt.Errorf("%w; still going on (%d): %s. If no manager runs, or none can write, remove what is left with "+
		"kubectl ebbtide release --yes, and then uninstall without hooks", err, len(going), list(going))
}

// noManager says what to do where nobody answers for Ebbtide.
func noManager(err error) error {
	return errors.New("no manager answers, so that none gives anything back: start one, or remove what is left with kubectl ebbtide release --yes, " +
		"and then uninstall without hooks. The API server says: " + excerpt.Line(err.Error(), maxError))
}

// endOnce asks for the end of what goes on, if nobody has yet, and returns what still does.
// What follows from a maintenance is waited for until all maintenances are over.
func (h Hook) endOnce(ctx context.Context, s *surveyor, told map[string]bool) (going []string, err error) {
	var asked []change
	unfinished, err := h.unfinished(ctx, s, told)
	for _, m := range unfinished {
		going = append(going, "NodeMaintenance "+m.Name)
		asked = append(asked, h.endOf(m)...)
	}
	if err != nil || len(going) > 0 {
		return going, errors.Join(err, h.ask(ctx, asked, told))
	}
	err = errors.Join(
		s.each(ctx, evacuations, func(object client.Object) {
			going = append(going, "Evacuation "+nameOf(object)+holders(object))
			asked = append(asked, h.withdrawal(object)...)
		}),
		s.each(ctx, requests, func(object client.Object) {
			if _, ours := trace.Of(object, trace.Facts{}); !ours {
				return
			}
			going = append(going, "EvictionRequest "+nameOf(object)+holders(object))
			if object.GetDeletionTimestamp() == nil {
				asked = append(asked, change{"Nobody asks by EvictionRequests any more", object, h.remove})
			}
		}),
		s.each(ctx, drainRecords, func(object client.Object) {
			going = append(going, "DrainRecord "+nameOf(object)+holders(object))
			if object.GetDeletionTimestamp() == nil {
				asked = append(asked, change{"Nobody promises any more that pods stay on nodes", object, h.remove})
			}
		}),
	)
	held, unread := s.keptAway(ctx)
	if held != "" {
		going = append(going, held)
	}
	return going, errors.Join(err, unread, h.ask(ctx, asked, told))
}

// change is what is asked of the API server to end something.
type change struct {
	// says is what it means, in words that a list of names follows.
	says   string
	object client.Object
	do     func(context.Context, client.Object) error
}

// ask makes all changes, so many at a time, and tells of each once.
func (h Hook) ask(ctx context.Context, asked []change, told map[string]bool) error {
	h.tell(asked, told)
	failed := make([]error, len(asked))
	kube.Parallel(writers, len(asked), func(i int) {
		one := asked[i]
		// Who was too late looks again.
		if err := patiently(ctx, func() error { return one.do(ctx, one.object) }); err != nil && !kube.IsStale(err) {
			failed[i] = fmt.Errorf("%s: %s: %w", one.says, nameOf(one.object), err)
		}
	})
	failed = slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	if more := len(failed) - named; more > 0 {
		failed = append(failed[:named], fmt.Errorf("and %d more", more))
	}
	return errors.Join(failed...)
}

func (h Hook) tell(asked []change, told map[string]bool) {
	names, order := map[string][]string{}, []string(nil)
	for _, one := range asked {
		if key := one.says + string(one.object.GetUID()); !told[key] {
			told[key] = true
			if len(names[one.says]) == 0 {
				order = append(order, one.says)
			}
			names[one.says] = append(names[one.says], nameOf(one.object))
		}
	}
	for _, says := range order {
		fmt.Fprintf(h.Out, "%s (%d): %s\n", says, len(names[says]), list(names[says]))
	}
}

// endOf completes a maintenance, or removes a plan: complete, it would make its nodes
// schedulable, whoever has cordoned them.
func (h Hook) endOf(m *v1alpha1.NodeMaintenance) []change {
	switch {
	case m.DeletionTimestamp != nil, m.Spec.Stage == v1alpha1.StageComplete:
		return nil
	case !maintenance.Begun(m):
		return []change{{"Deleting planned NodeMaintenances", m, h.remove}}
	}
	return []change{{"Completing NodeMaintenances", m, func(ctx context.Context, object client.Object) error {
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"stage":%q}}`, object.GetUID(), v1alpha1.StageComplete)
		return h.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	}}}
}

// withdrawal takes back what others than NodeMaintenances have asked for. A manager sees to
// the rest of the Evacuation.
func (h Hook) withdrawal(e client.Object) []change {
	finding, found := trace.Of(e, trace.Facts{})
	if !found || finding.Without == nil {
		return nil
	}
	without, ok := finding.Without.(client.Object)
	if !ok {
		return nil
	}
	return []change{{"Withdrawing Evacuations", e, func(ctx context.Context, object client.Object) error {
		return h.Client.Patch(ctx, without.DeepCopyObject().(client.Object), kube.Change(object))
	}}}
}

func (h Hook) remove(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	return h.Client.Delete(ctx, object, client.Preconditions{UID: &uid})
}

// holders names the finalizers by which an object is held.
func holders(object client.Object) string {
	if len(object.GetFinalizers()) == 0 {
		return ""
	}
	return " (held by " + excerpt.Line(strings.Join(object.GetFinalizers(), ", "), maxLock) + ")"
}
