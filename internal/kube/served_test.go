package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

type catalogue struct {
	discovery.ServerResourcesInterface
	asked atomic.Int32

	mu        sync.Mutex
	resources []string
	err       error
}

func (c *catalogue) answers(err error, resources ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resources, c.err = resources, err
}

func (c *catalogue) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	c.asked.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	list := &metav1.APIResourceList{}
	for _, name := range c.resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	return list, nil
}

type bystander struct {
	manager.Manager
	watches watches
	indexes indexer
	// elected is closed when it leads.
	elected chan struct{}
}

func newLeader() *bystander {
	b := &bystander{elected: make(chan struct{})}
	close(b.elected)
	return b
}

func (b *bystander) GetLogger() logr.Logger               { return logr.Discard() }
func (b *bystander) GetFieldIndexer() client.FieldIndexer { return &b.indexes }
func (b *bystander) Elected() <-chan struct{}             { return b.elected }
func (b *bystander) GetCache() cache.Cache                { return &b.watches }

// indexer takes an index once, as an informer does.
type indexer struct{ taken []string }

func (f *indexer) IndexField(_ context.Context, object client.Object, field string, _ client.IndexerFunc) error {
	name := fmt.Sprintf("%T by %s", object, field)
	if slices.Contains(f.taken, name) {
		return fmt.Errorf("indexer conflict: %s", name)
	}
	f.taken = append(f.taken, name)
	return nil
}

// watches counts those that were ended.
type watches struct {
	cache.Cache
	ended atomic.Int32
}

func (w *watches) RemoveInformer(context.Context, client.Object) error {
	w.ended.Add(1)
	return nil
}

// What acts on an API begins when that is served, ends when it is not, and is left alone
// when nobody knows.
func TestAnAPIComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := apierrors.NewNotFound(schema.GroupResource{}, "")
		offer, mgr := &catalogue{err: gone}, newLeader()
		served := &Served{
			api: ServedAPI{GroupVersion: lifecyclev1alpha1.SchemeGroupVersion, Resources: []string{"evictions", "evictionrequests"}, Kinds: []client.Object{&lifecyclev1alpha1.Eviction{}}},
			mgr: mgr, discovery: offer, every: askServedEvery,
		}
		var begun, running atomic.Int32
		fails := make(chan error)
		served.Part(func(ctx context.Context) error {
			begun.Add(1)
			running.Add(1)
			defer running.Add(-1)
			select {
			case <-ctx.Done():
				return nil
			case err := <-fails:
				return err
			}
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- served.Start(ctx) }()
		after := func(what string, pause time.Duration, wantBegun, wantRunning, wantEnded int32) {
			t.Helper()
			time.Sleep(pause)
			synctest.Wait()
			if begun.Load() != wantBegun || running.Load() != wantRunning || mgr.watches.ended.Load() != wantEnded || served.Now() != (wantRunning > 0) {
				t.Errorf("%s: begun %d times, %d go on, %d watches ended, served: %t; want %d, %d, %d, %t",
					what, begun.Load(), running.Load(), mgr.watches.ended.Load(), served.Now(), wantBegun, wantRunning, wantEnded, wantRunning > 0)
			}
		}
		after("it is not served", time.Second, 0, 0, 0)
		offer.answers(nil, "evictionrequests")
		after("half of it is", askServedEvery, 0, 0, 0)
		offer.answers(nil, "evictionrequests", "evictions")
		after("it is served", askServedEvery, 1, 1, 0)
		offer.answers(errors.New("the API server is overloaded"))
		after("nobody knows", askServedEvery, 1, 1, 0)
		offer.answers(gone)
		after("it is gone", askServedEvery, 1, 0, 1)
		offer.answers(nil, "evictionrequests", "evictions")
		after("it is back", askServedEvery, 2, 1, 1)
		fails <- errors.New("it broke")
		after("what acts on it has ended", time.Second, 2, 0, 2)
		after("it is begun anew", failedServedPause, 3, 1, 2)
		asked := offer.asked.Load()
		after("an hour later", time.Hour, 3, 1, 2)
		if more := offer.asked.Load() - asked; more != 12 {
			t.Errorf("it is asked for %d times in an hour, want 12", more)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if running.Load() != 0 {
			t.Error("what acts on it goes on without a manager")
		}
	})
}

// An API that may be installed late is asked for more often while it is not served.
func TestUnservedAPIIsAskedForMoreOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		offer := &catalogue{err: errors.New("the API server is overloaded")}
		served := &Served{api: ServedAPI{Resources: []string{"evictions"}, Unserved: time.Second}, mgr: newLeader(), discovery: offer, every: askServedEvery}
		go func() { _ = served.Start(t.Context()) }()
		time.Sleep(time.Minute)
		offer.answers(nil, "evictions")
		time.Sleep(time.Second)
		synctest.Wait()
		if asked := offer.asked.Load(); asked < 59 || !served.Now() {
			t.Errorf("it is asked for %d times in a minute, served: %t", asked, served.Now())
		}
		asked := offer.asked.Load()
		time.Sleep(time.Hour)
		synctest.Wait()
		if more := offer.asked.Load() - asked; more != 12 {
			t.Errorf("served, it is asked for %d times in an hour, want 12", more)
		}
	})
}

// A replica that does not lead runs what every one of them runs; when it comes to lead it runs
// the rest as well. What both of them index is indexed once.
func TestAReplicaComesToLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		offer, mgr := &catalogue{resources: []string{"evictions"}}, &bystander{elected: make(chan struct{})}
		served := &Served{api: ServedAPI{Resources: []string{"evictions"}}, mgr: mgr, discovery: offer, every: askServedEvery}
		var mu sync.Mutex
		var running []string
		part := func(name string) func(context.Context) error {
			return func(ctx context.Context) error {
				mu.Lock()
				running = append(running, name)
				mu.Unlock()
				<-ctx.Done()
				mu.Lock()
				defer mu.Unlock()
				running = slices.DeleteFunc(running, func(other string) bool { return other == name })
				return nil
			}
		}
		served.Part(part("leading"))
		served.PartEverywhere(part("everywhere"))
		served.Index(&lifecyclev1alpha1.Eviction{}, "pod", nil)
		served.Index(&lifecyclev1alpha1.EvictionRequest{}, "pod", nil)
		served.IndexEverywhere(&lifecyclev1alpha1.Eviction{}, "pod", nil)
		if served.NeedLeaderElection() {
			t.Error("a replica that does not lead does not even ask")
		}
		go func() { _ = served.Start(t.Context()) }()
		want := func(what string, parts, indexed []string) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(running, parts) || !slices.Equal(mgr.indexes.taken, indexed) {
				t.Errorf("%s: %v run, indexed: %v; want %v and %v", what, running, mgr.indexes.taken, parts, indexed)
			}
		}
		want("it does not lead", []string{"everywhere"}, []string{"*v1alpha1.Eviction by pod"})
		close(mgr.elected)
		want("it leads", []string{"everywhere", "leading"}, []string{"*v1alpha1.Eviction by pod", "*v1alpha1.EvictionRequest by pod"})
		offer.resources = nil
		time.Sleep(askServedEvery)
		want("the API is gone", []string{}, []string{"*v1alpha1.Eviction by pod", "*v1alpha1.EvictionRequest by pod"})
	})
}
