package nodemaintenance

import (
	"context"
	"fmt"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/kube"
)

// The RBAC for EvictionRequests stands in internal/controller/requester.

// requested returns true if a pod of a node has an EvictionRequest of ours.
func (r *reconciler) requested(ctx context.Context, snapshot *maintenance.Snapshot, node string) (bool, error) {
	if !snapshot.Requester.Served {
		return false, nil
	}
	var asked lifecyclev1alpha1.EvictionRequestList
	if err := r.list(ctx, &asked, client.MatchingFields{kube.RequestNodeField: node}, client.Limit(1)); err != nil {
		return false, fmt.Errorf("list our EvictionRequests on node %s: %w", node, err)
	}
	return len(asked.Items) > 0, nil
}

// evictionRequests reads the EvictionRequests and Evictions of pods that have responders.
func (r *reconciler) evictionRequests(ctx context.Context, snapshot *maintenance.Snapshot) error {
	if !snapshot.Requester.Served {
		return nil
	}
	for _, onNode := range snapshot.Pods {
		for i := range onNode {
			if len(onNode[i].Object.Spec.EvictionResponders) == 0 {
				continue
			}
			if err := r.evictionRequest(ctx, &onNode[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reconciler) evictionRequest(ctx context.Context, pod *maintenance.Pod) error {
	key := client.ObjectKey{Namespace: pod.Object.Namespace, Name: evictionrequest.NameFor(pod.Object.UID)}
	request, evictions, err := kube.Requested(ctx, r.client, key, pod.Object.UID)
	pod.Request = request
	pod.Eviction, _ = evictionrequest.Relevant(evictions)
	return err
}

// requestEviction creates the EvictionRequest of a pod.
func (r *reconciler) requestEviction(ctx context.Context, wanted *lifecyclev1alpha1.EvictionRequest) error {
	// The cache of the pass may not show the creation of an earlier one.
	err := r.client.Get(ctx, client.ObjectKeyFromObject(wanted), &lifecyclev1alpha1.EvictionRequest{}, client.UnsafeDisableDeepCopy)
	switch {
	case err == nil:
		return apierrors.NewAlreadyExists(lifecyclev1alpha1.Resource("evictionrequests"), wanted.Name)
	case !apierrors.IsNotFound(err):
		return err
	}
	return r.client.Create(ctx, wanted)
}

// withdrawRequests withdraws our EvictionRequests, each under the version that it was decided on: it
// may just have been answered.
func (a *action) withdrawRequests(ctx context.Context) {
	all := func(node *actionNode) []maintenance.RequestWithdrawal { return node.WithdrawRequests }
	alternate(ctx, a, all, func(node *actionNode, w maintenance.RequestWithdrawal) change {
		return change{w.Write(), w.Request.Namespace, func() error {
			if err := a.client.Patch(ctx, w.Withdrawn, kube.Change(w.Request)); client.IgnoreNotFound(err) != nil {
				return err
			}
			log.FromContext(ctx).Info("Withdrew an EvictionRequest", "evictionRequest", client.ObjectKeyFromObject(w.Request),
				"node", node.Node.Name, "unanswered", w.Unanswered != nil)
			if w.Unanswered != nil {
				a.requests.Unanswered()
			}
			a.emit(w.Events...)
			return nil
		}}
	})
}
