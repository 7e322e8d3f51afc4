package uninstall

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/apierror"
	"ebbtide.dev/ebbtide/internal/core/trace"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// writers bounds concurrent writes.
	writers = 16
	// attempts bounds the conflicts of an object.
	attempts = 10
	// callsEnd bounds the time in which API servers still call removed webhooks, or reach no manager
	// during a rollout.
	callsEnd = 15 * time.Second
	// betweenCalls is the pause after a failed request.
	betweenCalls = 500 * time.Millisecond
)

// failure is a failed write.
type failure struct {
	kind   kind
	object trace.Object
	err    error
}

// writeAll cleans the objects of these groups in order, and returns the failures.
func (s *surveyor) writeAll(ctx context.Context, groups ...group) (failed []failure) {
	for _, g := range groups {
		for i, err := range writeEach(ctx, g.findings, s.clean) {
			if err != nil {
				failed = append(failed, failure{g.kind, g.findings[i].Object, err})
			}
		}
	}
	return failed
}

// writeEach writes objects concurrently.
func writeEach(ctx context.Context, findings []trace.Finding, write func(context.Context, trace.Finding) error) []error {
	errs := make([]error, len(findings))
	kube.Parallel(writers, len(findings), func(i int) { errs[i] = write(ctx, findings[i]) })
	return errs
}

// clean writes a finding. After a conflict it surveys the object again.
func (s *surveyor) clean(ctx context.Context, finding trace.Finding) error {
	for n := 0; ; n++ {
		err := s.write(ctx, finding)
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err) || n == attempts:
			return err
		}
		var found bool
		if finding, found, err = s.again(ctx, finding); err != nil || !found {
			return err
		}
	}
}

// patiently retries while a webhook cannot be called: it was just removed, or its manager is being
// replaced.
func patiently(ctx context.Context, do func() error) error {
	for since := time.Now(); ; {
		err := do()
		if err == nil || !notCalled(err) || time.Since(since) > callsEnd || !kube.Wait(ctx, betweenCalls) {
			return err
		}
	}
}

// again returns the finding of an object that has changed. An object that is a trace itself stays one.
func (s *surveyor) again(ctx context.Context, before trace.Finding) (trace.Finding, bool, error) {
	object, ok := before.Object.DeepCopyObject().(client.Object)
	if !ok {
		return before, false, nil
	}
	err := s.client.Get(ctx, client.ObjectKeyFromObject(object), object)
	if err != nil || object.GetUID() != before.Object.GetUID() {
		return before, false, client.IgnoreNotFound(err)
	}
	if before.Delete && before.Without == nil {
		before.Object = object
		return before, true, nil
	}
	finding, found := s.find(ctx, object)
	finding.Delete = finding.Delete && before.Delete
	return finding, found, nil
}

// write makes the writes of a finding, patiently.
func (s *surveyor) write(ctx context.Context, f trace.Finding) error {
	return patiently(ctx, func() error { return s.writeOnce(ctx, f) })
}

// writeOnce writes the status of a NodeMaintenance first, as a record: who comes later knows
// that it is over.
func (s *surveyor) writeOnce(ctx context.Context, f trace.Finding) error {
	before, ok := f.Object.DeepCopyObject().(client.Object)
	if !ok {
		return errors.New("it cannot be written")
	}
	if m, ok := before.(*v1alpha1.NodeMaintenance); ok && f.Status != nil {
		m.Status = *f.Status
		if err := s.client.Status().Update(ctx, m); err != nil {
			return fmt.Errorf("write its status: %w", err)
		}
	}
	if f.Without != nil {
		without, ok := f.Without.DeepCopyObject().(client.Object)
		if !ok {
			return errors.New("it cannot be written")
		}
		if err := s.client.Patch(ctx, without, kube.Change(before)); err != nil {
			return err
		}
	}
	if node, ok := before.(*corev1.Node); ok && len(f.Announced) > 0 {
		if err := kube.PublishConditions(ctx, s.client, node, kube.Conditions{Removed: f.Announced}); err != nil {
			return fmt.Errorf("remove its conditions: %w", err)
		}
	}
	if !f.Delete {
		return nil
	}
	uid := before.GetUID()
	return s.client.Delete(ctx, before, client.Preconditions{UID: &uid})
}

// notCalled returns true if a webhook that must agree could not be called.
func notCalled(err error) bool { return apierror.UncalledWebhook(err.Error()) != "" }
