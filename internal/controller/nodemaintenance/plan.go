package nodemaintenance

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"runtime/debug"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/preflight"
	"ebbtide.dev/ebbtide/internal/kube"
)

// maxPlans bounds the planned maintenances of one group. Each costs as much as a drain of its nodes.
const maxPlans = 20

// plan adds to the snapshot what its maintenances in Idle would do, by the last plan if that is still
// good. A plan that fails is retried and delays nothing else.
func (r *reconciler) plan(ctx context.Context, w *writer, snapshot *maintenance.Snapshot) {
	snapshot.Planned = map[string]map[string]v1alpha1.NodeMaintenanceNodeStatus{}
	among := versionOf(snapshot.Maintenances)
	for _, m := range snapshot.Maintenances {
		if !maintenance.Plans(m) {
			r.plans.forget(m.Name)
			continue
		}
		if len(snapshot.Planned) == maxPlans {
			continue
		}
		nodes := r.schedule.nodesOf(m.Name)
		known, due, again := r.plans.good(r.clock.Now(), m, nodes, among)
		if due {
			var err error
			if known, err = r.planOne(ctx, m, nodes, *snapshot); err != nil {
				log.FromContext(ctx).Error(err, "Planning failed, retrying", "maintenance", m.Name)
				again = planInterval
				r.plans.fail(m.Name)
			}
			r.plans.among(m.Name, among)
		}
		w.wait(again)
		snapshot.Planned[m.Name] = known
	}
}

// versionOf returns a hash of the specs of the maintenances of a group, which affect each other.
func versionOf(maintenances []*v1alpha1.NodeMaintenance) uint64 {
	hash := fnv.New64a()
	for _, m := range maintenances {
		fmt.Fprintf(hash, "%s %d\n", m.Name, m.Generation)
	}
	return hash.Sum64()
}

func (r *reconciler) planOne(ctx context.Context, m *v1alpha1.NodeMaintenance, nodes []string, world maintenance.Snapshot) (map[string]v1alpha1.NodeMaintenanceNodeStatus, error) {
	// This comes before anything is read, so that a change meanwhile makes the plan old.
	r.plans.begin(r.clock.Now(), m, nodes)
	pods, err := r.plannedPods(ctx, nodes, &world)
	if err != nil {
		return nil, err
	}
	namespaces, count := sets.New[string](), 0
	for _, onNode := range pods {
		count += len(onNode)
		for i := range onNode {
			namespaces.Insert(onNode[i].Object.Namespace)
		}
	}
	if err := r.plannedBudgets(ctx, namespaces, &world); err != nil {
		return nil, err
	}
	world.Rules, world.Facts = r.rules(ctx, namespaces)
	snapshot := preflight.Snapshot{World: world, Maintenance: m, Surge: r.surge}
	if snapshot.Owners, err = r.owners(ctx, pods); err != nil {
		return nil, err
	}
	planned, err := r.planSafely(snapshot)
	if err != nil {
		return nil, err
	}
	r.plans.end(m.Name, planned, namespaces, count)
	return planned, nil
}

// plannedPods adds the pods of nodes to the world, and returns all.
func (r *reconciler) plannedPods(ctx context.Context, nodes []string, world *maintenance.Snapshot) (map[string][]maintenance.Pod, error) {
	all := maps.Clone(world.Pods)
	if all == nil {
		all = map[string][]maintenance.Pod{}
	}
	added := map[string][]maintenance.Pod{}
	for _, node := range nodes {
		if _, known := all[node]; known {
			continue
		}
		var pods corev1.PodList
		if err := r.list(ctx, &pods, client.MatchingFields{kube.PodNodeField: node}); err != nil {
			return nil, fmt.Errorf("list the pods of node %s: %w", node, err)
		}
		onNode := make([]maintenance.Pod, len(pods.Items))
		for i := range pods.Items {
			onNode[i].Object = &pods.Items[i]
		}
		added[node] = onNode
	}
	if err := r.evacuations(ctx, added); err != nil {
		return nil, err
	}
	maps.Copy(all, added)
	world.Pods = all
	return all, nil
}

func (r *reconciler) plannedBudgets(ctx context.Context, namespaces sets.Set[string], world *maintenance.Snapshot) error {
	all := maps.Clone(world.Budgets)
	if all == nil {
		all = map[string][]*policyv1.PodDisruptionBudget{}
	}
	for namespace := range namespaces {
		if _, known := all[namespace]; known {
			continue
		}
		var budgets policyv1.PodDisruptionBudgetList
		if err := r.list(ctx, &budgets, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("list the budgets of namespace %s: %w", namespace, err)
		}
		all[namespace] = kube.Pointers(budgets.Items)
	}
	world.Budgets = all
	return nil
}

// owners returns the Deployments of pods, which may surge, and the ReplicaSets in between.
func (r *reconciler) owners(ctx context.Context, pods map[string][]maintenance.Pod) (preflight.Owners, error) {
	var found preflight.Owners
	asked := sets.New[types.UID]()
	for _, onNode := range pods {
		for i := range onNode {
			owner := podclass.Owner(onNode[i].Object)
			if owner == nil || owner.Kind != "ReplicaSet" || asked.Has(owner.UID) {
				continue
			}
			asked.Insert(owner.UID)
			deployment, err := kube.DeploymentOf(ctx, r.client, onNode[i].Object)
			if err != nil {
				return found, fmt.Errorf("find the Deployment of a pod: %w", err)
			}
			if deployment == nil {
				continue
			}
			of := metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))
			found.ReplicaSets = append(found.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
				Namespace: deployment.Namespace, Name: owner.Name, UID: owner.UID, OwnerReferences: []metav1.OwnerReference{*of},
			}})
			found.Deployments = append(found.Deployments, deployment)
		}
	}
	return found, nil
}

// planSafely turns a panic of a plan into an error.
func (r *reconciler) planSafely(snapshot preflight.Snapshot) (planned map[string]v1alpha1.NodeMaintenanceNodeStatus, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			r.metrics.panics.Inc()
			err = fmt.Errorf("a defect of Ebbtide: plan: %v\n%s", cause, debug.Stack())
		}
	}()
	return r.foresee(snapshot), nil
}
