package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"ebbtide.dev/ebbtide/internal/kube"
)

// remote is a session with a client and a cache of its own, on a kubeconfig
// that is read anew.
func (d *dialer) remote(ctx context.Context, source source) (*session, error) {
	asking, cancel := context.WithTimeout(ctx, d.registry.pace.Answer)
	defer cancel()
	content, err := source.read(asking, d.manager.GetAPIReader())
	if err != nil {
		return nil, errors.New(secrets{}.line(err.Error()))
	}
	config, err := source.config(content, d.options.Allowed)
	if err != nil {
		return nil, errors.New(secrets{}.line(err.Error()))
	}
	kinds, err := newCatalogue(d.manager.GetScheme(), d.manager.GetRESTMapper())
	if err != nil {
		return nil, err
	}
	own := d.manager.GetConfig()
	config.QPS, config.Burst, config.UserAgent = own.QPS, own.Burst, own.UserAgent
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	config.WarningHandler = rest.NoWarnings{}
	skew := kube.NewSkew(fmt.Sprintf("the API server of Cluster %s", source.cluster))
	skew.Measure(config)
	d.options.Fence.Follow(config)
	line, err := newLine(ctx, config, terms{
		answer: d.registry.pace.Answer, account: d.registry.ledger.open(source.cluster.Namespace), kinds: kinds, skew: skew,
	})
	if err != nil {
		return nil, err
	}
	s, err := d.remoteOn(ctx, line, source)
	if err != nil {
		line.close()
		return nil, line.describe(err)
	}
	s.rotated = func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, d.registry.pace.Answer)
		defer cancel()
		now, err := source.read(ctx, d.manager.GetAPIReader())
		return err == nil && !bytes.Equal(now, content)
	}
	return s, nil
}

// remoteOn asks whether the cluster is there and lets us read, before anything
// is read.
func (d *dialer) remoteOn(ctx context.Context, line *line, source source) (*session, error) {
	if err := line.probe(ctx); err != nil {
		return nil, err
	}
	// The kinds are built into every cluster: ours knows what there is to know of them.
	clients := client.Options{HTTPClient: line.bounded, Scheme: d.manager.GetScheme(), Mapper: d.manager.GetRESTMapper()}
	live, err := client.New(line.config, clients)
	if err != nil {
		return nil, err
	}
	if err := d.allowed(ctx, live); err != nil {
		return nil, err
	}
	store, err := newCache(ctx, line, clients)
	if err != nil {
		return nil, err
	}
	clients.Cache = &client.CacheOptions{Reader: store}
	cached, err := client.New(line.config, clients)
	if err != nil {
		return nil, err
	}
	evictor, err := kube.NewEvictor(line.config, line.bounded)
	if err != nil {
		return nil, err
	}
	s := &session{
		connection: &Connection{Client: cached, Live: live, Now: line.skew.Now},
		probe:      line.probe, describe: line.describe, broken: line.broken, refused: line.refused,
		parts: []func(context.Context) error{store.Start},
	}
	if err := d.equip(ctx, s, source.cluster, equipment{cache: store, evictor: evictor, watches: line.account.watches()}); err != nil {
		return nil, err
	}
	unheard := line.skew.OnChange(func() { d.registry.tell(source.cluster) })
	s.release = func() {
		unheard()
		line.close()
	}
	return s, nil
}

// newCache returns a cache of the kinds that it is asked for before it starts.
func newCache(ctx context.Context, line *line, clients client.Options) (cache.Cache, error) {
	options := kube.CacheOptions()
	options.HTTPClient, options.Scheme, options.Mapper = line.client, clients.Scheme, clients.Mapper
	options.ReaderFailOnMissingInformer = true
	options.DefaultWatchErrorHandler = func(_ context.Context, _ *toolscache.Reflector, err error) {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return // It is read anew.
		}
		line.tell(err)
	}
	line.account.count(&options, line.breaks)
	store, err := cache.New(line.config, options)
	if err != nil {
		return nil, err
	}
	return store, kube.IndexWorkload(ctx, store)
}

// allowed asks for one object of every kind: an error says what the user of the
// kubeconfig may not list.
func (d *dialer) allowed(ctx context.Context, live client.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	kinds := kube.WorkloadKinds()
	refused := make([]error, len(kinds))
	var asked sync.WaitGroup
	for i, object := range kinds {
		asked.Go(func() { refused[i] = d.listOne(ctx, live, object) })
	}
	asked.Wait()
	var forbidden []error
	for _, err := range refused {
		if err != nil && !apierrors.IsForbidden(err) {
			return err
		}
		forbidden = append(forbidden, err)
	}
	return errors.Join(forbidden...)
}

func (d *dialer) listOne(ctx context.Context, live client.Reader, object client.Object) error {
	gvk, err := apiutil.GVKForObject(object, d.manager.GetScheme())
	if err != nil {
		return fmt.Errorf("name %T: %w", object, err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
	if err := live.List(ctx, list, client.Limit(1)); err != nil {
		return fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	return nil
}
