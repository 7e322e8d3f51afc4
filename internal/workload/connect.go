package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/workload/guard"
)

// connectLocal opens a session on the manager's own client and cache.
func (r *Registry) connectLocal(ctx context.Context) (*session, error) {
	evictor, err := kube.NewEvictor(r.manager.GetConfig(), r.manager.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	s := &session{connection: &Connection{Client: r.manager.GetClient(), Live: r.manager.GetAPIReader(), Now: r.options.Skew.Now}}
	return s, r.equip(ctx, s, Local, r.manager.GetCache(), eviction.QueueOptions{Dispatcher: r.options.Dispatcher, Evictor: evictor.ForMachines()})
}

// connectRemote opens a session with a client and a cache of its own, by the current kubeconfig.
func (r *Registry) connectRemote(ctx context.Context, source source) (*session, error) {
	content, err := r.read(ctx, source)
	if err != nil {
		return nil, errors.New(guard.Line(err.Error()))
	}
	config, err := source.config(content, r.options.Allowed)
	if err != nil {
		return nil, errors.New(guard.Line(err.Error()))
	}
	own := r.manager.GetConfig()
	config.QPS, config.Burst, config.UserAgent = own.QPS, own.Burst, own.UserAgent
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	config.WarningHandler = rest.NoWarnings{}
	skew := kube.NewSkew()
	skew.Measure(config)
	r.options.Fence.Follow(config)
	g, err := guard.New(ctx, config, guard.Options{
		Ledger: r.ledger, Namespace: source.cluster.Namespace, Kinds: r.kinds, Answer: r.pace.Answer, Message: r.pace.Message,
	})
	if err != nil {
		return nil, err
	}
	s := &session{
		connection: &Connection{Now: skew.Now}, guard: g,
		undo: []func(){skew.OnChange(func() { r.notify(&r.changed, source.cluster) }), g.Close},
	}
	s.isRotated = func(ctx context.Context) bool {
		now, err := r.read(ctx, source)
		return err == nil && !bytes.Equal(now, content)
	}
	if err := r.connectTo(ctx, s, source.cluster, config); err != nil {
		s.close()
		return nil, g.Describe(err)
	}
	return s, nil
}

func (r *Registry) read(ctx context.Context, source source) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, r.pace.Answer)
	defer cancel()
	return source.read(ctx, r.manager.GetAPIReader())
}

// connectTo checks that the cluster may be read, and sets up a cache of it.
func (r *Registry) connectTo(ctx context.Context, s *session, key types.NamespacedName, config *rest.Config) error {
	if err := s.guard.Probe(ctx); err != nil {
		return err
	}
	remote, err := cluster.New(config, func(o *cluster.Options) {
		o.HTTPClient, o.Scheme, o.Cache = s.guard.Client, r.manager.GetScheme(), cacheOptions(s.guard)
		// The kinds are built into every cluster: our mapper knows them.
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return r.manager.GetRESTMapper(), nil }
	})
	if err != nil {
		return err
	}
	s.connection.Client, s.connection.Live = remote.GetClient(), remote.GetAPIReader()
	if err := r.mayList(ctx, s.connection.Live); err != nil {
		return err
	}
	if err := kube.IndexWorkload(ctx, remote.GetFieldIndexer()); err != nil {
		return err
	}
	evictor, err := kube.NewEvictor(config, s.guard.Client)
	if err != nil {
		return err
	}
	s.parts = append(s.parts, remote.GetCache().Start)
	s.dispatcher = r.options.Dispatcher.ForCluster(s.connection.Client, s.connection.Now.Earliest)
	return r.equip(ctx, s, key, remote.GetCache(), eviction.QueueOptions{Dispatcher: s.dispatcher, Evictor: evictor.ForMachines()})
}

// cacheOptions returns the options of a cache whose objects count before it has them.
func cacheOptions(g *guard.Guard) cache.Options {
	options := kube.CacheOptions()
	options.ReaderFailOnMissingInformer = true
	options.DefaultWatchErrorHandler = func(_ context.Context, _ *toolscache.Reflector, err error) {
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) { // These are read again.
			g.Report(err)
		}
	}
	for kind, by := range options.ByObject {
		strip := by.Transform
		by.Transform = func(in any) (any, error) {
			out, err := strip(in)
			if object, ok := out.(client.Object); ok && err == nil {
				g.Keep(object)
			}
			return out, err
		}
		options.ByObject[kind] = by
	}
	return options
}

// mayList lists one object of every kind. The error names all kinds that the user of the
// kubeconfig may not list.
func (r *Registry) mayList(ctx context.Context, live client.Reader) (forbidden error) {
	for _, object := range kube.WorkloadKinds() {
		gvk, err := apiutil.GVKForObject(object, r.manager.GetScheme())
		if err != nil {
			return fmt.Errorf("name %T: %w", object, err)
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		err = live.List(ctx, list, client.Limit(1))
		switch {
		case apierrors.IsForbidden(err):
			forbidden = errors.Join(forbidden, fmt.Errorf("list %s: %w", gvk.Kind, err))
		case err != nil:
			return fmt.Errorf("list %s: %w", gvk.Kind, err)
		}
	}
	return forbidden
}

// equip adds evictions and informers of all kinds that Machines need to a session.
func (r *Registry) equip(ctx context.Context, s *session, key types.NamespacedName, store cache.Cache, options eviction.QueueOptions) error {
	options.Reader, options.Workers, options.Changed = s.connection.Client, r.options.Workers, func(owner types.NamespacedName) { r.notify(&r.evictions, owner) }
	s.connection.Evictions = eviction.NewQueue(options)
	s.parts = append(s.parts, s.connection.Evictions.Start)
	for _, object := range kube.WorkloadKinds() {
		gvk, err := apiutil.GVKForObject(object, r.manager.GetScheme())
		if err != nil {
			return fmt.Errorf("name %T: %w", object, err)
		}
		informer, err := store.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("read kind %s: %w", gvk.Kind, err)
		}
		s.kinds = append(s.kinds, kind{gvk.Kind, informer})
		// One handler for all that watch the kind: each costs two goroutines.
		registration, err := informer.AddEventHandler(handler(r.handlers(s, key, object)))
		if err != nil {
			return fmt.Errorf("watch kind %s: %w", gvk.Kind, err)
		}
		s.undo = append(s.undo, func() { _ = informer.RemoveEventHandler(registration) })
	}
	return nil
}

// handlers returns the handlers of a kind: the ledger and the dispatcher of a remote cluster, and
// those of Watch.
func (r *Registry) handlers(s *session, key types.NamespacedName, like client.Object) (all []func(old, now client.Object)) {
	if s.guard != nil {
		all = append(all, s.guard.Follow)
	}
	if _, budgets := like.(*policyv1.PodDisruptionBudget); budgets && s.dispatcher != nil {
		all = append(all, func(old, now client.Object) {
			before, _ := old.(*policyv1.PodDisruptionBudget)
			after, _ := now.(*policyv1.PodDisruptionBudget)
			s.dispatcher.BudgetChanged(before, after)
		})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.watches {
		if reflect.TypeOf(w.kind) == reflect.TypeOf(like) {
			all = append(all, func(old, now client.Object) { w.handle(key, old, now) })
		}
	}
	return all
}

func handler(all []func(old, now client.Object)) toolscache.ResourceEventHandler {
	return kube.OnInform(func(old, now client.Object) {
		for _, handle := range all {
			handle(old, now)
		}
	})
}
