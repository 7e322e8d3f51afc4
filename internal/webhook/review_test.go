package webhook

import (
	"context"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ebbtide.dev/ebbtide/test/fault"
)

// reviewing is an API server in memory that allows everybody everything, or fails to review it.
func reviewing(t *testing.T, fails error, objects ...client.Object) client.WithWatch {
	t.Helper()
	return interceptor.NewClient(fault.NewServer(t, objects...).WithWatch, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			review, reviewed := object.(*authorizationv1.SubjectAccessReview)
			if !reviewed {
				return c.Create(ctx, object, options...)
			}
			review.Status.Allowed = fails == nil
			return fails
		},
	})
}
