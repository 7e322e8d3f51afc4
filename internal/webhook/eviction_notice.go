package webhook

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/internal/core/validate"
)

const (
	// noticeLasts is the time after which a notice is repeated.
	noticeLasts = 24 * time.Hour
	// noticeWithin bounds the delay of an eviction by its notice.
	noticeWithin = time.Second
)

// notices warns users who evict pods, once for each node and replica, that a NodeMaintenance would drain
// the node.
type notices struct {
	reader client.Reader
	told   *memory[listener, struct{}]
}

// listener is a user who evicts the pods of a node; without a node, one who needs no more notices.
type listener struct{ user, node string }

func newNotices(reader client.Reader) *notices {
	return &notices{reader: reader, told: newMemory[listener, struct{}](noticeLasts)}
}

// of returns the notice for a user who evicts a pod of the node. It is computed once for each user and
// node. Programs get one notice in all, as only their logs show it.
func (n *notices) of(ctx context.Context, user, node string, now time.Time) []string {
	if node == "" || !n.told.first(listener{user, node}, struct{}{}, now) {
		return nil
	}
	notice, err := n.read(ctx, node)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Skipped a notice about NodeMaintenances", "reason", err.Error())
		return nil
	}
	if notice == "" || isProgram(user) && !n.told.first(listener{user: user}, struct{}{}, now) {
		return nil
	}
	return []string{notice}
}

// isProgram reports whether a user is a ServiceAccount or a component of Kubernetes.
func isProgram(user string) bool { return strings.HasPrefix(user, "system:") }

// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,verbs=list;watch

func (n *notices) read(ctx context.Context, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, noticeWithin)
	defer cancel()
	node := &corev1.Node{}
	if err := n.reader.Get(ctx, client.ObjectKey{Name: name}, node, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		return "", fmt.Errorf("get node %s: %w", name, err)
	}
	all, err := maintenances(ctx, n.reader)
	if err != nil {
		return "", err
	}
	return validate.EvictionNotice(node, all), nil
}
