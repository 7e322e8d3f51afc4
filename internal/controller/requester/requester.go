// Package requester knows whether EvictionRequests are served and answered, creates those of
// Evacuations, and deletes those that are no longer needed. NodeMaintenances decide about their
// own requests. It remembers only when another controller last answered and since when pods are
// gone; a new manager waits once more for both.
package requester

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
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
	// emit publishes events, each on the object that it is about.
	emit func(...event.Event)
	// asked reports whether the API is served, and whether that is known.
	asked func() (served, known bool)

	mu sync.Mutex
	// watching is true while the requests that there are can be seen.
	watching bool
	// since is from when on that is so.
	since time.Time
	// answered is when somebody has answered a request last, unanswered when one was
	// withdrawn because nobody had.
	answered, unanswered time.Time
	// changed is told which node is concerned, empty is all, and whether that is urgent.
	changed []func(node string, urgent bool)
	// evacuated is told which Evacuation is concerned; empty is all.
	evacuated []func(types.NamespacedName)
	// gone is since when pods of requests have been seen to be gone.
	gone map[item]time.Time
	// queue is where there is work to do; nil while the requests are not watched.
	queue queue
}

// item is a pod, and all requests of ours for it. One that is made anew is another.
type item struct {
	types.NamespacedName
	UID types.UID
}

// share is its namespace.
func (i item) share() string { return i.Namespace }

// evacuation is the name of the pod's Evacuation.
func (i item) evacuation() types.NamespacedName {
	return types.NamespacedName{Namespace: i.Namespace, Name: evacuation.NameFor(i.UID, i.Name)}
}

// Add has a Requester run while the API is served.
func Add(mgr manager.Manager, options Options) *Requester {
	r := &Requester{
		options: options, client: mgr.GetClient(), emit: kube.Emitter(mgr.GetEventRecorder("ebbtide")),
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

// OnEvacuation has a function called with the name of an Evacuation, empty is every one, of
// which it has changed what the responders of its pod do.
func (r *Requester) OnEvacuation(changed func(types.NamespacedName)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.evacuated = append(r.evacuated, changed)
}

// tellAll has everything looked at anew.
func (r *Requester) tellAll() {
	r.tell("", true)
	r.tellEvacuation(types.NamespacedName{})
	r.lookAgain()
}

func (r *Requester) tellEvacuation(key types.NamespacedName) {
	r.mu.Lock()
	told := slices.Clone(r.evacuated)
	r.mu.Unlock()
	for _, changed := range told {
		changed(key)
	}
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

// State is what is known now.
func (r *Requester) State() core.Prospect {
	served, known := r.asked()
	r.mu.Lock()
	defer r.mu.Unlock()
	state := core.Prospect{Acting: r.options.Acts(), Answered: r.answered, Since: r.since, Now: r.options.Now()}
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
// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch

// Reconcile makes the request of an Evacuation, and clears away what nobody needs any more.
func (r *Requester) Reconcile(ctx context.Context, i item) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if found, err := r.get(ctx, i.NamespacedName, pod); err != nil {
		return reconcile.Result{}, fmt.Errorf("get pod %s: %w", i.Name, err)
	} else if !found || pod.UID != i.UID {
		pod = nil
	}
	again, kept := time.Duration(0), false
	var errs []error
	for _, of := range []core.Requester{core.Maintenances, core.Evacuations} {
		wait, there, err := r.tidy(ctx, i, of, pod)
		again, kept = kube.Soonest(again, wait), kept || there
		errs = append(errs, kube.WithoutStale(ctx, err))
	}
	if !kept {
		r.sawPod(i, true)
	}
	return reconcile.Result{RequeueAfter: again}, errors.Join(errs...)
}

// get returns false if there is no such object.
func (r *Requester) get(ctx context.Context, key types.NamespacedName, object client.Object) (bool, error) {
	err := r.client.Get(ctx, key, object)
	return err == nil, client.IgnoreNotFound(err)
}

// tidy does what is to be done about the request of one requester, and returns when to look
// again, and whether there is such a request.
func (r *Requester) tidy(ctx context.Context, i item, of core.Requester, pod *corev1.Pod) (again time.Duration, there bool, err error) {
	key := types.NamespacedName{Namespace: i.Namespace, Name: of.NameFor(i.UID)}
	request := &lifecyclev1alpha1.EvictionRequest{}
	if found, err := r.get(ctx, key, request); err != nil {
		return 0, false, fmt.Errorf("get EvictionRequest %s: %w", key, err)
	} else if !found {
		request = nil
	}
	var gone *time.Duration
	if there = request != nil && of.Owns(request); there {
		gone = r.sawPod(i, pod != nil)
	}
	disposal := core.Disposal{}
	switch {
	case of == core.Evacuations:
		translation := core.Translation{Prospect: r.State(), Pod: pod, Request: request, Evacuation: &v1alpha1.Evacuation{}}
		if found, err := r.get(ctx, i.evacuation(), translation.Evacuation); err != nil {
			return 0, there, fmt.Errorf("get the Evacuation of pod %s: %w", i.Name, err)
		} else if !found {
			translation.Evacuation = nil
		}
		disposal = translation.Disposal(gone)
	case there:
		if disposal = core.Dispose(request, r.options.Now(), gone); gone == nil && disposal.Record == nil && !disposal.Delete {
			disposal.Record = core.Located(request, pod)
		}
	}
	return disposal.RequeueAfter, there, r.dispose(ctx, pod, request, disposal)
}

func (r *Requester) dispose(ctx context.Context, pod *corev1.Pod, request *lifecyclev1alpha1.EvictionRequest, disposal core.Disposal) error {
	switch {
	case disposal.Create != nil:
		err := r.client.Create(ctx, disposal.Create)
		if apierrors.IsAlreadyExists(err) {
			// The cache will show it.
			return nil
		}
		if err != nil {
			r.emit(event.EvictionRequestRefused(pod, disposal.Create.Name, err))
		}
		return err
	case disposal.Record != nil:
		err := r.client.Patch(ctx, disposal.Record, kube.Change(request))
		if err == nil && core.Unanswers(disposal.Record) {
			r.Unanswered()
		}
		return client.IgnoreNotFound(err)
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
