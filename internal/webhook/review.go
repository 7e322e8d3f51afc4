package webhook

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// reviewer asks the API server what somebody may do. Its client reads and writes
// without a cache: there is nothing to list about reviews.
type reviewer struct{ client client.Client }

// may returns true if the user may do this. Otherwise why is what the authorizer
// says about it, which may be nothing.
//
// Errors: the review failed; that is not a yes.
func (r reviewer) may(ctx context.Context, user authenticationv1.UserInfo, what authorizationv1.ResourceAttributes) (allowed bool, why string, err error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &what, User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
	}}
	if err := r.client.Create(ctx, review); err != nil {
		return false, "", fmt.Errorf("review what user %q may do: %w", user.Username, err)
	}
	status := &review.Status
	if status.Reason == "" {
		status.Reason = status.EvaluationError
	}
	return status.Allowed && !status.Denied, status.Reason, nil
}

// refused returns those of the nodes that the user may not delete, in order. All
// are reviewed at the same time.
//
// Errors: a review failed.
func (r reviewer) refused(ctx context.Context, user authenticationv1.UserInfo, nodes []string) ([]string, error) {
	allowed := make([]bool, len(nodes))
	group, ctx := errgroup.WithContext(ctx)
	for i, node := range nodes {
		group.Go(func() (err error) {
			allowed[i], _, err = r.may(ctx, user, deleteNode(node))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var refused []string
	for i, node := range nodes {
		if !allowed[i] {
			refused = append(refused, node)
		}
	}
	return refused, nil
}
