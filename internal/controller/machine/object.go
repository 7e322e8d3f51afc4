package machine

import (
	"cmp"
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

// Objects reads objects of any kind that Machines and Clusters name. It starts to watch a kind when
// it is first named. While the watch does not work, for lack of permission or of the kind, every
// object is read from the API server.
type Objects struct {
	cache   cache.Cache
	live    client.Reader
	changed func(kind schema.GroupKind, key types.NamespacedName)

	clock    clock.PassiveClock
	mu       sync.Mutex
	followed map[schema.GroupVersionKind]cache.Informer
	// lost is the time of the last failure of each watch.
	lost map[schema.GroupVersionKind]time.Time
}

// newObjects adds a cache of named objects to the manager.
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

// OpenObjects returns a reader of named objects that reports changes once it is started. It fails
// if the cache cannot be set up.
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

// Start runs the cache until the context ends. It fails if the cache was started before.
func (o *Objects) Start(ctx context.Context) error { return o.cache.Start(ctx) }

// Get reads an object; nil if it does not exist, which only the API server can tell. Found also
// reports whether changed will be called for the next change.
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
	object, err := readLive(ctx, o.live, key, kind)
	return Found{object, followed}, err
}

// Found is an object, nil if it does not exist, and whether it is watched.
type Found struct {
	Object  *unstructured.Unstructured
	Watched bool
}

func readLive(ctx context.Context, live client.Reader, key types.NamespacedName, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	object := blank(kind)
	err := live.Get(ctx, key, object)
	switch {
	case err == nil:
		return within(key.Namespace, object), nil
	case apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err):
		return nil, nil
	default:
		// This includes versions that are not served.
		return nil, err
	}
}

// within returns the object unless it is outside the namespace. A cluster-scoped object is found
// under any namespace but is not part of a Machine: we may delete some that the author of the
// Machine may not.
func within(namespace string, object *unstructured.Unstructured) *unstructured.Unstructured {
	if object.GetNamespace() != namespace {
		return nil
	}
	return object
}

// follows reports whether a kind is cached, and starts its watch if not.
func (o *Objects) follows(ctx context.Context, kind schema.GroupVersionKind) bool {
	o.mu.Lock()
	informer, lost := o.followed[kind], o.isLost(kind)
	o.mu.Unlock()
	if informer != nil {
		return informer.HasSynced() && !lost
	}
	// Without the lock, so that a slow API server does not block readers of other kinds.
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

func (o *Objects) handler(kind schema.GroupKind) toolscache.ResourceEventHandler {
	return kube.OnInform(func(old, now *unstructured.Unstructured) {
		o.changed(kind, client.ObjectKeyFromObject(cmp.Or(now, old)))
	})
}

func blank(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

func kindOf(ref v1alpha1.ObjectReference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
}

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
