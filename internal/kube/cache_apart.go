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

// apart is the cache of the manager in two. Controllers begin when the first one has read all of
// its kinds. A kind of the second one that can never be read holds up those that read it.
type apart struct {
	cache.Cache
	others cache.Cache
	scheme *runtime.Scheme
	// needed are the kinds of the first one.
	needed map[schema.GroupVersionKind]bool
}

// NewCacheApart has a manager keep kinds apart that not all of it needs. Of one cache,
// controller-runtime waits for all kinds before anything begins.
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

// of is the cache of an object or list.
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

// Start is a manager.Runnable.
func (a *apart) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.Cache.Start(ctx) })
	group.Go(func() error { return a.others.Start(ctx) })
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Get is a client.Reader's.
func (a *apart) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c, err := a.of(object)
	if err != nil {
		return err
	}
	return c.Get(ctx, key, object, options...)
}

// List is a client.Reader's.
func (a *apart) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c, err := a.of(list)
	if err != nil {
		return err
	}
	return c.List(ctx, list, options...)
}

// GetInformer is a cache.Informers'.
func (a *apart) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	c, err := a.of(object)
	if err != nil {
		return nil, err
	}
	return c.GetInformer(ctx, object, options...)
}

// GetInformerForKind is a cache.Informers'.
func (a *apart) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind, options ...cache.InformerGetOption) (cache.Informer, error) {
	return a.ofKind(kind).GetInformerForKind(ctx, kind, options...)
}

// RemoveInformer is a cache.Informers'.
func (a *apart) RemoveInformer(ctx context.Context, object client.Object) error {
	c, err := a.of(object)
	if err != nil {
		return err
	}
	return c.RemoveInformer(ctx, object)
}

// IndexField is a client.FieldIndexer's.
func (a *apart) IndexField(ctx context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	c, err := a.of(object)
	if err != nil {
		return err
	}
	return c.IndexField(ctx, object, field, extract)
}
