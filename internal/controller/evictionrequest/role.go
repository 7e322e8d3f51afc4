package evictionrequest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// lookEvery is the interval of renewing the Lease, or of reading it while another client holds it.
	lookEvery = 10 * time.Second
	// trusted bounds the time of acting after the Lease was held, while it cannot be read.
	trusted = 20 * time.Second
)

// RoleOptions configures a Role.
type RoleOptions struct {
	// Mode as specified by the user.
	Mode core.Mode
	// Namespace is Ebbtide's.
	Namespace string
	// Served runs it while the API is served.
	Served *kube.Served
	// Skew knows what time it is at the API server.
	Skew *kube.Skew
}

// Role knows whether Ebbtide is the controller of EvictionRequests. It is safe for
// concurrent use.
type Role struct {
	options RoleOptions
	cache   cache.Cache
	lease   lease
	emit    func(...event.Event)
	metrics *metrics
	active  atomic.Bool
	// look has the role decided about at once.
	look chan struct{}

	mu      sync.Mutex
	state   core.State
	since   time.Time // when that began, or could last not be known
	wakers  map[*func(context.Context)]context.Context
	foreign string    // another controller
	wrote   time.Time // when it last has, by the API server's clock
	had     time.Time // when the Lease was last had
}

// NewRole returns the role of a manager.
//
// Errors: the config of the manager is invalid.
func NewRole(mgr manager.Manager, options RoleOptions) (*Role, error) {
	direct, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("make a client for the Lease: %w", err)
	}
	r := &Role{
		options: options, cache: mgr.GetCache(), lease: lease{client: direct, holder: "Ebbtide in namespace " + options.Namespace, now: options.Skew.Server},
		emit: kube.Emitter(mgr.GetEventRecorder("ebbtide")), metrics: newMetrics(crmetrics.Registry),
		look: make(chan struct{}, 1), wakers: map[*func(context.Context)]context.Context{},
	}
	r.become(context.Background(), core.Situation{Mode: options.Mode})
	if options.Served != nil {
		options.Served.Part(r.run)
	}
	return r, nil
}

// Acts reports whether Ebbtide is the controller now.
func (r *Role) Acts() bool { return r.active.Load() }

// Since returns since when the role is what it is, and the API server has answered.
func (r *Role) Since() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.since
}

// onActive has wake called when Ebbtide becomes the controller, until the context ends.
func (r *Role) onActive(ctx context.Context, wake func(context.Context)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wakers[&wake] = ctx
	context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.wakers, &wake)
	})
}

// OnActive returns for who acts only while Ebbtide is the controller; see onActive.
func (r *Role) OnActive(ctx context.Context, wake func(context.Context)) { r.onActive(ctx, wake) }

// run decides about the role while the API is served.
func (r *Role) run(ctx context.Context) error {
	informer, err := r.cache.GetInformer(ctx, &lifecyclev1alpha1.Eviction{}, cache.BlockUntilSynced(true))
	if err != nil {
		return fmt.Errorf("watch Evictions: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    r.see,
		UpdateFunc: func(_, now any) { r.see(now) },
	})
	if err != nil {
		return fmt.Errorf("watch Evictions: %w", err)
	}
	defer func() { _ = informer.RemoveEventHandler(registration) }()
	// Who wrote before we came is known before we decide.
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil
	}
	defer r.become(context.WithoutCancel(ctx), core.Situation{Mode: r.options.Mode})
	for {
		r.become(ctx, r.situation(ctx))
		select {
		case <-ctx.Done():
			return nil
		case <-r.look:
		case <-time.After(lookEvery):
		}
	}
}

// see looks whether another controller has written an Eviction.
func (r *Role) see(object any) {
	e, ok := object.(*lifecyclev1alpha1.Eviction)
	if !ok {
		return
	}
	other := core.Foreign(e, r.options.Skew.Server())
	if other == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range e.ManagedFields {
		if entry := &e.ManagedFields[i]; entry.Manager == other && entry.Time != nil && entry.Time.After(r.wrote) {
			r.foreign, r.wrote = other, entry.Time.Time
		}
	}
	select {
	case r.look <- struct{}{}:
	default:
	}
}

// situation finds out who else may be the controller. The Lease is only taken when nothing
// else speaks against it.
func (r *Role) situation(ctx context.Context) core.Situation {
	s := core.Situation{Mode: r.options.Mode, Served: true}
	r.mu.Lock()
	if r.foreign != "" && r.options.Skew.Server().Sub(r.wrote) < core.ForeignFor {
		s.Foreign = r.foreign
	}
	r.mu.Unlock()
	if state, _ := core.Role(s); state != core.StateActive {
		return s
	}
	holder, err := r.lease.take(ctx, r.options.Mode == core.ModeController)
	if err != nil {
		s.Unknown = err.Error()
	}
	s.Holder = holder
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case s.Unknown == "" && holder == "":
		r.had = time.Now()
	case s.Unknown != "" && r.active.Load() && time.Since(r.had) < trusted:
		// One answer that is missing does not end what goes on.
		s.Unknown = ""
	}
	return s
}

// become takes the role that the situation gives.
func (r *Role) become(ctx context.Context, s core.Situation) {
	state, words := core.Role(s)
	r.mu.Lock()
	before := r.state
	r.state = state
	if state != before || s.Unknown != "" {
		r.since = time.Now()
	}
	r.mu.Unlock()
	r.active.Store(state == core.StateActive)
	r.metrics.state(state)
	if state == before || before == "" && state != core.StateActive {
		return
	}
	log.FromContext(ctx).V(levelOf(state)).Info("The controller of EvictionRequests has changed", "state", state, "because", words)
	switch state {
	case core.StateActive:
		r.emit(event.EvictionControllerActive(r.options.Namespace, kube.LeaderLease, words))
		r.wake()
	case core.StateAside:
		r.emit(event.EvictionControllerAside(r.options.Namespace, kube.LeaderLease, words))
	}
}

// levelOf returns the verbosity at which a role is told of: where there is no API nobody is told.
func levelOf(state core.State) int {
	if state == core.StateNotServed || state == core.StateOff {
		return 1
	}
	return 0
}

func (r *Role) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for wake, ctx := range r.wakers {
		go (*wake)(ctx)
	}
}
