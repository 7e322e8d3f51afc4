package machine

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
)

// Objects reads the objects that Machines and Clusters name, of whatever kind. It
// watches a kind from when it is first named. As long as that does not work, for
// want of a permission or of the kind, or not any more, it asks the API server for
// every object, whose answer says what is missing.
type Objects struct {
	cache cache.Cache
	live  client.Reader
	// changed is told of every object of such a kind that has come, changed or gone.
	changed func(kind schema.GroupKind, key types.NamespacedName)

	clock    clock.PassiveClock
	mu       sync.Mutex
	followed map[schema.GroupVersionKind]cache.Informer
	// lost is when the watch of a kind has failed last.
	lost map[schema.GroupVersionKind]time.Time
}

// newObjects has the manager run a cache of what is named.
//
// Errors: the cache cannot be set up.
func newObjects(mgr manager.Manager, changed func(schema.GroupKind, types.NamespacedName)) (*Objects, error) {
	options := cache.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()}
	o, err := OpenObjects(mgr.GetConfig(), options, mgr.GetAPIReader(), changed)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(o.cache); err != nil {
		return nil, fmt.Errorf("run a cache of the objects that machines name: %w", err)
	}
	return o, nil
}

// OpenObjects returns what reads objects once it is started, and tells of those that it
// follows when they change.
//
// Errors: the cache cannot be set up.
func OpenObjects(
	config *rest.Config, options cache.Options, live client.Reader, changed func(schema.GroupKind, types.NamespacedName),
) (o *Objects, err error) {
	o = &Objects{
		live: live, changed: changed, clock: clock.RealClock{},
		followed: map[schema.GroupVersionKind]cache.Informer{}, lost: map[schema.GroupVersionKind]time.Time{},
	}
	options.DefaultTransform, options.DefaultWatchErrorHandler = kube.StripExternal, o.watchFailed
	if o.cache, err = cache.New(config, options); err != nil {
		return nil, fmt.Errorf("make a cache of the objects that machines name: %w", err)
	}
	return o, nil
}

// Start fills the cache until the context ends.
//
// Errors: the cache was started before.
func (o *Objects) Start(ctx context.Context) error { return o.cache.Start(ctx) }

// Get reads an object; nil if it does not exist. That it does not is only ever
// said by the API server: a cache that is behind knows nothing of what is new. It
// tells also whether changed will tell of the object's next change.
func (o *Objects) Get(ctx context.Context, key types.NamespacedName, kind schema.GroupVersionKind) (Found, error) {
	followed := o.follows(ctx, kind)
	if followed {
		object := blank(kind)
		err := o.cache.Get(ctx, key, object)
		if err == nil {
			return Found{within(key.Namespace, object), true}, nil
		}
		if !apierrors.IsNotFound(err) {
			return Found{}, err
		}
	}
	object, err := ask(ctx, o.live, key, kind)
	return Found{object, followed}, err
}

// Found is an object, nil if it does not exist, and whether it is watched.
type Found struct {
	Object  *unstructured.Unstructured
	Watched bool
}

// ask reads an object from the API server; nil if it does not exist.
func ask(ctx context.Context, live client.Reader, key types.NamespacedName, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	object := blank(kind)
	err := live.Get(ctx, key, object)
	switch {
	case err == nil:
		return within(key.Namespace, object), nil
	case apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err):
		return nil, nil
	default:
		// Among them is the answer that the version of the kind is not served.
		return nil, err
	}
}

// within returns the object, or nil if it is not in the namespace. Objects of a
// kind that has none are found under any, and are no part of a Machine: we may
// delete some that its author may not.
func within(namespace string, object *unstructured.Unstructured) *unstructured.Unstructured {
	if object.GetNamespace() != namespace {
		return nil
	}
	return object
}

// follows tells whether everything of a kind is in the cache, and sees to it that
// it soon will be.
func (o *Objects) follows(ctx context.Context, kind schema.GroupVersionKind) bool {
	o.mu.Lock()
	informer, lost := o.followed[kind], o.isLost(kind)
	o.mu.Unlock()
	if informer != nil {
		return informer.HasSynced() && !lost
	}
	// Without the lock: a slow API server holds up nobody who reads other kinds.
	informer, err := o.cache.GetInformer(ctx, blank(kind), cache.BlockUntilSynced(false))
	if err != nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.followed[kind] != nil {
		return false
	}
	if _, err := informer.AddEventHandler(o.handler(kind.GroupKind())); err != nil {
		return false
	}
	o.followed[kind] = informer
	return informer.HasSynced()
}

func (o *Objects) handler(kind schema.GroupKind) toolscache.ResourceEventHandlerFuncs {
	tell := func(told any) {
		if missed, ok := told.(toolscache.DeletedFinalStateUnknown); ok {
			told = missed.Obj
		}
		if object, ok := told.(client.Object); ok {
			o.changed(kind, client.ObjectKeyFromObject(object))
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: tell, DeleteFunc: tell,
		UpdateFunc: func(_, now any) { tell(now) },
	}
}

func blank(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

func kindOf(ref v1alpha1.ObjectReference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
}

// unreadable says why an object could not be read, and what would help.
func unreadable(ref v1alpha1.ObjectReference, err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("%v. Its provider has to ship a ClusterRole with the label ebbtide.dev/aggregate-to-manager=true "+
			"that allows get, list, watch, patch and delete", err)
	case meta.IsNoMatchError(err):
		return fmt.Sprintf("kind %s of %s is not served here. Install its provider. If there will be none, and nothing of the Machine is left, "+
			"it goes when its finalizer %s is removed by hand", ref.Kind, ref.APIVersion, v1alpha1.MachineFinalizer)
	default:
		return err.Error()
	}
}
