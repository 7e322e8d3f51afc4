// Package requester knows whether EvictionRequests are served and answered, and deletes those of
// NodeMaintenances that are no longer needed. NodeMaintenances decide about their own requests. It
// remembers only when another controller last answered and since when pods are gone; a new
// manager waits once more for both.
package requester

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// workers bounds the requests that are worked on at the same time.
	workers = 16
	// trustedFor is the time for which no pod is requested after a request was not answered.
	trustedFor = time.Hour
)

// Options configures a Requester.
type Options struct {
	// Served runs it while the API is served.
	Served *kube.Served
	// Acts says whether Ebbtide answers requests itself; OnActive has a function called when
	// it comes to do so.
	Acts     func() bool
	OnActive func(context.Context, func(context.Context))
	// Now is the API server's time.
	Now func() time.Time
}

// Requester provides EvictionRequests to NodeMaintenances. It is safe for concurrent use.
type Requester struct {
	options Options
	client  client.Client
	// asked reports whether the API is served, and whether that is known.
	asked func() (served, known bool)

	mu sync.Mutex
	// watching is true while the requests that there are can be seen.
	watching bool
	// since is the start of that state.
	since time.Time
	// answered is the time at which somebody has answered a request last, unanswered when one was
	// withdrawn because nobody had.
	answered, unanswered time.Time
	// changed is told which node is concerned, empty is all, and whether that is urgent.
	changed []func(node string, urgent bool)
	// gone is the time since which pods of requests have been seen to be gone.
	gone map[item]time.Time
}

// item is a pod, and the request of ours for it. One that is made again is another.
type item struct {
	types.NamespacedName
	UID types.UID
}

// share returns its namespace.
func (i item) share() string { return i.Namespace }

// Add has a Requester run while the API is served.
func Add(mgr manager.Manager, options Options) *Requester {
	r := &Requester{
		options: options, client: mgr.GetClient(),
		asked: options.Served.Asked, gone: map[item]time.Time{},
	}
	options.Served.Index(&lifecyclev1alpha1.EvictionRequest{}, kube.RequestNodeField, kube.RequestNode)
	options.Served.Index(&lifecyclev1alpha1.Eviction{}, kube.EvictionPodField, kube.EvictionPod)
	options.Served.OnAnswer(r.tellAll)
	options.Served.Part(func(ctx context.Context) error {
		defer r.watch(false)
		return kube.RunController(ctx, mgr, "requester", kube.Controller[item]{Reconciler: r, Share: item.share, Limit: workers}, r.sources(mgr.GetCache()))
	})
	return r
}

// OnChange has a function called with the name of a node, empty is every node, whose pods
// may have to be asked otherwise, which is urgent, or have something else to say. Call it
// before the manager starts.
func (r *Requester) OnChange(changed func(node string, urgent bool)) {
	r.changed = append(r.changed, changed)
}

// tellAll has everything looked at again.
func (r *Requester) tellAll() {
	r.tell("", true)
}

func (r *Requester) tell(node string, urgent bool) {
	for _, changed := range r.changed {
		changed(node, urgent)
	}
}

func (r *Requester) watch(watching bool) {
	r.mu.Lock()
	before := r.watching
	r.watching = watching
	if watching && !before {
		r.since = r.options.Now()
	}
	r.mu.Unlock()
	if before != watching {
		r.tellAll()
	}
}

// State returns what is known now.
func (r *Requester) State() core.Availability {
	served, known := r.asked()
	r.mu.Lock()
	defer r.mu.Unlock()
	state := core.Availability{Acting: r.options.Acts(), Answered: r.answered, Since: r.since, Now: r.options.Now()}
	switch {
	case !known:
		state.Unknown = "The API server has not said yet whether it serves EvictionRequests."
	case served && !r.watching:
		state.Unknown = "The EvictionRequests that there are have not been read yet."
	case served:
		state.Served = true
		void := r.unanswered.After(r.answered) && state.Now.Sub(r.unanswered) < trustedFor
		state.Able = state.Acting || !void
	}
	return state
}

// Unanswered notes that a request was withdrawn because nobody has answered it.
func (r *Requester) Unanswered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unanswered = r.options.Now()
}

// answer notes that somebody has answered a request.
func (r *Requester) answer() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered = r.options.Now()
}

// +kubebuilder:rbac:groups=lifecycle.k8s.io,resources=evictionrequests,verbs=create;delete;list;patch;watch
// +kubebuilder:rbac:groups=lifecycle.k8s.io,resources=evictions,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// Reconcile clears the request for a pod away when nobody needs it any more.
func (r *Requester) Reconcile(ctx context.Context, i item) (reconcile.Result, error) {
	pod, request := &corev1.Pod{}, &lifecyclev1alpha1.EvictionRequest{}
	there, err := r.get(ctx, i.NamespacedName, pod)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("get pod %s: %w", i.Name, err)
	}
	there = there && pod.UID == i.UID
	key := types.NamespacedName{Namespace: i.Namespace, Name: core.NameFor(i.UID)}
	if found, err := r.get(ctx, key, request); err != nil {
		return reconcile.Result{}, fmt.Errorf("get EvictionRequest %s: %w", key, err)
	} else if !found || !core.Own(request) {
		r.sawPod(i, true)
		return reconcile.Result{}, nil
	}
	cleanup := core.DecideCleanup(request, r.options.Now(), r.sawPod(i, there))
	if there && cleanup == (core.Cleanup{}) {
		cleanup.Record = core.Located(request, pod)
	}
	return reconcile.Result{RequeueAfter: cleanup.RequeueAfter}, kube.WithoutStale(ctx, r.cleanUp(ctx, request, cleanup))
}

// get returns false if there is no such object.
func (r *Requester) get(ctx context.Context, key types.NamespacedName, object client.Object) (bool, error) {
	err := r.client.Get(ctx, key, object)
	return err == nil, client.IgnoreNotFound(err)
}

func (r *Requester) cleanUp(ctx context.Context, request *lifecyclev1alpha1.EvictionRequest, cleanup core.Cleanup) error {
	switch {
	case cleanup.Record != nil:
		return client.IgnoreNotFound(r.client.Patch(ctx, cleanup.Record, kube.Change(request)))
	case cleanup.Delete:
		err := r.client.Delete(ctx, request, client.Preconditions{UID: &request.UID, ResourceVersion: &request.ResourceVersion})
		if err == nil {
			log.FromContext(ctx).V(1).Info("Cleared an EvictionRequest away", "evictionRequest", client.ObjectKeyFromObject(request))
		}
		return client.IgnoreNotFound(err)
	}
	return nil
}

// sawPod returns for how long the pod of a request has been gone; nil if it is there, and
// there is nothing to remember.
func (r *Requester) sawPod(key item, there bool) *time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if there {
		delete(r.gone, key)
		return nil
	}
	since, known := r.gone[key]
	if !known {
		since = time.Now()
		r.gone[key] = since
	}
	return new(time.Since(since))
}
