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
	// noticeLasts is for how long somebody is taken to know how a NodeMaintenance
	// drains a node.
	noticeLasts = 24 * time.Hour
	// noticeWithin is how long an eviction waits for its notice at the most.
	noticeWithin = time.Second
)

// notices tells those who evict pods, once for each node, how a NodeMaintenance
// would drain it. What has been told is known to this replica only.
type notices struct {
	reader client.Reader
	told   *memory[listener, struct{}]
}

// listener is a user who evicts the pods of a node. Without a node it is a user
// who has been told enough.
type listener struct{ user, node string }

func newNotices(reader client.Reader) *notices {
	return &notices{reader: reader, told: newMemory[listener, struct{}](noticeLasts)}
}

// of returns what to tell a user who evicts a pod of the node. A user is considered once for
// each node, whatever came of it, so that all other evictions cost one look into the
// memory. Nobody but its log reads what a program is told, so programs are told
// once and not for each node.
func (n *notices) of(ctx context.Context, user, node string, now time.Time) []string {
	if node == "" || !n.told.first(listener{user, node}, struct{}{}, now) {
		return nil
	}
	notice, err := n.read(ctx, node)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Who evicts a pod could not be told of NodeMaintenances", "because", err.Error())
		return nil
	}
	if notice == "" || isProgram(user) && !n.told.first(listener{user: user}, struct{}{}, now) {
		return nil
	}
	return []string{notice}
}

// isProgram returns true for ServiceAccounts and for the components of Kubernetes.
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
