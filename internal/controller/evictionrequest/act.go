package evictionrequest

import (
	"context"
	"errors"
	"fmt"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	lifecycleac "k8s.io/client-go/applyconfigurations/lifecycle/v1alpha1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/kube"
)

// errAside ends a decision when another client is the controller.
var errAside = errors.New("another controller handles EvictionRequests")

// The right to delete Evictions is what clusters such as OpenShift request of whoever gives
// them owners. Nothing is ever deleted with it.
// +kubebuilder:rbac:groups=lifecycle.k8s.io,resources=evictions,verbs=create;patch;delete
// +kubebuilder:rbac:groups=lifecycle.k8s.io,resources=evictionrequests/status;evictions/status,verbs=patch

// act writes what was decided, each under the version that it was decided on. A write that
// is refused holds up no other, but those who asked are told nothing about a pod whose
// Eviction could not be written: it would not be true yet.
func (r *Reconciler) act(ctx context.Context, d core.Decision) error {
	a := attempt{r: r, failed: map[core.Target]bool{}}
	for _, e := range d.Creations {
		a.ofEviction(ctx, e, func() error { return r.create(ctx, e) })
	}
	// A status that is written behind metadata has another version.
	versions := map[string]string{}
	for _, e := range d.Metadata {
		a.try(ctx, func() (err error) {
			versions[e.Name], err = r.mend(ctx, e)
			return err
		})
	}
	for _, change := range d.Evictions {
		a.ofEviction(ctx, change.Eviction, func() error { return r.writeEviction(ctx, change, versions[change.Eviction.Name]) })
	}
	for _, change := range d.Requests {
		if target, named := core.TargetOf(change.Request); !named || !a.failed[target] {
			a.try(ctx, func() error { return r.writeRequest(ctx, change) })
		}
	}
	return errors.Join(a.errs...)
}

// attempt is one decision being written.
type attempt struct {
	r    *Reconciler
	errs []error
	// failed are the pods of which an Eviction could not be written.
	failed map[core.Target]bool
}

// try makes a write unless another client is the controller by now, and returns false if it
// came to nothing. That it was decided on old state is no error.
func (a *attempt) try(ctx context.Context, write func() error) bool {
	if !a.r.acts() {
		log.FromContext(ctx).V(1).Info("Left the rest to the other controller", "reason", errAside.Error())
		return false
	}
	err := write()
	if problem := kube.WithoutStale(ctx, err); problem != nil {
		a.errs = append(a.errs, problem)
	}
	return err == nil
}

func (a *attempt) ofEviction(ctx context.Context, e *lifecyclev1alpha1.Eviction, write func() error) {
	target, _ := core.EvictionTarget(e)
	if !a.try(ctx, write) {
		a.failed[target] = true
	}
}

func (r *Reconciler) create(ctx context.Context, e *lifecyclev1alpha1.Eviction) error {
	err := r.client.Create(ctx, e, client.FieldOwner(core.FieldManager))
	switch {
	case apierrors.IsAlreadyExists(err) && !r.shows(ctx, e):
		// The cache will, and the next number is taken if it is of another pod.
		return apierrors.NewConflict(lifecyclev1alpha1.Resource("evictions"), e.Name, err)
	case err != nil:
		return fmt.Errorf("create Eviction %s: %w", e.Name, err)
	}
	log.FromContext(ctx).Info("Began an eviction that was asked for", "eviction", e.Name)
	return nil
}

// shows reports whether the cache has an Eviction of this name.
func (r *Reconciler) shows(ctx context.Context, e *lifecyclev1alpha1.Eviction) bool {
	return r.client.Get(ctx, client.ObjectKeyFromObject(e), &lifecyclev1alpha1.Eviction{}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency) == nil
}

