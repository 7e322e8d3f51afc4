// Package fault gives tests of one shell an API server in memory whose requests can fail: the
// fake client of controller-runtime with our kinds and indexes. Requests are named "<verb>
// <kind> <name>", such as "patch status of Node one". One can be refused, or the manager is
// killed after it. There is no admission, garbage collection or other controller: tests that
// need these use test/cluster.
package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/sandbox"
)

// ErrKilled is what every request of a dead manager comes to.
var ErrKilled = errors.New("the manager is dead")

// Server is an API server in memory. Make one with NewServer.
type Server struct {
	// WithWatch is everybody else's client.
	client.WithWatch
	// Manager is the manager's client.
	Manager client.WithWatch
	// Refuse is asked before every request of the manager, one at a time. Nothing
	// happens to a request for which it returns an error, and that is its answer.
	// Nil refuses nothing.
	Refuse func(request string) error

	mu             sync.Mutex
	writes, events []string
	// left is how many writes the manager lives for, negative if it is immortal.
	left int
}

// NewServer returns a server with copies of the objects, which servers may share.
func NewServer(t *testing.T, objects ...client.Object) *Server {
	t.Helper()
	scheme, err := sandbox.Scheme()
	if err != nil {
		t.Fatalf("build the scheme: %v", err)
	}
	// Nothing is applied here, so that nobody needs to know who manages which field: a tracker of
	// that makes a mapper of all kinds for every write, which took most of the time of tests.
	tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(tracker).
		WithStatusSubresource(&v1alpha1.NodeMaintenance{}, &v1alpha1.Evacuation{}, &v1alpha1.Cluster{}, &v1alpha1.Machine{},
			&v1alpha1.DrainRecord{}, &v1alpha1.NodeAgent{}, &v1alpha1.NodeRollout{}, &v1alpha1.NodeBudget{})
	for _, object := range objects {
		builder.WithObjects(object.DeepCopyObject().(client.Object))
	}
	if err := kube.IndexFields(t.Context(), indexer{builder}); err != nil {
		t.Fatalf("index the server: %v", err)
	}
	if err := kube.IndexMachines(t.Context(), indexer{builder}); err != nil {
		t.Fatalf("index the server: %v", err)
	}
	builder.WithIndex(&lifecyclev1alpha1.EvictionRequest{}, kube.RequestNodeField, kube.RequestNode)
	builder.WithIndex(&lifecyclev1alpha1.Eviction{}, kube.EvictionPodField, kube.EvictionPod)
	s := &Server{WithWatch: builder.Build(), left: -1}
	s.Manager = interceptor.NewClient(s.WithWatch, s.interceptor())
	return s
}

// indexer adds the indexes of a cache to a fake client.
type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(object, field, extract)
	return nil
}

func (s *Server) interceptor() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			return s.read("get", object, key.Name, func() error { return c.Get(ctx, key, object, options...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return s.read("list", list, "", func() error { return c.List(ctx, list, options...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return s.change("create", object, func() error { return c.Create(ctx, object, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return s.change("update", object, func() error { return c.Update(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return s.change("patch", object, func() error { return c.Patch(ctx, object, patch, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return s.change("delete", object, func() error { return c.Delete(ctx, object, options...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteAllOfOption) error {
			return s.change("delete all of", object, func() error { return c.DeleteAllOf(ctx, object, options...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object, options ...client.SubResourceUpdateOption) error {
			return s.change("update "+sub+" of", object, func() error { return c.SubResource(sub).Update(ctx, object, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return s.change("patch "+sub+" of", object, func() error { return c.SubResource(sub).Patch(ctx, object, patch, options...) })
		},
	}
}

func (s *Server) read(verb string, object runtime.Object, name string, do func() error) error {
	request, err := s.request(verb, object, name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	err = s.refusal(request)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return do()
}

func (s *Server) change(verb string, object client.Object, do func() error) error {
	request, err := s.request(verb, object, object.GetName())
	if err != nil {
		return err
	}
	return s.Write(request, do)
}

func (s *Server) request(verb string, object runtime.Object, name string) (string, error) {
	kind, err := s.GroupVersionKindFor(object)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(verb + " " + strings.TrimSuffix(kind.Kind, "List") + " " + name), nil
}

// refusal is why a request does not happen.
func (s *Server) refusal(request string) error {
	switch {
	case s.left == 0:
		return ErrKilled
	case s.Refuse != nil:
		return s.Refuse(request)
	}
	return nil
}

// Write makes a write of the manager as its client does. It is for writes that
// have no place in the client.
func (s *Server) Write(request string, do func() error) error {
	last, err := s.begin(request)
	if err != nil {
		return err
	}
	err = do()
	if last {
		return ErrKilled
	}
	return err
}

// begin records a write and returns whether it is the manager's last.
func (s *Server) begin(request string) (last bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left != 0 {
		s.writes = append(s.writes, request)
	}
	if err := s.refusal(request); err != nil {
		return false, err
	}
	if s.left > 0 {
		s.left--
	}
	return s.left == 0, nil
}

// KillAfter kills the manager after so many more writes. The last one happens,
// but the manager does not hear of it. With none it is dead at once.
func (s *Server) KillAfter(writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = writes
}

// Killed returns whether the manager is dead.
func (s *Server) Killed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left == 0
}

// Revive lets the requests of a next manager, which lives for ever, through.
func (s *Server) Revive() { s.KillAfter(-1) }

// Writes are the writes that managers asked for until they died, the refused
// ones, too.
func (s *Server) Writes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.writes)
}

// Emit records events.
func (s *Server) Emit(happened ...event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range happened {
		s.events = append(s.events, fmt.Sprintf("%s on %s/%s: %s", e.Reason, e.Regarding.Kind, e.Regarding.Name, e.Message))
	}
}

// Events are those that were emitted, "<reason> on <kind>/<name>: <message>".
func (s *Server) Events() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}
