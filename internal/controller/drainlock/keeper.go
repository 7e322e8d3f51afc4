package drainlock

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/kube"
)

// keeper removes expired and stray locks, and warns of unreadable ones.
type keeper struct {
	client  client.Client
	live    client.Reader
	emit    func(...event.Event)
	now     kube.Now
	longest time.Duration
	pauses  workqueue.TypedRateLimiter[reconcile.Request]

	mu sync.Mutex
	// told is the hash of the last reported lock of each budget.
	told map[types.NamespacedName][sha256.Size]byte
}

func (k *keeper) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	locked := &policyv1.PodDisruptionBudget{}
	if err := k.client.Get(ctx, request.NamespacedName, locked); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("get the budget: %w", err)
	}
	lock, present := locked.Annotations[v1alpha1.LockAnnotation]
	if !present {
		k.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	keeping, err := k.decide(ctx, locked)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !keeping.Remove && !keeping.Stray {
		k.report(request.NamespacedName, lock, keeping.Events)
		return reconcile.Result{RequeueAfter: keeping.RequeueAfter}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := annotate(ctx, k.client, locked, v1alpha1.LockAnnotation, ""); err != nil {
		return again(ctx, k.pauses, request, fmt.Errorf("remove the lock: %w", err))
	}
	k.pauses.Forget(request)
	reason := "expired"
	if keeping.Stray {
		reason = "its node has no DrainRecord"
	}
	log.FromContext(ctx).Info("Removed a lock", "lock", excerpt.Of(lock, maxLogged), "reason", reason)
	k.emit(keeping.Events...)
	return reconcile.Result{}, nil
}

// decide looks up the record of the node that the lock names. Only the API server is trusted that
// there is none, as the cache may be behind.
func (k *keeper) decide(ctx context.Context, locked *policyv1.PodDisruptionBudget) (core.Keeping, error) {
	var keeping core.Keeping
	for _, reader := range []client.Reader{k.client, k.live} {
		of, err := k.lockingNode(ctx, reader, locked)
		if err != nil {
			return core.Keeping{}, err
		}
		if keeping = core.Keep(locked, of, k.now.Earliest(), k.longest); !keeping.Stray {
			break
		}
	}
	return keeping, nil
}

// lockingNode returns the node for whose drain the budget is locked, expired or not, if it has a
// record or a promise.
func (k *keeper) lockingNode(ctx context.Context, reader client.Reader, locked *policyv1.PodDisruptionBudget) (string, error) {
	name := core.Locker(locked)
	if name == "" {
		return "", nil
	}
	record, err := recordOf(ctx, reader, name, client.DisableReadYourWritesConsistency)
	if record != nil || err != nil {
		return name, err
	}
	node, err := nodeOf(ctx, reader, name)
	if !core.Promised(node) {
		return "", err
	}
	return name, err
}

// report publishes the events of a lock once.
func (k *keeper) report(key types.NamespacedName, lock string, events []event.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(events) == 0 {
		return
	}
	content := sha256.Sum256([]byte(lock + events[0].Reason))
	if k.told[key] == content {
		return
	}
	k.told[key] = content
	k.emit(events...)
}

func (k *keeper) forget(key types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.told, key)
}

// maxLogged limits foreign text in a log line.
const maxLogged = 512
