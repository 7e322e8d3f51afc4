package machine

import (
	"context"
	"errors"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lostFor bounds the time without reading a kind from the cache after its watch failed. A watch
// that keeps failing does so within this time.
const lostFor = 2 * time.Minute

// watchFailed notes that the cache of a kind is stale, for example because its version is no longer
// served. Machines that name such an object then read it from the API server.
func (o *Objects) watchFailed(ctx context.Context, failed *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, failed, err)
	if errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // These are how watches end that are opened anew.
	}
	if kind, news := o.lose(failed.TypeDescription()); news {
		o.notifyAll(ctx, kind)
	}
}

// lose finds the kind of a failed watch, and reports whether it was not lost before.
func (o *Objects) lose(description string) (kind schema.GroupVersionKind, news bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for kind, informer := range o.followed {
		if kind.String() == description && informer.HasSynced() {
			news := !o.isLost(kind)
			o.lost[kind] = o.clock.Now()
			return kind, news
		}
	}
	return schema.GroupVersionKind{}, false
}

// isLost requires the lock.
func (o *Objects) isLost(kind schema.GroupVersionKind) bool {
	at, lost := o.lost[kind]
	return lost && o.clock.Since(at) < lostFor
}

func (o *Objects) notifyAll(ctx context.Context, kind schema.GroupVersionKind) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := o.cache.List(ctx, list); err != nil {
		return // The cache has ended.
	}
	for i := range list.Items {
		o.changed(kind.GroupKind(), client.ObjectKeyFromObject(&list.Items[i]))
	}
}
