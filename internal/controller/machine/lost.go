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

// lostFor is how long a kind is not read from the cache after its watch has failed.
// One that goes on failing does so again within this time.
const lostFor = 2 * time.Minute

// watchFailed notes that what the cache has of a kind is old: its version may not
// be served any more, a permission may be gone. The Machines that name such an
// object look again, at the API server.
func (o *Objects) watchFailed(ctx context.Context, failed *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, failed, err)
	if errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // These are how watches end that are opened anew.
	}
	if kind, news := o.lose(failed.TypeDescription()); news {
		o.tellAll(ctx, kind)
	}
}

// lose finds the kind of which only the description is known, and says whether it
// was not lost before. One that was never in the cache cannot be lost.
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

// isLost is called with the lock.
func (o *Objects) isLost(kind schema.GroupVersionKind) bool {
	at, lost := o.lost[kind]
	return lost && o.clock.Since(at) < lostFor
}

// tellAll tells of every object of a kind that the cache has.
func (o *Objects) tellAll(ctx context.Context, kind schema.GroupVersionKind) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := o.cache.List(ctx, list); err != nil {
		return // The cache has ended.
	}
	for i := range list.Items {
		o.changed(kind.GroupKind(), client.ObjectKeyFromObject(&list.Items[i]))
	}
}
