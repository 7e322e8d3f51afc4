//go:build linux

package agent

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// topic is what is watched: the objects of a kind with a field of a value.
type topic struct {
	object       client.Object
	list         func() client.ObjectList
	namespace    string
	field, value string
	labels       labels.Selector // instead of a field
}

// feed is what a watch has shown.
type feed struct {
	store toolscache.Store
	watch toolscache.Controller
	end   context.CancelFunc
}

// follow watches a topic until the context ends or the feed is ended, and calls changed
// with everything new.
func follow(ctx context.Context, c client.WithWatch, t topic, changed func()) *feed {
	options := func(raw metav1.ListOptions) *client.ListOptions {
		if t.labels != nil {
			return &client.ListOptions{Namespace: t.namespace, LabelSelector: t.labels, Raw: &raw}
		}
		return &client.ListOptions{Namespace: t.namespace, FieldSelector: fields.OneTermEqualSelector(t.field, t.value), Raw: &raw}
	}
	ctx, end := context.WithCancel(ctx)
	store, control := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ObjectType: t.object,
		ListerWatcher: &toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
				list := t.list()
				return list, c.List(ctx, list, options(raw))
			},
			WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
				return c.Watch(ctx, t.list(), options(raw))
			},
		},
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { changed() },
			UpdateFunc: func(any, any) { changed() },
			DeleteFunc: func(any) { changed() },
		},
		Transform: withoutManagedFields,
	})
	go func() {
		control.RunWithContext(ctx)
		end()
	}()
	return &feed{store: store, watch: control, end: end}
}

func withoutManagedFields(object any) (any, error) {
	if o, is := object.(client.Object); is {
		o.SetManagedFields(nil)
	}
	return object, nil
}

// known is true when the feed has shown all that there is.
func (f *feed) known() bool { return f.watch.HasSynced() }

// objects are those of a feed, which must not be changed.
func objects[T client.Object](f *feed) []T {
	var all []T
	for _, object := range f.store.List() {
		if one, is := object.(T); is {
			all = append(all, one)
		}
	}
	return all
}

// only is the object of a feed that has at most one; false if there is none.
func only[T client.Object](f *feed) (one T, found bool) {
	all := objects[T](f)
	if len(all) == 0 {
		return one, false
	}
	return all[0], true
}

func (t topic) String() string { return fmt.Sprintf("%T with %s=%s", t.object, t.field, t.value) }
