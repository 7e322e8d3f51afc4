package nodemaintenance

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/goal"
)

// manyMaintenances are 2,500 that select a node each, in a cluster of 5,000.
var manyMaintenances = fleet{nodes: 5000, draining: 2500, podsPerNode: 30, apart: true}

// BenchmarkPodEvent is what one event of a pod costs while 2,500 maintenances drain a
// node each, until all writes are decided.
func BenchmarkPodEvent(b *testing.B) {
	r := newCachedReconciler(b, manyMaintenances)
	old, now := aPod("pod-000007", "node-0007"), aPod("pod-000007", "node-0007")
	now.DeletionTimestamp = &metav1.Time{Time: noon}
	r.watched.set([]string{"node-0007"}, sets.New("node-0007"))
	goal.CPU(b, 20*time.Millisecond)
	for b.Loop() {
		due, concerned := r.podMatters(old, now)
		r.schedule.touch(r.clock.Now().Add(-due), due, concerned...)
		if decided := r.think(b, concerned[0]); decided != 1 {
			b.Fatalf("decided on %d nodes, want 1", decided)
		}
	}
}

// BenchmarkFirstPass is what a manager thinks at its start with 2,500 maintenances.
func BenchmarkFirstPass(b *testing.B) {
	r := newCachedReconciler(b, manyMaintenances)
	goal.CPU(b, 2*time.Second)
	for b.Loop() {
		r.schedule, r.watched = newSchedule(), newWatched()
		r.learn(b)
		decided := 0
		for _, member := range r.dueBy(r.clock.Now()) {
			decided += r.think(b, member)
		}
		if decided != manyMaintenances.draining {
			b.Fatalf("decided on %d nodes, want %d", decided, manyMaintenances.draining)
		}
	}
}

// think runs the pass over the group of a member until all writes are decided, if it is
// due, and returns on how many nodes there are any.
func (r *reconciler) think(b *testing.B, member group.Member) int {
	b.Helper()
	run, _ := r.schedule.begin(r.clock.Now(), member)
	if run == nil {
		return 0
	}
	defer r.schedule.end(r.clock.Now(), run, 0, 0)
	snapshot, err := r.observeAll(b.Context(), run.group)
	if err != nil {
		b.Fatalf("observe: %v", err)
	}
	return len(r.decide(snapshot).Nodes)
}

// learn tells of all maintenances and nodes of the cache.
func (r *reconciler) learn(b *testing.B) {
	b.Helper()
	if err := (told{}).tell(b.Context(), r.client, r); err != nil {
		b.Fatalf("tell: %v", err)
	}
}

// fleet is a cluster whose first nodes drain, by one maintenance or each by its own.
type fleet struct {
	nodes, draining, podsPerNode int

	apart bool
}

// newCachedReconciler reads from caches as the manager has them, filled from
// memory instead of an API server.
func newCachedReconciler(b *testing.B, of fleet) *reconciler {
	b.Helper()
	scheme, err := sandbox.Scheme()
	if err != nil {
		b.Fatalf("build the scheme: %v", err)
	}
	options := kube.CacheOptions()
	options.Scheme, options.Mapper = scheme, mapper(scheme)
	options.NewInformer = func(_ toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		return toolscache.NewSharedIndexInformer(of.fill(kind), kind, resync, indexers)
	}
	reads, err := cache.New(&rest.Config{}, options)
	if err != nil {
		b.Fatalf("make the cache: %v", err)
	}
	if err := kube.IndexFields(b.Context(), reads); err != nil {
		b.Fatalf("index the cache: %v", err)
	}
	go func() {
		if err := reads.Start(b.Context()); err != nil {
			b.Errorf("run the cache: %v", err)
		}
	}()
	consistent := true
	c, err := client.New(&rest.Config{}, client.Options{
		Scheme: scheme, Mapper: mapper(scheme),
		Cache: &client.CacheOptions{Reader: reads, EnableReadYourWritesConsistency: &consistent},
	})
	if err != nil {
		b.Fatalf("make the client: %v", err)
	}
	r := newReconciler(c, func(...event.Event) {}, testingclock.NewFakeClock(noon), newMetrics(prometheus.NewRegistry()))
	r.learn(b)
	// What is read first fills its cache.
	r.think(b, group.Node("node-0000"))
	return r
}

// mapper knows every kind of a scheme, and which of those that the caches read
// have no namespace.
func mapper(scheme *runtime.Scheme) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		switch kind.Kind {
		case "Node", "Namespace", "PersistentVolume", "VolumeAttachment", "NodeMaintenance":
			mapper.Add(kind, meta.RESTScopeRoot)
		default:
			mapper.Add(kind, meta.RESTScopeNamespace)
		}
	}
	return mapper
}

// fill returns all objects of a kind.
func (f fleet) fill(kind runtime.Object) *fcache.FakeControllerSource {
	source := fcache.NewFakeControllerSource()
	switch kind.(type) {
	case *v1alpha1.NodeMaintenance:
		if !f.apart {
			source.Add(aMaintenance("upgrade", "old"))
			break
		}
		for i := range f.draining {
			source.Add(aMaintenance(fmt.Sprintf("upgrade-%04d", i), fmt.Sprintf("p%04d", i)))
		}
	case *corev1.Node:
		for i := range f.nodes {
			node := aNode(fmt.Sprintf("node-%04d", i))
			switch {
			case i >= f.draining:
				node.Labels["pool"] = "new"
			case f.apart:
				node.Labels["pool"] = fmt.Sprintf("p%04d", i)
			}
			source.Add(node)
		}
	case *corev1.Pod:
		for i := range f.nodes * f.podsPerNode {
			pod := aPod(fmt.Sprintf("pod-%06d", i), fmt.Sprintf("node-%04d", i%f.nodes))
			pod.UID = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i))
			source.Add(pod)
		}
	}
	return source
}
