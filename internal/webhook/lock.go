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

// locks reads which budgets of a namespace are locked, from the API server: a lock counts
// from the moment it is written, and a cache may be behind for as long as its watch is cut
// off. Evictions share a read, if it began after they came. So one namespace has one read
// under way and one that waits, whoever evicts how many of its pods.
type locks struct {
	live  client.Reader
	limit *namespaceLimit
	reads singleflight.Group
}

func newLocks(live client.Reader) *locks {
	return &locks{live: live, limit: newNamespaceLimit(1, readsAtOnce)}
}

// of returns the budgets of the namespace that bear a lock, to be read only.
//
// Errors: the budgets could not be read, are too large, or the context has ended.
func (l *locks) of(ctx context.Context, namespace string) ([]*policyv1.PodDisruptionBudget, error) {
	shared := l.reads.DoChan(namespace, func() (any, error) {
		ctx, cancel := shareable(ctx)
		defer cancel()
		done, err := l.limit.take(ctx, namespace)
		if err != nil {
			return nil, fmt.Errorf("list the disruption budgets: %w", err)
		}
		defer done()
		// Who comes from now on may know of a lock that this read misses.
		l.reads.Forget(namespace)
		return l.read(ctx, namespace)
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("list the disruption budgets: %w", ctx.Err())
	case result := <-shared:
		locked, _ := result.Val.([]*policyv1.PodDisruptionBudget)
		return locked, result.Err
	}
}

// shareable returns a context that ends when the caller's would have ended, and not with
// the caller. client-go would log each answer that is too large as an error.
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
			return nil, fmt.Errorf("the budgets of namespace %s have more than %d bytes: remove annotations from them, or budgets", namespace, over.Limit)
		}
		return nil, fmt.Errorf("list the disruption budgets: %w", err)
	}
	var locked []*policyv1.PodDisruptionBudget
	for i := range list.Items {
		// A copy does not keep the others in memory.
		if _, bears := list.Items[i].Annotations[v1alpha1.LockAnnotation]; bears {
			locked = append(locked, kube.StripBudget(&list.Items[i]))
		}
	}
	return locked, nil
}

// boundedTransport reads at most largestAnswer of each answer.
type boundedTransport struct{ http.RoundTripper }

// RoundTrip is that of an http.RoundTripper.
func (b boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, largestAnswer)
	}
	return response, err
}
