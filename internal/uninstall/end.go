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

// end asks for the end of everything that is going on, and waits until managers have seen
// to that.
//
// Errors: something goes on when the time is up; the error names it and for whom it waits.
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
	return fmt.Errorf("%w; still going on (%d): %s. If no manager runs, or none can write, remove what is left with "+
		"kubectl ebbtide release --yes, and then uninstall without hooks", err, len(going), phrase.Some(going, shown))
}

// noManager says what to do where nobody answers for Ebbtide.
func noManager(err error) error {
	return errors.New("no manager answers, so that none gives anything back: start one, or remove what is left with kubectl ebbtide release --yes, " +
		"and then uninstall without hooks. The API server says: " + excerpt.Line(err.Error(), maxError))
}

// step is what is asked of the API server to end objects of a kind.
type step struct {
	// says is what it means, in words that a list of names follows.
	says     string
	findings []trace.Finding
}

func (s *step) add(f trace.Finding) { s.findings = append(s.findings, f) }

// remove asks for the deletion of an object, once.
func (s *step) remove(object client.Object) {
	if object.GetDeletionTimestamp() == nil {
		s.add(trace.Finding{Object: object, Delete: true})
	}
}

// endOnce asks for the end of what goes on, if nobody has yet, and returns what still does.
// What follows from a maintenance is waited for until all maintenances are over.
func (h Hook) endOnce(ctx context.Context, s *surveyor, told map[string]bool) (going []string, err error) {
	planned, begun := step{says: "Deleting planned NodeMaintenances"}, step{says: "Completing NodeMaintenances"}
	unfinished, err := h.unfinished(ctx, s, told)
	for _, m := range unfinished {
		going = append(going, "NodeMaintenance "+m.Name)
		switch {
		case m.DeletionTimestamp != nil, m.Spec.Stage == v1alpha1.StageComplete:
		case !maintenance.Begun(m):
			// Complete, it would make its nodes schedulable, whoever has cordoned them.
			planned.remove(m)
		default:
			complete := m.DeepCopy()
			complete.Spec.Stage = v1alpha1.StageComplete
			begun.add(trace.Finding{Object: m, Without: complete})
		}
	}
	if err != nil || len(going) > 0 {
		return going, errors.Join(err, h.ask(ctx, s, told, planned, begun))
	}
	return h.endRest(ctx, s, told)
}

// endRest ends what others than NodeMaintenances have asked for. Managers see to the rest of
// the Evacuations.
func (h Hook) endRest(ctx context.Context, s *surveyor, told map[string]bool) (going []string, err error) {
	withdrawn, requested, promised := step{says: "Withdrawing Evacuations"}, step{says: "Nobody asks by EvictionRequests any more"},
		step{says: "Nobody promises any more that pods stay on nodes"}
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
	held, unread := s.keptAway(ctx)
	if held != "" {
		going = append(going, held)
	}
	return going, errors.Join(err, unread, h.ask(ctx, s, told, withdrawn, requested, promised))
}

// ask makes the writes of these steps, and tells of each once.
func (h Hook) ask(ctx context.Context, s *surveyor, told map[string]bool, steps ...step) error {
	var failed []error
	for _, step := range steps {
		h.tell(step, told)
		for i, err := range writeEach(ctx, step.findings, s.write) {
			// Who was too late looks again.
			if err != nil && !kube.IsStale(err) {
				failed = append(failed, fmt.Errorf("%s: %s: %w", step.says, nameOf(step.findings[i].Object), err))
			}
		}
	}
	if more := len(failed) - named; more > 0 {
		failed = append(failed[:named], fmt.Errorf("and %d more", more))
	}
	return errors.Join(failed...)
}

func (h Hook) tell(s step, told map[string]bool) {
	var names []string
	for _, finding := range s.findings {
		if key := s.says + string(finding.Object.GetUID()); !told[key] {
			told[key] = true
			names = append(names, nameOf(finding.Object))
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(h.Out, "%s (%d): %s\n", s.says, len(names), phrase.Some(names, shown))
	}
}

// holders names the finalizers by which an object is held.
func holders(object client.Object) string {
	if len(object.GetFinalizers()) == 0 {
		return ""
	}
	return " (held by " + excerpt.Line(strings.Join(object.GetFinalizers(), ", "), maxLock) + ")"
}
