package nodemaintenance

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/sandbox"
)

// BenchmarkPass is a pass that reads and decides while 100 nodes of a cluster
// drain: its cost must not grow with the pods of all other nodes.
func BenchmarkPass(b *testing.B) {
	const draining, podsPerNode = 100, 20
	for _, nodes := range []int{500, 5000} {
		b.Run(fmt.Sprintf("nodes=%d/pods=%d", nodes, nodes*podsPerNode), func(b *testing.B) {
			r := newCachedReconciler(b, nodes, draining, podsPerNode)
			for b.Loop() {
				snapshot, err := r.observe(b.Context())
				if err != nil {
					b.Fatalf("observe: %v", err)
				}
				if decided := maintenance.Decide(snapshot); len(decided.Nodes) != draining {
					b.Fatalf("decided on %d nodes, want %d", len(decided.Nodes), draining)
				}
			}
		})
	}
}

// newCachedReconciler reads from caches as the manager has them, filled from
// memory instead of an API server.
func newCachedReconciler(b *testing.B, nodes, draining, podsPerNode int) *reconciler {
	b.Helper()
	scheme, err := sandbox.Scheme()
	if err != nil {
		b.Fatalf("build the scheme: %v", err)
	}
	options := kube.CacheOptions()
	options.Scheme, options.Mapper = scheme, mapper(scheme)
	options.NewInformer = func(_ toolscache.ListerWatcher, kind runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		return toolscache.NewSharedIndexInformer(filled(kind, nodes, draining, podsPerNode), kind, resync, indexers)
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
	if _, err := r.observe(b.Context()); err != nil {
		b.Fatalf("fill the caches: %v", err)
	}
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

// filled are all objects of a kind in a cluster whose first nodes drain.
func filled(kind runtime.Object, nodes, draining, podsPerNode int) *fcache.FakeControllerSource {
	source := fcache.NewFakeControllerSource()
	switch kind.(type) {
	case *v1alpha1.NodeMaintenance:
		source.Add(aMaintenance("upgrade", "old"))
	case *corev1.Node:
		for i := range nodes {
			node := aNode(fmt.Sprintf("node-%04d", i))
			if i >= draining {
				node.Labels["pool"] = "new"
			}
			source.Add(node)
		}
	case *corev1.Pod:
		for i := range nodes * podsPerNode {
			pod := aPod(fmt.Sprintf("pod-%06d", i), fmt.Sprintf("node-%04d", i%nodes))
			pod.UID = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i))
			source.Add(pod)
		}
	}
	return source
}
