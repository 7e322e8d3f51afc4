// Package requester knows whether NodeMaintenances can ask pods to leave by EvictionRequests
// of the API group lifecycle.k8s.io, and clears away the requests that they have made.
//
// It watches the requests while the API is served, and tells the NodeMaintenances of the
// nodes concerned. What is asked and taken back they decide; what is left of that is deleted
// here, by core/evictionrequest. Nothing is remembered but who has answered when, and since
// when pods have been seen to be gone: another manager waits once more for both.
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
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// workers is how many requests are worked on at the same time.
	workers = 16
	// trustedFor is how long nobody is asked after nobody has answered.
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

// Requester is what NodeMaintenances know of EvictionRequests. It is safe for concurrent use.
type Requester struct {
	options Options
	client  client.Client

	mu sync.Mutex
	// watching is true while the requests that there are can be seen.
	watching bool
	// answered is when somebody has answered a request last, unanswered when one was
	// withdrawn because nobody had.
	answered, unanswered time.Time
	// changed is told which node is concerned, empty is all, and whether that is urgent.
	changed []func(node string, urgent bool)
	// gone is since when pods of requests have been seen to be gone.
	gone map[types.NamespacedName]time.Time
}

// Add has a Requester run while the API is served.
func Add(mgr manager.Manager, options Options) *Requester {
	r := &Requester{options: options, client: mgr.GetClient(), gone: map[types.NamespacedName]time.Time{}}
	options.Served.Index(&lifecyclev1alpha1.EvictionRequest{}, kube.RequestNodeField, kube.RequestNode)
	options.Served.Index(&lifecyclev1alpha1.Eviction{}, kube.EvictionPodField, kube.EvictionPod)
	options.Served.OnAnswer(func() { r.tell("", true) })
	options.Served.Part(func(ctx context.Context) error {
		defer r.watch(false)
		return kube.RunController(ctx, mgr, "requester",
			controller.Options{Reconciler: r, MaxConcurrentReconciles: workers}, r.sources(mgr.GetCache()))
	})
	return r
}

// OnChange has a function called with the name of a node, empty is every node, whose pods
// may have to be asked otherwise, which is urgent, or have something else to say. Call it
// before the manager starts.
func (r *Requester) OnChange(changed func(node string, urgent bool)) {
	r.changed = append(r.changed, changed)
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
	r.mu.Unlock()
	if before != watching {
		r.tell("", true)
	}
}

// State is what is known now.
func (r *Requester) State() maintenance.Requester {
	served, known := r.options.Served.Asked()
	r.mu.Lock()
	defer r.mu.Unlock()
	state := maintenance.Requester{Acting: r.options.Acts(), Answered: r.answered, Now: r.options.Now()}
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

// Reconcile clears a request away that nobody needs any more.
func (r *Requester) Reconcile(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	request := &lifecyclev1alpha1.EvictionRequest{}
	if err := r.client.Get(ctx, key.NamespacedName, request); err != nil {
		r.sawPod(key.NamespacedName, true)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !core.Own(request) {
		return reconcile.Result{}, nil
	}
	target, _ := core.TargetOf(request)
	pod := &corev1.Pod{}
	err := r.client.Get(ctx, types.NamespacedName{Namespace: request.Namespace, Name: target.Name}, pod)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("get pod %s: %w", target.Name, err)
	}
	there := err == nil && pod.UID == target.UID
	gone := r.sawPod(key.NamespacedName, there)
	disposal := core.Dispose(request, r.options.Now(), gone)
	if there && disposal.Record == nil && !disposal.Delete {
		disposal.Record = core.Located(request, pod)
	}
	return reconcile.Result{RequeueAfter: disposal.RequeueAfter}, kube.WithoutStale(ctx, r.dispose(ctx, request, disposal))
}

func (r *Requester) dispose(ctx context.Context, request *lifecyclev1alpha1.EvictionRequest, disposal core.Disposal) error {
	switch {
	case disposal.Record != nil:
		return r.client.Patch(ctx, disposal.Record, kube.Change(request))
	case disposal.Delete:
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
func (r *Requester) sawPod(key types.NamespacedName, there bool) *time.Duration {
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
