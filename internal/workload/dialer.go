package workload

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/kube"
)

// dialer makes sessions.
type dialer struct {
	manager  manager.Manager
	registry *Registry
	options  Options
	// results counts the evictions of all clusters.
	results *prometheus.CounterVec
}

// local is a session on the manager's own client and cache, which it shares
// with everybody else and leaves running.
func (d *dialer) local(ctx context.Context) (*session, error) {
	evictor, err := kube.NewEvictor(d.manager.GetConfig(), d.manager.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	s := &session{
		connection: &Connection{Client: d.manager.GetClient(), Live: d.manager.GetAPIReader(), Now: d.options.Skew.Now},
		probe:      func(context.Context) error { return nil },
		describe:   func(err error) error { return err },
	}
	return s, d.equip(ctx, s, Local, equipment{cache: d.manager.GetCache(), evictor: evictor})
}

// equipment is what a session is made of.
type equipment struct {
	cache   cache.Cache
	evictor *kube.Evictor
	// watches are those that the session itself needs.
	watches []watch
}

// equip gives a session its evictions, and has it read all that Machines need.
func (d *dialer) equip(ctx context.Context, s *session, cluster types.NamespacedName, e equipment) error {
	options := d.evictions(cluster)
	options.Evictor, options.Reader, options.Now = e.evictor.ForMachines(), s.connection.Client, s.connection.Now
	s.connection.Evictions = eviction.NewQueue(options)
	s.parts = append(s.parts, s.connection.Evictions.Start)
	for _, object := range kube.WorkloadKinds() {
		gvk, err := apiutil.GVKForObject(object, d.manager.GetScheme())
		if err != nil {
			return fmt.Errorf("name %T: %w", object, err)
		}
		informer, err := e.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("read kind %s: %w", gvk.Kind, err)
		}
		s.kinds = append(s.kinds, kind{gvk.Kind, informer})
	}
	watches := append(append(e.watches, budgets(s.connection.Evictions)), d.registry.watched()...)
	release, err := follow(ctx, e.cache, cluster, watches)
	s.release = release
	return err
}

// evictions are the options for those of a cluster. Drains lock budgets of the
// cluster that Ebbtide runs in only, so that nobody asks for the traffic of others.
func (d *dialer) evictions(cluster types.NamespacedName) eviction.QueueOptions {
	options := eviction.QueueOptions{
		Clock: d.registry.clock, Workers: d.options.Workers, LongestLock: d.options.LongestLock,
		Results: d.results, News: d.registry.tellNews,
	}
	if cluster == Local {
		options.Traffic = d.options.Traffic
	}
	return options
}
