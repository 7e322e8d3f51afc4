package webhook

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/internal/core/validate"
)

// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// reviewer reviews the rights of users by the API server, with a client without a cache.
type reviewer struct{ client client.Client }

// may reports whether the user may do this; if not, why is the authorizer's reason or empty.
//
// Errors: the review failed, which does not allow anything.
func (r reviewer) may(ctx context.Context, user authenticationv1.UserInfo, what authorizationv1.ResourceAttributes) (allowed bool, why string, err error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &what, User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
	}}
	if err := r.client.Create(ctx, review); err != nil {
		return false, "", fmt.Errorf("review the rights of user %q: %w", user.Username, err)
	}
	status := &review.Status
	return status.Allowed && !status.Denied, cmp.Or(status.Reason, status.EvaluationError), nil
}

// authorize denies the request of a user who may not do this, with the message of refusal.
func (r reviewer) authorize(ctx context.Context, request admission.Request, what authorizationv1.ResourceAttributes, refusal func(why string) string) admission.Response {
	allowed, why, err := r.may(ctx, request.UserInfo, what)
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case !allowed:
		return admission.Denied(refusal(why))
	}
	return admission.Allowed("")
}

// refused returns the nodes that the user may not delete, in order. They are reviewed concurrently.
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

// selection is a change of an object that drains nodes.
type selection interface {
	// Affected returns the nodes that the author must be allowed to delete.
	Affected() ([]string, error)
	// TakesLaterNodes reports whether the object may select nodes that come later.
	TakesLaterNodes() bool
	// Ends reports whether the object drains no node from now on.
	Ends() bool
}

// refusal returns why the user may not make this change. It reviews the right to delete all nodes
// first, which most users of maintenances have.
func (r reviewer) refusal(ctx context.Context, request admission.Request, change selection) (string, error) {
	everywhere, why, err := r.may(ctx, request.UserInfo, deleteNode(""))
	if err != nil || everywhere {
		return "", err
	}
	affected, err := change.Affected()
	if err != nil {
		return err.Error(), nil
	}
	rights := validate.NodeRights{
		User: request.UserInfo.Username, Kind: request.Kind.Kind, Why: why,
		Later: change.TakesLaterNodes(), Ends: change.Ends(), Affected: len(affected), Unknown: len(affected),
	}
	for rights.Unknown > 0 && !rights.Enough() {
		next := affected[len(affected)-rights.Unknown:]
		next = next[:min(len(next), reviewsAtOnce)]
		refused, err := r.refused(ctx, request.UserInfo, next)
		if err != nil {
			return "", err
		}
		rights.Refused = append(rights.Refused, refused...)
		rights.Unknown -= len(next)
	}
	return rights.Refusal(), nil
}
