package uninstall

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/trace"
	"ebbtide.dev/ebbtide/internal/kube"
)

// end requests the end of everything in progress, and waits for the managers.
//
// Errors: something is still in progress at the timeout; the error names it.
func (h Hook) end(ctx context.Context, s *surveyor) error {
	var going []string
	told := map[string]bool{}
	err := h.until(ctx, func() (over bool, err error) {
		going, err = h.endOnce(ctx, s, told)
		return len(going) == 0, err
	}, maintenances, evacuations, requests, drainRecords, agents)
	switch {
	case err == nil:
		return nil
	case notCalled(err):
		return noManager(err)
	case ctx.Err() == nil || len(going) == 0:
		return err
	}
	return fmt.Errorf("%w; still in progress (%d): %s. If no manager is running or can write, run "+
		"kubectl ebbtide release --yes, and then uninstall without hooks", err, len(going), phrase.Some(going, shown))
}

// noManager returns the error of webhooks without a manager.
func noManager(err error) error {
	return errors.New("no manager is running to release nodes: start one, or run kubectl ebbtide release --yes " +
		"and then uninstall without hooks. The API server reports: " + excerpt.Line(err.Error(), maxError))
}

// step are writes that end objects of a kind.
type step struct {
	// title describes the writes, before a list of names.
	title    string
	findings []trace.Finding
}

func (s *step) add(f trace.Finding) { s.findings = append(s.findings, f) }

// remove adds the deletion of an object, once.
func (s *step) remove(object client.Object) {
	if object.GetDeletionTimestamp() == nil {
		s.add(trace.Finding{Object: object, Delete: true})
	}
}

// endOnce requests the end of everything in progress once, and returns what still is. Maintenances end
// before the objects that depend on them.
func (h Hook) endOnce(ctx context.Context, s *surveyor, told map[string]bool) (going []string, err error) {
	if err := h.stopRollouts(ctx, s, told); err != nil {
		return nil, err
	}
	planned, begun := step{title: "Deleting planned NodeMaintenances"}, step{title: "Completing NodeMaintenances"}
	unfinished, err := h.unfinished(ctx, s, told)
	for _, m := range unfinished {
		going = append(going, "NodeMaintenance "+m.Name)
		switch {
		case m.DeletionTimestamp != nil, m.Spec.Stage == v1alpha1.StageComplete:
		case !maintenance.Begun(m):
			// Completing it would uncordon nodes that others have cordoned.
			planned.remove(m)
		default:
			complete := m.DeepCopy()
			complete.Spec.Stage = v1alpha1.StageComplete
			begun.add(trace.Finding{Object: m, Without: complete})
		}
	}
	if err != nil || len(going) > 0 {
		return going, errors.Join(err, h.run(ctx, s, told, planned, begun))
	}
	return h.endRest(ctx, s, told)
}

// stopRollouts deletes all rollouts. Their managers release them when their NodeMaintenances are
// complete; otherwise the sweep does.
func (h Hook) stopRollouts(ctx context.Context, s *surveyor, told map[string]bool) error {
	stopped := step{title: "Deleting NodeRollouts"}
	err := s.each(ctx, rollouts, func(object client.Object) { stopped.remove(object) })
	return errors.Join(err, h.run(ctx, s, told, stopped))
}

// endRest ends the objects that do not depend on NodeMaintenances. Managers end the other Evacuations.
func (h Hook) endRest(ctx context.Context, s *surveyor, told map[string]bool) (going []string, err error) {
	withdrawn, requested, promised := step{title: "Withdrawing Evacuations"}, step{title: "Deleting EvictionRequests"},
		step{title: "Deleting DrainRecords"}
	err = errors.Join(
		s.each(ctx, evacuations, func(object client.Object) {
			going = append(going, "Evacuation "+nameOf(object)+holders(object))
			if finding, _ := trace.Of(object, trace.Facts{}); finding.Without != nil {
				withdrawn.add(trace.Finding{Object: object, Without: finding.Without})
			}
		}),
		s.each(ctx, requests, func(object client.Object) {
			if _, ours := trace.Of(object, trace.Facts{}); ours {
				going = append(going, "EvictionRequest "+nameOf(object)+holders(object))
				requested.remove(object)
			}
		}),
		s.each(ctx, drainRecords, func(object client.Object) {
			going = append(going, "DrainRecord "+nameOf(object)+holders(object))
			promised.remove(object)
		}),
	)
	held, unread := s.heldStaticPods(ctx)
	if held != "" {
		going = append(going, held)
	}
	return going, errors.Join(err, unread, h.run(ctx, s, told, withdrawn, requested, promised))
}

// run makes the writes of these steps, and prints each once.
func (h Hook) run(ctx context.Context, s *surveyor, told map[string]bool, steps ...step) error {
	var failed []error
	for _, step := range steps {
		h.print(step, told)
		for i, err := range writeEach(ctx, step.findings, s.write) {
			// A stale write is repeated.
			if err != nil && !kube.IsStale(err) {
				failed = append(failed, fmt.Errorf("%s: %s: %w", step.title, nameOf(step.findings[i].Object), err))
			}
		}
	}
	if more := len(failed) - named; more > 0 {
		failed = append(failed[:named], fmt.Errorf("and %d more", more))
	}
	return errors.Join(failed...)
}

func (h Hook) print(s step, told map[string]bool) {
	var names []string
	for _, finding := range s.findings {
		if key := s.title + string(finding.Object.GetUID()); !told[key] {
			told[key] = true
			names = append(names, nameOf(finding.Object))
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(h.Out, "%s (%d): %s\n", s.title, len(names), phrase.Some(names, shown))
	}
}

// holders names the finalizers of an object.
func holders(object client.Object) string {
	if len(object.GetFinalizers()) == 0 {
		return ""
	}
	return " (finalizers " + excerpt.Line(strings.Join(object.GetFinalizers(), ", "), maxLock) + ")"
}
