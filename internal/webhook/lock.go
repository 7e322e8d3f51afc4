package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
)

// locks reads the locked budgets of a namespace from the API server, as a cache may be stale. Evictions
// share a read that began after they arrived, so each namespace has at most one running and one waiting
// read.
type locks struct {
	live  client.Reader
	limit *namespaceLimit
	reads singleflight.Group
}

func newLocks(live client.Reader) *locks {
	return &locks{live: live, limit: newNamespaceLimit(1, readsAtOnce)}
}

// of returns the locked budgets of a namespace, which are read-only.
//
// Errors: the budgets could not be read or are too large.
func (l *locks) of(ctx context.Context, namespace string) ([]*policyv1.PodDisruptionBudget, error) {
	shared := l.reads.DoChan(namespace, func() (any, error) {
		ctx, cancel := shareable(ctx)
		defer cancel()
		done, err := l.limit.take(ctx, namespace)
		if err != nil {
			return nil, fmt.Errorf("list poddisruptionbudgets: %w", err)
		}
		defer done()
		// Later evictions need a new read.
		l.reads.Forget(namespace)
		return l.read(ctx, namespace)
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("list poddisruptionbudgets: %w", ctx.Err())
	case result := <-shared:
		locked, _ := result.Val.([]*policyv1.PodDisruptionBudget)
		return locked, result.Err
	}
}

// shareable returns a context with the caller's deadline that outlives the caller. It has no logger, as
// client-go logs each response that is too large.
func shareable(ctx context.Context) (context.Context, context.CancelFunc) {
	alone := logr.NewContext(context.WithoutCancel(ctx), logr.Discard())
	if deadline, bounded := ctx.Deadline(); bounded {
		return context.WithDeadline(alone, deadline)
	}
	return context.WithCancel(alone)
}

// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch

func (l *locks) read(ctx context.Context, namespace string) ([]*policyv1.PodDisruptionBudget, error) {
	list := &policyv1.PodDisruptionBudgetList{}
	if err := l.live.List(ctx, list, client.InNamespace(namespace)); err != nil {
		if over := (*http.MaxBytesError)(nil); errors.As(err, &over) {
			return nil, fmt.Errorf("the PodDisruptionBudgets of namespace %s have more than %d bytes; remove annotations or budgets", namespace, over.Limit)
		}
		return nil, fmt.Errorf("list poddisruptionbudgets: %w", err)
	}
	var locked []*policyv1.PodDisruptionBudget
	for i := range list.Items {
		// A copy lets the others be freed.
		if _, bears := list.Items[i].Annotations[v1alpha1.LockAnnotation]; bears {
			locked = append(locked, kube.StripBudget(&list.Items[i]))
		}
	}
	return locked, nil
}

// boundedTransport reads at most largestAnswer of each response.
type boundedTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, largestAnswer)
	}
	return response, err
}
