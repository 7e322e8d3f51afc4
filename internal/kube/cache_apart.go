package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// apart splits the cache of the manager in two. Controllers start when the first has synced. A kind
// of the second that cannot be read blocks only its readers.
type apart struct {
	cache.Cache
	others cache.Cache
	scheme *runtime.Scheme
	needed map[schema.GroupVersionKind]bool
}

// NewCacheApart keeps kinds apart that not all parts need: controller-runtime waits for all kinds
// of one cache.
func NewCacheApart(needed func(schema.GroupResource) bool) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		first, err := cache.New(config, options)
		if err != nil {
			return nil, fmt.Errorf("make a cache: %w", err)
		}
		second, err := cache.New(config, options)
		if err != nil {
			return nil, fmt.Errorf("make a cache: %w", err)
		}
		a := &apart{Cache: first, others: second, scheme: options.Scheme, needed: map[schema.GroupVersionKind]bool{}}
		for kind := range options.Scheme.AllKnownTypes() {
			resource, _ := meta.UnsafeGuessKindToResource(kind)
			a.needed[kind] = needed(resource.GroupResource())
		}
		return a, nil
	}
}

func (a *apart) of(object runtime.Object) (cache.Cache, error) {
	kind, err := apiutil.GVKForObject(object, a.scheme)
	if err != nil {
		return nil, err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	return a.ofKind(kind), nil
}

func (a *apart) ofKind(kind schema.GroupVersionKind) cache.Cache {
	if a.needed[kind] {
		return a.Cache
	}
	return a.others
}

// Start implements manager.Runnable.
func (a *apart) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.Cache.Start(ctx) })
	group.Go(func() error { return a.others.Start(ctx) })
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Get implements client.Reader.
func (a *apart) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c, err := a.of(object)
	if err != nil {
		return err
	}
	return c.Get(ctx, key, object, options...)
}

// List implements client.Reader.
func (a *apart) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c, err := a.of(list)
	if err != nil {
		return err
	}
	return c.List(ctx, list, options...)
}

// GetInformer implements cache.Informers.
func (a *apart) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	c, err := a.of(object)
	if err != nil {
		return nil, err
	}
	return c.GetInformer(ctx, object, options...)
}

// GetInformerForKind implements cache.Informers.
func (a *apart) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind, options ...cache.InformerGetOption) (cache.Informer, error) {
	return a.ofKind(kind).GetInformerForKind(ctx, kind, options...)
}

// RemoveInformer implements cache.Informers.
func (a *apart) RemoveInformer(ctx context.Context, object client.Object) error {
	c, err := a.of(object)
	if err != nil {
		return err
	}
	return c.RemoveInformer(ctx, object)
}

// IndexField implements client.FieldIndexer.
func (a *apart) IndexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	c, err := a.of(object)
	if err != nil {
		return err
	}
	return c.IndexField(ctx, object, field, extract)
}
