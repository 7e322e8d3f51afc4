package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/kube"
)

// removesWithin bounds the removal of the NodeMaintenance, even after the timeout.
const removesWithin = 15 * time.Second

// betweenWatches is the pause before a watch is restarted.
const betweenWatches = 200 * time.Millisecond

// acts checks that the leader completes a NodeMaintenance.
func (c Check) acts(ctx context.Context) (problem *failure) {
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removesWithin)
		defer cancel()
		if err := c.remove(ctx); err != nil && problem == nil {
			problem = &failure{"it could not be removed: " + brief(err), command.Of("remove it: kubectl delete nodemaintenance %s", name)}
		}
	}()
	if err := c.remove(ctx); err != nil {
		return &failure{"one with this name exists and cannot be removed: " + brief(err), command.Of("remove it: kubectl delete nodemaintenance %s", name)}
	}
	m := maintenance()
	if err := c.Client.Create(ctx, m); err != nil {
		return c.explain(err, "", "")
	}
	seen := func(m *v1alpha1.NodeMaintenance) bool { return m != nil && m.Status.ObservedGeneration == m.Generation }
	if err := c.await(ctx, seen); err != nil {
		return c.idle("no manager has observed it", err)
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"stage":%q}}`, v1alpha1.StageComplete))
	if err := c.Client.Patch(ctx, m, patch); err != nil {
		return c.explain(err, "", "")
	}
	over := func(m *v1alpha1.NodeMaintenance) bool {
		return m != nil && len(m.Finalizers) == 0 && slices.ContainsFunc(m.Status.StageStatuses, func(s v1alpha1.StageStatus) bool { return s.Name == v1alpha1.StageComplete })
	}
	if err := c.await(ctx, over); err != nil {
		return c.idle("no manager has completed it", err)
	}
	return nil
}

// idle returns the failure of a leader that does not act.
func (c Check) idle(why string, err error) *failure {
	return &failure{why + ": " + brief(err), command.Of("check the leader: kubectl get lease -n %[1]s %[2]s; and its log: "+
		"kubectl logs -n %[1]s -l app.kubernetes.io/name=ebbtide --tail=-1 | grep level=ERROR", c.Namespace, kube.LeaderLease)}
}

// errNotOurs is the error of a NodeMaintenance that is not from a check.
var errNotOurs = errors.New("it selects other nodes, so it was not created by a check")

// remove deletes the NodeMaintenance of a check, with its finalizer if necessary: it holds no node.
func (c Check) remove(ctx context.Context) error {
	m := maintenance()
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !equality.Semantic.DeepEqual(m.Spec.NodeSelector, maintenance().Spec.NodeSelector) {
		return errNotOurs
	}
	uid := m.UID
	err := c.Client.Delete(ctx, m, client.Preconditions{UID: &uid})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	soon, cancel := context.WithTimeout(ctx, removesWithin/3)
	defer cancel()
	gone := func(m *v1alpha1.NodeMaintenance) bool { return m == nil }
	if c.await(soon, gone) == nil {
		return nil
	}
	err = c.Client.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	return c.await(ctx, gone)
}

// await watches the NodeMaintenance until reached returns true for it, or for nil if it does not exist.
func (c Check) await(ctx context.Context, reached func(*v1alpha1.NodeMaintenance) bool) error {
	for {
		list := &v1alpha1.NodeMaintenanceList{}
		events, err := c.Client.Watch(ctx, list, client.MatchingFields{"metadata.name": name})
		if err != nil {
			return overOr(ctx, err)
		}
		found, err := c.follow(ctx, events, reached)
		events.Stop()
		if found || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errOver
		case <-time.After(betweenWatches):
		}
	}
}

// follow returns true when the state is reached, and false when the watch ends.
func (c Check) follow(ctx context.Context, events watch.Interface, reached func(*v1alpha1.NodeMaintenance) bool) (bool, error) {
	m := maintenance()
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(m), m)
	if apierrors.IsNotFound(err) {
		m, err = nil, nil
	}
	if err != nil {
		return false, overOr(ctx, err)
	}
	for !reached(m) {
		select {
		case <-ctx.Done():
			return false, errOver
		case event, more := <-events.ResultChan():
			object, ok := event.Object.(*v1alpha1.NodeMaintenance)
			if !more || !ok {
				return false, overOr(ctx, nil)
			}
			m = object
			if event.Type == watch.Deleted {
				m = nil
			}
		}
	}
	return true, nil
}

// overOr returns errOver after the timeout, otherwise the error.
func overOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errOver
	}
	return err
}
