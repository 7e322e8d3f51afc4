// Package bridge carries out what core/bridge decides for Machines of other controllers: it puts
// the hook on, drains the node, and takes the hook off. Their kinds are read without Go types,
// in a cache that starts when they are served. One file describes each kind; all others serve
// both. All state is in the API, so that the next manager continues.
package bridge

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/workload"
)

const (
	// workers bounds the Machines of a cluster or a namespace that are worked on at the same time.
	workers = 32
	// passTimeout ends a pass whose requests hang.
	passTimeout = time.Minute
	// atOnce is the time at which a Machine comes again that needs a worker of its cluster.
	atOnce = time.Millisecond
	// firstPause delays the retry of something that the cache did not show yet.
	firstPause = time.Second
)

// Options configures the controller.
type Options struct {
	// Bridges that are switched on. Only Cluster API and OpenShift have Machines.
	Bridges core.Names
	// Skew knows what time it is.
	Skew *kube.Skew
	// Registry connects to the clusters of Machines of Cluster API.
	Registry *workload.Registry
}

// request is one Machine.
type request struct {
	bridge core.Name
	types.NamespacedName
}

type queue = workqueue.TypedRateLimitingInterface[request]

type reconciler struct {
	client client.Client
	live   client.Reader
	kinds  *kinds
	// clusters connects to the clusters of Machines, watchIndex knows what they watch there.
	clusters   clusters
	watchIndex *workload.WatchIndex[request, *workload.Connection]
	// emit publishes events, each on the object that it is about.
	emit    func(...event.Event)
	now     kube.Now
	metrics *metrics
	// reported is by request when its condition was last written.
	reported sync.Map
	// said is by request what people were told last.
	said sync.Map
	// expected are the Machines that are being deleted, by the name of their maintenance.
	expected sync.Map
	// queue is nil before there is one; all Machines come by their first event.
	queue atomic.Pointer[queue]
}

// Add registers the controller with a manager whose client reads from a cache with
// kube.CacheOptions.
//
// Errors: a cache cannot be made, or the controller was added before.
func Add(mgr manager.Manager, options Options) error {
	served := kindsOf(options.Bridges)
	if len(served) == 0 {
		return nil
	}
	r := &reconciler{
		client: mgr.GetClient(), live: kube.Live(mgr.GetAPIReader()),
		emit: kube.Emitter(mgr.GetEventRecorder("ebbtide")), now: options.Skew.Now,
		clusters: options.Registry, watchIndex: workload.NewWatchIndex[request, *workload.Connection](),
		metrics: newMetrics(crmetrics.Registry, served, time.Now),
	}
	r.followElsewhere(options.Registry)
	var err error
	if r.kinds, err = newKinds(mgr, served, r.wake); err != nil {
		return err
	}
	return kube.AddController(mgr, "bridge", kube.Controller[request]{
		Reconciler: r, Share: r.share, Limit: workers, Timeout: passTimeout,
	}, append(r.sources(mgr.GetCache()), kube.OnSkew(options.Skew, r.held)))
}

// Reconcile takes one Machine one step further.
func (r *reconciler) Reconcile(ctx context.Context, q request) (controllerResult, error) {
	seen, err := r.observe(ctx, q)
	if err != nil {
		return controllerResult{}, fmt.Errorf("observe: %w", err)
	}
	r.metrics.note(q, seen.Machine, seen.Now)
	decision := core.Decide(seen.Snapshot)
	if decision.Remote {
		if !r.observeElsewhere(ctx, q, seen) {
			return controllerResult{RequeueAfter: atOnce}, nil
		}
		decision = core.Decide(seen.Snapshot)
	}
	if err := r.act(ctx, seen, decision); err != nil {
		if apierrors.IsAlreadyExists(err) || kube.IsStale(err) {
			// The cache does not show it yet; its event comes, or it is read again.
			return controllerResult{RequeueAfter: firstPause}, nil
		}
		return controllerResult{}, r.tellRefusal(ctx, seen, decision, err)
	}
	r.tell(q, seen, decision)
	wait, err := r.report(ctx, seen, decision)
	if err != nil {
		return controllerResult{}, err
	}
	after := kube.Soonest(decision.RequeueAfter, wait)
	if seen.unwatched {
		after = kube.Soonest(after, firstPause)
	}
	if seen.drain != nil {
		after = kube.Soonest(after, seen.drain.decision.RequeueAfter)
	}
	return controllerResult{RequeueAfter: after}, nil
}

// act records before it acts: a maintenance that is to be gone is deleted before anything
// else, one that is to drain is there before anything drains.
func (r *reconciler) act(ctx context.Context, seen *observed, d core.Decision) error {
	logger := log.FromContext(ctx)
	if d.Delete {
		m := seen.Maintenance
		if err := r.client.Delete(ctx, m, client.Preconditions{UID: &m.UID}); err != nil {
			return fmt.Errorf("delete NodeMaintenance %s: %w", m.Name, err)
		}
		logger.Info("Deleted NodeMaintenance", "maintenance", m.Name, "reason", "the node of its Machine is gone")
	}
	if d.Create != nil {
		if err := r.client.Create(ctx, d.Create); err != nil {
			return fmt.Errorf("create NodeMaintenance %s: %w", d.Create.Name, err)
		}
		logger.Info("Created NodeMaintenance for the Machine of another controller", "maintenance", d.Create.Name, "Node", seen.Machine.Node)
	}
	if d.Update != nil {
		if err := r.client.Patch(ctx, d.Update, kube.Change(seen.Maintenance)); err != nil {
			return fmt.Errorf("change NodeMaintenance %s: %w", d.Update.Name, err)
		}
		logger.Info("Changed the drain of a node", "maintenance", d.Update.Name, "paused", core.Paused(d.Update))
	}
	if err := r.drainElsewhere(ctx, seen.request, seen, d.Remote); err != nil {
		return err
	}
	if d.Hook == core.Finish && seen.drain != nil {
		if err := markSkipped(ctx, seen.drain); err != nil {
			return err
		}
	}
	return r.change(ctx, seen, d.Hook)
}

// change does a step with the hook, under the version that was decided on.
func (r *reconciler) change(ctx context.Context, seen *observed, step core.Step) error {
	if seen.object == nil || step == core.Keep {
		return nil
	}
	changed, err := core.Change(seen.object, step, seen.Now)
	if err != nil || changed == nil {
		return err
	}
	if err := r.kinds.writer.Patch(ctx, changed, kube.Change(seen.object)); err != nil {
		return fmt.Errorf("change the hook of Machine %s: %w", client.ObjectKeyFromObject(seen.object), err)
	}
	log.FromContext(ctx).Info("Changed the hook of a Machine", "hooked", step == core.Put, "drained", step == core.Finish)
	return nil
}

// tell publishes what has not been said before. How many pods are left is said once.
func (r *reconciler) tell(q request, seen *observed, d core.Decision) {
	switch {
	case seen.Machine == nil || !seen.Machine.Deleting:
		r.said.Delete(q)
		r.reported.Delete(q)
		return
	case d.Said == nil:
		return
	}
	now := d.Said.Reason
	if now != v1alpha1.EventBridgeDraining && now != v1alpha1.EventBridgeBlocked {
		now += d.Said.Message
	}
	if before, known := r.said.Swap(q, now); !known || before != now {
		r.emit(*d.Said)
	}
}
