package kube

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// WithoutStale drops a stale write: the event of the newer state reconciles the object again.
func WithoutStale(ctx context.Context, err error) error {
	if IsStale(err) {
		log.FromContext(ctx).V(1).Info("Dropped a stale write", "reason", err.Error())
		return nil
	}
	return err
}

// IsStale reports whether a write was refused because it was decided on old state.
func IsStale(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }
