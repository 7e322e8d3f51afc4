package evictionrequest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/evictionrequest/said"
	"ebbtide.dev/ebbtide/test/evictionrequest/stage"
)

const (
	awaiting = said.Awaiting
	leader   = "example.com/leader"
	evictor  = core.DefaultEvictor
)

// memory is a stage on an API server in memory, which takes every status. Whether a real one
// takes them is tried in test/step.
type memory struct{ *stage.Stage }

func newMemory(t *testing.T) *memory {
	t.Helper()
	scheme, err := sandbox.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	created := 0
	server := fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&lifecyclev1alpha1.Eviction{}, &lifecyclev1alpha1.EvictionRequest{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
				created++
				object.SetUID(types.UID(fmt.Sprint("uid-", created)))
				return c.Create(ctx, object, options...)
			},
		}).Build()
	return &memory{stage.New(t, server, "shop")}
}

// refuse has one request fail from now on, and all others go through.
func (s *memory) refuse(refused string) {
	s.Refuse = func(request string) error {
		if request == refused {
			return errStorm
		}
		return nil
	}
}

// pass makes everything older that counts for the turns of an Eviction.
func (s *memory) pass(name string, by time.Duration) {
	s.T.Helper()
	e := &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	s.Must(s.Client.Get(s.Ctx, client.ObjectKeyFromObject(e), e))
	stage.Age(e, by)
	s.Must(s.Client.Status().Update(s.Ctx, e))
	s.Later(by)
}
