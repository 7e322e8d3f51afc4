package bridge

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	core "ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/kube"
)

// aroundField finds the Machines of a Cluster or MachineSet.
const aroundField = "ebbtide.dev/around"

// kind holds the names of one bridge's objects.
type kind struct {
	bridge          core.Name
	machine, around schema.GroupVersionKind
	// rule says how pods leave Machines; empty if there is no such kind.
	rule schema.GroupVersionKind
}

// kindsOf returns the kinds of bridges that have Machines: those of Cluster API from its release 1.11
// on, and of OpenShift's machine API.
func kindsOf(bridges core.Names) (all []kind) {
	for _, one := range []kind{
		{bridge: core.ClusterAPI, machine: core.ClusterAPIMachine, around: core.ClusterAPICluster, rule: core.ClusterAPIRule},
		{bridge: core.OpenShift, machine: core.OpenShiftMachine, around: core.OpenShiftSet},
	} {
		if bridges.Has(one.bridge) {
			all = append(all, one)
		}
	}
	return all
}

// kinds reads and writes the objects of other controllers.
type kinds struct {
	all    []kind
	live   client.Reader
	writer client.Client
	store  cache.Cache
	wake   func(...request)

	// ready closes begun when the queue exists.
	ready func()
	begun <-chan struct{}

	mu sync.Mutex
	// followed are the informers of what is served.
	followed map[schema.GroupVersionKind]cache.Informer
}

// newKinds has the manager run a cache of what is served.
func newKinds(mgr manager.Manager, all []kind, wake func(...request)) (*kinds, error) {
	k := &kinds{all: all, live: mgr.GetAPIReader(), wake: wake, followed: map[schema.GroupVersionKind]cache.Informer{}}
	begun := make(chan struct{})
	k.begun, k.ready = begun, sync.OnceFunc(func() { close(begun) })
	var err error
	if k.writer, err = client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()}); err != nil {
		return nil, fmt.Errorf("make a client of bridged machines: %w", err)
	}
	if k.store, err = cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: kube.StripBridged,
		DefaultWatchErrorHandler: quiet,
	}); err != nil {
		return nil, fmt.Errorf("make a cache of bridged machines: %w", err)
	}
	if err := mgr.Add(k.store); err != nil {
		return nil, fmt.Errorf("run a cache of bridged machines: %w", err)
	}
	for i := range all {
		served, err := kube.NewServed(mgr, all[i].api())
		if err != nil {
			return nil, err
		}
		served.Part(func(ctx context.Context) error { return k.follow(ctx, &all[i]) })
	}
	return k, nil
}

// api returns the resources that have to be served.
func (one *kind) api() kube.ServedAPI {
	api := kube.ServedAPI{GroupVersion: one.machine.GroupVersion()}
	for _, gvk := range []schema.GroupVersionKind{one.machine, one.around, one.rule} {
		if !gvk.Empty() {
			resource, _ := meta.UnsafeGuessKindToResource(gvk)
			api.Resources = append(api.Resources, resource.Resource)
		}
	}
	return api
}

// quiet logs a failed watch for developers only, as the kind may not be served any more.
func quiet(ctx context.Context, _ *toolscache.Reflector, err error) {
	log.FromContext(ctx).V(1).Info("Failed to watch the Machines of another controller", "reason", err.Error())
}

// read returns the kinds that are read, that of Machines last.
func (one *kind) read(k *kinds) (all []followed) {
	if !one.rule.Empty() {
		all = append(all, followed{one.rule, k.ruleHandler(one)})
	}
	return append(all, followed{one.around, k.aroundHandler(one)}, followed{one.machine, k.machineHandler(one)})
}

// followed is a kind and what learns of its objects.
type followed struct {
	schema.GroupVersionKind
	handler toolscache.ResourceEventHandler
}

// follow reads the kinds of one bridge until the context ends.
func (k *kinds) follow(ctx context.Context, one *kind) error {
	select {
	case <-ctx.Done():
		return nil
	case <-k.begun:
	}
	for _, f := range one.read(k) {
		if err := k.watch(ctx, f); err != nil {
			return err
		}
	}
	log.FromContext(ctx).Info("Bridge active", "bridge", one.bridge)
	<-ctx.Done()
	return nil
}

// watch begins to read a kind, unless it is read already.
func (k *kinds) watch(ctx context.Context, f followed) error {
	gvk := f.GroupVersionKind
	if k.following(gvk) {
		return nil
	}
	if err := k.store.IndexField(ctx, blank(gvk), aroundField, around); err != nil {
		return err
	}
	return k.begin(ctx, blank(gvk), f.handler)
}

// begin begins to read the kind of an object into the cache, unless it is read already.
func (k *kinds) begin(ctx context.Context, object client.Object, handler toolscache.ResourceEventHandler) error {
	gvk := object.GetObjectKind().GroupVersionKind()
	if k.following(gvk) {
		return nil
	}
	informer, err := k.store.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.followed[gvk] != nil {
		return nil
	}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return err
	}
	k.followed[gvk] = informer
	return nil
}

func (k *kinds) following(gvk schema.GroupVersionKind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.followed[gvk] != nil
}

// synced is true if all objects of a kind are in the cache.
func (k *kinds) synced(gvk schema.GroupVersionKind) bool {
	k.mu.Lock()
	informer := k.followed[gvk]
	k.mu.Unlock()
	return informer != nil && informer.HasSynced()
}

// of returns the kind of a bridge; nil if it is not switched on.
func (k *kinds) of(bridge core.Name) *kind {
	for i := range k.all {
		if k.all[i].bridge == bridge {
			return &k.all[i]
		}
	}
	return nil
}

// get reads an object; nil if the API server says that there is none. While a kind is not
// read nothing is known of its objects.
func (k *kinds) get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	if k.synced(gvk) {
		object := blank(gvk)
		err := k.store.Get(ctx, key, object)
		if err == nil {
			return object, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("get %s %s: %w", gvk.Kind, key, err)
		}
	}
	object := blank(gvk)
	err := k.live.Get(ctx, key, object)
	switch {
	case apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) && !apierrors.IsUnexpectedServerError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get %s %s: %w", gvk.Kind, key, err)
	}
	return object, nil
}

// list reads objects, from the cache as soon as all of them are in it. They must not be
// changed.
func (k *kinds) list(ctx context.Context, gvk schema.GroupVersionKind, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	from := kube.Live(k.live)
	if k.synced(gvk) {
		from, options = k.store, append(options, client.UnsafeDisableDeepCopy)
	}
	err := from.List(ctx, list, options...)
	return list.Items, err
}

func blank(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object
}

// around extracts aroundField.
func around(object client.Object) []string {
	machine, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	if name := core.Read(machine).Around; name != "" {
		return []string{name}
	}
	return nil
}
