package rollout

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	core "ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// confirmInterval is the least time between two reads of all nodes, also while the result cannot be
	// written.
	confirmInterval = 5 * time.Second
	// nodePage limits the unstripped nodes in memory.
	nodePage = 250
)

// confirm decides, and decides again by the nodes of the API server if a rollout seems to be
// complete. If that is not possible now, it returns when it is.
func (r *reconciler) confirm(ctx context.Context, snapshot *core.Snapshot) (decision *core.Decision, again time.Duration) {
	decision = r.decide(snapshot)
	if !decision.NeedsLive {
		return decision, 0
	}
	now := r.clock.Now()
	if left := confirmInterval - now.Sub(r.confirmed); left > 0 {
		return decision, left
	}
	r.confirmed = now
	nodes, err := r.liveNodes(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to confirm that a rollout is complete, retrying")
		return decision, confirmInterval
	}
	snapshot.Nodes, snapshot.Live = nodes, true
	return r.decide(snapshot), 0
}

// liveNodes reads all nodes from the API server.
func (r *reconciler) liveNodes(ctx context.Context) ([]*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	// Otherwise a kept map would keep its page in memory.
	all, err := pagedNodes(ctx, r.live, func(node *corev1.Node) *corev1.Node { return kube.StripNode(node.DeepCopy()) })
	if err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	return all, nil
}

// pagedNodes reads all nodes page by page, and keeps a part of each.
func pagedNodes(ctx context.Context, live client.Reader, part func(*corev1.Node) *corev1.Node) (all []*corev1.Node, err error) {
	for next := ""; ; {
		var page corev1.NodeList
		if err := live.List(ctx, &page, client.Limit(nodePage), client.Continue(next)); err != nil {
			return nil, err
		}
		for i := range page.Items {
			all = append(all, part(&page.Items[i]))
		}
		if next = page.Continue; next == "" {
			return all, nil
		}
	}
}
