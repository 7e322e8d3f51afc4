package drainlock

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/kube"
)

// observeAway finds other nodes with a promise and pods under the requested budgets. If the cache
// shows the promise of this node, it shows every earlier one.
func observeAway(ctx context.Context, seen *core.Snapshot, cached client.Reader) error {
	if core.Held(seen.Record) || core.Obstructed(*seen) {
		return nil
	}
	seen.Away = map[types.UID]string{}
	for _, b := range seen.Budgets {
		if !core.Asks(seen.Record, b) {
			continue
		}
		away, err := awayUnder(ctx, cached, b, seen.Record.Name)
		if err != nil {
			return err
		}
		if away != "" {
			seen.Away[b.UID] = away
		}
	}
	return nil
}

// awayUnder returns another node with a promise and a pod under the budget, if any.
func awayUnder(ctx context.Context, cached client.Reader, b *policyv1.PodDisruptionBudget, self string) (string, error) {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return "", fmt.Errorf("selector of budget %s: %w", client.ObjectKeyFromObject(b), err)
	}
	var pods corev1.PodList
	if err := cached.List(ctx, &pods, client.InNamespace(b.Namespace), client.MatchingLabelsSelector{Selector: selector},
		client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		return "", fmt.Errorf("list the pods of budget %s: %w", client.ObjectKeyFromObject(b), err)
	}
	names := sets.New[string]()
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Spec.NodeName != "" && !podclass.Terminal(pod) {
			names.Insert(pod.Spec.NodeName)
		}
	}
	names.Delete(self)
	for _, name := range sets.List(names) {
		node := &corev1.Node{}
		err := cached.Get(ctx, client.ObjectKey{Name: name}, node, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("get node %s: %w", name, err)
		}
		if err == nil && core.Promised(node) {
			return name, nil
		}
	}
	return "", nil
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=ebbtide.dev,resources=drainrecords,verbs=create

// remake creates the record of a node that has a promise but no record.
func (n *nodes) remake(ctx context.Context, name string) error {
	var node *corev1.Node
	for _, reader := range []client.Reader{n.client, n.live} {
		var err error
		if node, err = nodeOf(ctx, reader, name); err != nil || !core.Promised(node) {
			return err
		}
	}
	var pods corev1.PodList
	if err := n.client.List(ctx, &pods, client.MatchingFields{kube.PodNodeField: name}, client.DisableReadYourWritesConsistency); err != nil {
		return wrap("list the pods of node "+name, err)
	}
	budgets, err := n.budgetsOver(ctx, pods.Items)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	record := &v1alpha1.DrainRecord{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: core.Remake(node, kube.Pointers(pods.Items), budgets)}
	if err := n.client.Create(ctx, record); err != nil {
		return wrap("create the drain record of node "+name+" again", client.IgnoreAlreadyExists(err))
	}
	log.FromContext(ctx).Info("Created a missing DrainRecord", "node", name, "reason", "the node bears a reboot promise")
	return nil
}

// budgetsOver returns the budgets in the namespaces of staying pods.
func (n *nodes) budgetsOver(ctx context.Context, pods []corev1.Pod) ([]*policyv1.PodDisruptionBudget, error) {
	namespaces := sets.New[string]()
	for i := range pods {
		if stays, _ := podclass.OnUpgrade(&pods[i]); stays {
			namespaces.Insert(pods[i].Namespace)
		}
	}
	var budgets []*policyv1.PodDisruptionBudget
	for _, namespace := range sets.List(namespaces) {
		var list policyv1.PodDisruptionBudgetList
		if err := n.client.List(ctx, &list, client.InNamespace(namespace), client.DisableReadYourWritesConsistency); err != nil {
			return nil, wrap("list the budgets of namespace "+namespace, err)
		}
		budgets = append(budgets, kube.Pointers(list.Items)...)
	}
	return budgets, nil
}
