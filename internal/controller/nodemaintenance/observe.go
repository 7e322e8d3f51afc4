package nodemaintenance

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances;evacuations;machinedrainrules;drainrecords,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes;pods;namespaces,verbs=list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch

// observe reads everything that a pass decides on. A read that fails is an
// error: what is unknown is never taken for absent. Only the pods whose drain is
// a matter of rules wait if these or the namespaces could not be read.
func (r *reconciler) observe(ctx context.Context) (maintenance.Snapshot, error) {
	var (
		maintenances v1alpha1.NodeMaintenanceList
		nodes        corev1.NodeList
		evacuations  v1alpha1.EvacuationList
		budgets      policyv1.PodDisruptionBudgetList
		drains       v1alpha1.DrainRecordList
	)
	for what, list := range map[string]client.ObjectList{
		"maintenances": &maintenances, "nodes": &nodes, "evacuations": &evacuations, "budgets": &budgets,
		"drain records": &drains,
	} {
		if err := r.list(ctx, list); err != nil {
			return maintenance.Snapshot{}, fmt.Errorf("list %s: %w", what, err)
		}
	}
	snapshot := maintenance.Snapshot{
		Now:          r.clock.Now(),
		Maintenances: kube.Pointers(maintenances.Items),
		Budgets:      byNamespace(kube.Pointers(budgets.Items)),
		Records:      drainRecords(kube.Pointers(drains.Items)),
		LongestLock:  r.longestLock,
		// The DaemonSet evacuator runs in the same manager.
		Runners: maintenance.Runners{DaemonSets: true},
	}
	snapshot.Rules, snapshot.Facts = r.rules(ctx)
	read := withRecords(instigated(evacuations.Items), snapshot.Records)
	for _, node := range maintenance.Select(snapshot.Maintenances, kube.Pointers(nodes.Items)) {
		read.Insert(node.Name)
	}
	// Before the pods are read: an event that comes between the two finds the
	// node in the set, one that came earlier is in the cache already.
	r.podNodes.Store(&read)
	r.inPlace.Store(anyInPlace(snapshot.Maintenances))

	snapshot.Nodes = named(kube.Pointers(nodes.Items), read)
	pods, err := r.podsOf(ctx, read)
	if err != nil {
		return maintenance.Snapshot{}, err
	}
	snapshot.Pods, snapshot.Evacuations = pods, evacuationsOf(pods, kube.Pointers(evacuations.Items))
	return snapshot, nil
}

// list reads from the cache. The objects are the cache's own and are never changed.
func (r *reconciler) list(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return r.client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...)
}

// rules reads the MachineDrainRules and, if there are any, what they ask about.
func (r *reconciler) rules(ctx context.Context) (drainrule.Set, drainrule.Facts) {
	var rules v1alpha1.MachineDrainRuleList
	if err := r.list(ctx, &rules, client.InNamespace(r.namespace)); err != nil {
		return drainrule.Unread(r.namespace, err.Error()), drainrule.Facts{}
	}
	compiled := drainrule.Compile(kube.Pointers(rules.Items))
	if len(rules.Items) == 0 {
		return compiled, drainrule.Facts{}
	}
	var namespaces corev1.NamespaceList
	if err := r.list(ctx, &namespaces); err != nil {
		return compiled, drainrule.Facts{NamespaceError: err.Error()}
	}
	labels := make(map[string]map[string]string, len(namespaces.Items))
	for i := range namespaces.Items {
		labels[namespaces.Items[i].Name] = namespaces.Items[i].Labels
	}
	return compiled, drainrule.Facts{Namespaces: labels}
}

func (r *reconciler) podsOf(ctx context.Context, nodes sets.Set[string]) (map[string][]*corev1.Pod, error) {
	pods := make(map[string][]*corev1.Pod, len(nodes))
	for node := range nodes {
		var list corev1.PodList
		if err := r.list(ctx, &list, client.MatchingFields{kube.PodNodeField: node}); err != nil {
			return nil, fmt.Errorf("list the pods of node %s: %w", node, err)
		}
		pods[node] = kube.Pointers(list.Items)
	}
	return pods, nil
}

// instigated are the nodes of the Evacuations that we asked for. Pods of a node
// that no maintenance selects any more are found by it.
func instigated(evacuations []v1alpha1.Evacuation) sets.Set[string] {
	nodes := sets.New[string]()
	for i := range evacuations {
		node := evacuations[i].Annotations[v1alpha1.NodeAnnotation]
		if node != "" && isOurs(&evacuations[i]) {
			nodes.Insert(node)
		}
	}
	return nodes
}

func isOurs(evacuation *v1alpha1.Evacuation) bool {
	return controllerutil.ContainsFinalizer(evacuation, v1alpha1.NodeMaintenanceInstigator)
}

// evacuationsOf finds the Evacuations of pods. Of several for one pod, which
// only a missing admission webhook lets in, it is the one that we asked for.
func evacuationsOf(pods map[string][]*corev1.Pod, all []*v1alpha1.Evacuation) map[types.UID]*v1alpha1.Evacuation {
	byPod := make(map[types.UID]*v1alpha1.Evacuation, len(all))
	for _, one := range all {
		if known := byPod[one.Spec.PodRef.UID]; known == nil || isOurs(one) {
			byPod[one.Spec.PodRef.UID] = one
		}
	}
	found := make(map[types.UID]*v1alpha1.Evacuation, len(byPod))
	for _, onNode := range pods {
		for _, pod := range onNode {
			if one := byPod[pod.UID]; one != nil {
				found[pod.UID] = one
			}
		}
	}
	return found
}

func named(nodes []*corev1.Node, names sets.Set[string]) []*corev1.Node {
	var found []*corev1.Node
	for _, node := range nodes {
		if names.Has(node.Name) {
			found = append(found, node)
		}
	}
	return found
}

func byNamespace(budgets []*policyv1.PodDisruptionBudget) map[string][]*policyv1.PodDisruptionBudget {
	sorted := map[string][]*policyv1.PodDisruptionBudget{}
	for _, budget := range budgets {
		sorted[budget.Namespace] = append(sorted[budget.Namespace], budget)
	}
	return sorted
}