// mend gives an Eviction the labels and owners that it lacks, and returns its new version.
func (r *Reconciler) mend(ctx context.Context, e *lifecyclev1alpha1.Eviction) (version string, err error) {
	target, _ := core.EvictionTarget(e)
	applied := lifecycleac.Eviction(e.Name, e.Namespace).WithUID(e.UID).WithResourceVersion(e.ResourceVersion).
		WithLabels(e.Labels).
		WithSpec(lifecycleac.EvictionSpec().WithTarget(lifecycleac.EvictionTarget().WithPod(
			lifecycleac.EvictionPodReference().WithName(target.Name).WithUID(target.UID))))
	for _, owner := range e.OwnerReferences {
		applied.WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(owner.APIVersion).WithKind(owner.Kind).WithName(owner.Name).WithUID(owner.UID))
	}
	if err := r.client.Apply(ctx, applied, client.FieldOwner(core.FieldManager), client.ForceOwnership); err != nil {
		return "", fmt.Errorf("label Eviction %s: %w", e.Name, err)
	}
	if applied.ResourceVersion == nil {
		return "", nil
	}
	return *applied.ResourceVersion, nil
}

// writeEviction writes the controller's part of the status. What responders report is theirs.
func (r *Reconciler) writeEviction(ctx context.Context, change core.EvictionChange, version string) error {
	if version == "" {
		version = change.Eviction.ResourceVersion
	}
	status := lifecycleac.EvictionStatus().WithObservedGeneration(*change.Status.ObservedGeneration).
		WithConditions(conditions(change.Status.Conditions)...)
	for _, one := range change.Status.Requesters {
		status.WithRequesters(lifecycleac.Requester().WithName(one.Name).WithIntent(one.Intent))
	}
	for _, one := range change.Status.TargetResponders {
		turn := lifecycleac.TargetResponder().WithName(one.Name).WithState(one.State)
		turn.Priority = one.Priority
		status.WithTargetResponders(turn)
	}
	for i := range change.Status.Responders {
		one := lifecycleac.ResponderStatus().WithName(change.Status.Responders[i].Name)
		one.StartTime = change.Status.Responders[i].StartTime
		status.WithResponders(one)
	}
	applied := lifecycleac.Eviction(change.Eviction.Name, change.Eviction.Namespace).
		WithUID(change.Eviction.UID).WithResourceVersion(version).WithStatus(status)
	if err := r.client.Status().Apply(ctx, applied, client.FieldOwner(core.FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("write the status of Eviction %s: %w", change.Eviction.Name, err)
	}
	logger := log.FromContext(ctx).WithValues("eviction", change.Eviction.Name)
	if active := core.Active(&change.Status); active != nil {
		logger.V(1).Info("It is a responder's turn", "responder", active.Name)
	} else {
		logger.Info("An eviction is over", "conditions", change.Status.Conditions)
	}
	return nil
}

func (r *Reconciler) writeRequest(ctx context.Context, change core.RequestChange) error {
	applied := lifecycleac.EvictionRequest(change.Request.Name, change.Request.Namespace).
		WithUID(change.Request.UID).WithResourceVersion(change.Request.ResourceVersion).
		WithStatus(lifecycleac.EvictionRequestStatus().WithObservedGeneration(*change.Status.ObservedGeneration).
			WithConditions(conditions(change.Status.Conditions)...))
	if err := r.client.Status().Apply(ctx, applied, client.FieldOwner(core.FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("write the status of EvictionRequest %s: %w", change.Request.Name, err)
	}
	return nil
}

// conditions returns those of the controller, as they are applied.
func conditions(all []metav1.Condition) []*metav1ac.ConditionApplyConfiguration {
	var applied []*metav1ac.ConditionApplyConfiguration
	for _, c := range all {
		if c.Type == string(lifecyclev1alpha1.EvictionConditionFailed) || c.Type == string(lifecyclev1alpha1.EvictionConditionTargetEvicted) {
			applied = append(applied, metav1ac.Condition().WithType(c.Type).WithStatus(c.Status).
				WithReason(c.Reason).WithMessage(c.Message).WithLastTransitionTime(c.LastTransitionTime))
		}
	}
	return applied
}
