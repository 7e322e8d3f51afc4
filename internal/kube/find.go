package kube

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Find reads an object from the cache or else from the API server, and reports whether it exists:
// the cache may be behind.
func Find(ctx context.Context, cached, live client.Reader, key client.ObjectKey, object client.Object) (found bool, err error) {
	err = cached.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		err = live.Get(ctx, key, object)
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
