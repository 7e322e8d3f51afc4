//go:build linux

package agent

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// topic selects the watched objects: a kind and the value of a field.
type topic struct {
	object       client.Object
	list         func() client.ObjectList
	namespace    string
	field, value string
	labels       labels.Selector // instead of a field
}

// feed is the current state of a watch.
type feed struct {
	store toolscache.Store
	watch toolscache.Controller
	end   context.CancelFunc
}

// follow watches a topic until the context or the feed ends, and calls changed for every event.
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

// known reports whether the feed has listed everything.
func (f *feed) known() bool { return f.watch.HasSynced() }

// objects must not be changed.
func objects[T client.Object](f *feed) []T {
	var all []T
	for _, object := range f.store.List() {
		if one, is := object.(T); is {
			all = append(all, one)
		}
	}
	return all
}

func only[T client.Object](f *feed) (one T, found bool) {
	all := objects[T](f)
	if len(all) == 0 {
		return one, false
	}
	return all[0], true
}
