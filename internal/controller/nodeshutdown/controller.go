// Package nodeshutdown drains nodes that shut down: it creates a NodeMaintenance when a
// NodeAgent reports a shutdown, updates it, and deletes it afterwards. core/nodeshutdown
// decides. Each node has one such maintenance, which changes at most once a minute however often
// the agent reports.
package nodeshutdown

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/nodeshutdown"
	"ebbtide.dev/ebbtide/internal/kube"
)

// firstPause and lastPause bound how soon the maintenance of a node is created or changed again.
const firstPause, lastPause = time.Second, time.Minute

// Options configures the controller.
type Options struct {
	core.Options

	Skew *kube.Skew
}

type reconciler struct {
	client  client.Client
	emit    func(...event.Event)
	now     kube.Now
	options core.Options
	// written spaces out the writes for one node.
	written *flowcontrol.Backoff
	// observations are the last observed states of nodes with a maintenance. They are lost with the
	// manager.
	observations sync.Map
}

// Add registers the controller with a manager whose client reads from a cache with
// kube.CacheOptions, consistent with its own writes. It fails if a watch cannot be set up, or if
// the controller was added before.
func Add(mgr manager.Manager, options Options) error {
	r := newReconciler(mgr.GetClient(), kube.Emitter(mgr.GetEventRecorder("ebbtide")), options.Skew.Now, clock.RealClock{})
	r.options = options.Options
	return kube.AddController(mgr, "nodeshutdown", kube.Controller[reconcile.Request]{Reconciler: r}, append(r.sources(mgr.GetCache()), kube.OnSkew(options.Skew, kube.AllOf(r.client, &v1alpha1.NodeAgentList{}))))
}

func newReconciler(c client.Client, emit func(...event.Event), now kube.Now, clk clock.Clock) *reconciler {
	written := flowcontrol.NewBackOff(firstPause, lastPause)
	written.Clock = clk
	return &reconciler{client: c, emit: emit, now: now, written: written}
}

func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	snapshot, err := r.observe(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("observe: %w", err)
	}
	decision := core.Decide(snapshot)
	if decision.Create != nil || decision.Follow != nil {
		pause, err := r.write(ctx, request.Name, decision, snapshot.Existing)
		return reconcile.Result{RequeueAfter: kube.Soonest(decision.RequeueAfter, pause)}, err
	}
	if decision.Delete {
		if err := r.delete(ctx, snapshot.Existing); err != nil {
			return reconcile.Result{}, kube.WithoutStale(ctx, err)
		}
	}
	r.emit(decision.Events...)
	return reconcile.Result{RequeueAfter: decision.RequeueAfter}, nil
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodeagents;nodemaintenances,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch

func (r *reconciler) observe(ctx context.Context, node string) (s core.Snapshot, err error) {
	s.Now, s.ClockSkewed = r.now()
	s.Options = r.options
	if s.Agent, err = found(ctx, r.client, node, &v1alpha1.NodeAgent{}); err != nil {
		return s, err
	}
	if s.Node, err = found(ctx, r.client, node, &corev1.Node{}); err != nil {
		return s, err
	}
	if s.Existing, err = found(ctx, r.client, core.Name(node), &v1alpha1.NodeMaintenance{}); err != nil {
		return s, err
	}
	s.Since = r.observedSince(node, s)
	if s.Existing != nil || s.Agent == nil {
		return s, nil // Others only keep it from being made.
	}
	var list v1alpha1.NodeMaintenanceList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		return s, fmt.Errorf("list NodeMaintenances: %w", err)
	}
	s.Others = kube.Pointers(list.Items)
	return s, nil
}

// observedSince returns since when the state of a node is unchanged.
func (r *reconciler) observedSince(node string, s core.Snapshot) time.Time {
	if s.Existing == nil {
		r.observations.Delete(node)
		return s.Now
	}
	before, _ := r.observations.Load(node)
	known, _ := before.(core.Observation)
	observation := s.Observe(known)
	r.observations.Store(node, observation)
	return observation.Since
}

// found reads an object; nil if there is none.
func found[T client.Object](ctx context.Context, c client.Reader, name string, into T) (T, error) {
	var none T
	err := c.Get(ctx, client.ObjectKey{Name: name}, into)
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("get %T %s: %w", into, name, err)
	}
	return into, nil
}

// write creates or changes the maintenance of a node, or returns when that is allowed.
func (r *reconciler) write(ctx context.Context, node string, decision core.Decision, existing *v1alpha1.NodeMaintenance) (pause time.Duration, err error) {
	now := r.written.Clock.Now()
	if r.written.IsInBackOffSinceUpdate(node, now) {
		return r.written.Get(node), nil
	}
	m := decision.Create
	if m == nil {
		m = decision.Follow
		err = r.follow(ctx, existing, m)
	} else {
		err = r.create(ctx, m)
	}
	switch {
	case apierrors.IsAlreadyExists(err), kube.IsStale(err):
		return firstPause, nil // The cache does not show it yet.
	case err != nil:
		return 0, err
	}
	r.written.GC()
	r.written.Next(node, now)
	log.FromContext(ctx).Info("Wrote NodeMaintenance", "maintenance", m.Name, "stage", m.Spec.Stage, "deadline", m.Spec.Deadline, "reason", "the node shuts down")
	r.emit(event.NodeShutdownDrained(m))
	return 0, nil
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,verbs=create

func (r *reconciler) create(ctx context.Context, m *v1alpha1.NodeMaintenance) error {
	if err := r.client.Create(ctx, m); err != nil {
		return fmt.Errorf("create NodeMaintenance %s: %w", m.Name, err)
	}
	return nil
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,verbs=patch

func (r *reconciler) follow(ctx context.Context, existing, changed *v1alpha1.NodeMaintenance) error {
	if err := r.client.Patch(ctx, changed, kube.Change(existing)); err != nil {
		return fmt.Errorf("change NodeMaintenance %s: %w", changed.Name, err)
	}
	return nil
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,verbs=delete

func (r *reconciler) delete(ctx context.Context, m *v1alpha1.NodeMaintenance) error {
	if err := r.client.Delete(ctx, m, client.Preconditions{UID: &m.UID}); err != nil {
		return fmt.Errorf("delete NodeMaintenance %s: %w", m.Name, err)
	}
	log.FromContext(ctx).Info("Deleted NodeMaintenance", "maintenance", m.Name, "reason", "the shutdown of its node is over")
	return nil
}
