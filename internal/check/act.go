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

// removesWithin is how long a NodeMaintenance may take to go, also when the time is up.
const removesWithin = 15 * time.Second

// betweenWatches is the pause before a watch that has ended is begun again.
const betweenWatches = 200 * time.Millisecond

// acts has the leader see a NodeMaintenance through.
func (c Check) acts(ctx context.Context) (problem *failure) {
	defer func() {
		// Whatever has happened.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removesWithin)
		defer cancel()
		if err := c.remove(ctx); err != nil && problem == nil {
			problem = &failure{"it could not be removed again: " + brief(err), command.Of("remove it: kubectl delete nodemaintenance %s", name)}
		}
	}()
	if err := c.remove(ctx); err != nil {
		return &failure{"one of this name is there already, and cannot be removed: " + brief(err), command.Of("remove it: kubectl delete nodemaintenance %s", name)}
	}
	m := maintenance()
	if err := c.Client.Create(ctx, m); err != nil {
		return c.explain(err, "", "")
	}
	seen := func(m *v1alpha1.NodeMaintenance) bool { return m != nil && m.Status.ObservedGeneration == m.Generation }
	if err := c.await(ctx, seen); err != nil {
		return c.idle("nobody has taken notice of it", err)
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"stage":%q}}`, v1alpha1.StageComplete))
	if err := c.Client.Patch(ctx, m, patch); err != nil {
		return c.explain(err, "", "")
	}
	over := func(m *v1alpha1.NodeMaintenance) bool {
		return m != nil && len(m.Finalizers) == 0 && slices.ContainsFunc(m.Status.StageStatuses, func(s v1alpha1.StageStatus) bool { return s.Name == v1alpha1.StageComplete })
	}
	if err := c.await(ctx, over); err != nil {
		return c.idle("it was set to Complete, and nobody has completed it", err)
	}
	return nil
}

// idle says what to do if nobody acts.
func (c Check) idle(why string, err error) *failure {
	return &failure{why + ": " + brief(err), command.Of("see who leads: kubectl get lease -n %[1]s %[2]s; and what its log says: "+
		"kubectl logs -n %[1]s -l app.kubernetes.io/name=ebbtide --tail=-1 | grep level=ERROR", c.Namespace, kube.LeaderLease)}
}

// errNotOurs is about a NodeMaintenance that may hold nodes.
var errNotOurs = errors.New("it selects other nodes than a check does, so that somebody else has made it")

// remove deletes what a check has created. It holds no node, so that it needs nobody to let
// it go.
//
// Errors: it does not go, or is none of a check.
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

// await watches the NodeMaintenance until it is as it is to be; nil is one that does not
// exist.
//
// Errors: it is not when the time is up, or cannot be watched.
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

// follow returns true when the state is reached, and false when the API server ends the watch,
// or says that it cannot go on with it.
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

// overOr is the end of the time, if that is why something failed.
func overOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errOver
	}
	return err
}
