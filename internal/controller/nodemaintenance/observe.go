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
	"ebbtide.dev/ebbtide/internal/core/group"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/kube"
)

// fewPods is the number of pods up to which each Evacuation is looked up on its own.
const fewPods = 500

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances;evacuations;machinedrainrules;drainrecords,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes;pods;namespaces,verbs=list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch

// observe reads the maintenances and nodes of a group, including our own writes, and observePods what
// else its pass decides on. A read that fails is an error: unknown is not absent. If rules or
// namespaces cannot be read, only the pods that depend on rules wait.
func (r *reconciler) observe(ctx context.Context, g *group.Group) (maintenance.Snapshot, error) {
	snapshot := maintenance.Snapshot{
		Now:          r.clock.Now(),
		ClockSkewed:  r.skewed(),
		Budgets:      map[string][]*policyv1.PodDisruptionBudget{},
		DrainRecords: map[string]*v1alpha1.DrainRecord{},
		LongestLock:  r.longestLock,
		Protect:      r.protect,
		Runners:      maintenance.Runners{DaemonSets: true}, // It runs in this manager.
		Refused:      map[maintenance.Write]maintenance.Refusal{},
	}
	if r.requests != nil {
		snapshot.Requester = r.requests.State()
	}
	snapshot.NodeBudgets = r.observeNodeBudgets(ctx)
	var err error
	if snapshot.Maintenances, err = named[v1alpha1.NodeMaintenance](ctx, r, g.Maintenances); err != nil {
		return snapshot, err
	}
	if snapshot.Nodes, err = named[corev1.Node](ctx, r, g.Nodes); err != nil {
		return snapshot, err
	}
	records, err := named[v1alpha1.DrainRecord](ctx, r, g.Nodes)
	if err != nil {
		return snapshot, err
	}
	for _, record := range records {
		snapshot.DrainRecords[record.Name] = record
	}
	return snapshot, r.observeAgents(ctx, g, &snapshot)
}

// observePods reads the relevant pods of a group, with their budgets, rules and requests.
func (r *reconciler) observePods(ctx context.Context, g *group.Group, snapshot *maintenance.Snapshot) error {
	reading, err := r.reading(ctx, g, snapshot)
	if err != nil {
		return err
	}
	// This comes before the pods are read, so that no event between the two is dropped.
	r.watched.set(g.Nodes, reading)
	snapshot.Pods = make(map[string][]maintenance.Pod, len(reading))
	for node := range reading {
		var pods corev1.PodList
		if err := r.list(ctx, &pods, client.MatchingFields{kube.PodNodeField: node}); err != nil {
			return fmt.Errorf("list the pods of node %s: %w", node, err)
		}
		onNode := make([]maintenance.Pod, len(pods.Items))
		for i := range pods.Items {
			onNode[i].Object = &pods.Items[i]
		}
		snapshot.Pods[node] = onNode
		r.refusals.addOf(node, snapshot.Pods[node], snapshot.Refused)
	}
	namespaces := r.watched.namespaces(snapshot.Pods, anyInPlace(snapshot.Maintenances))
	for namespace := range namespaces {
		var budgets policyv1.PodDisruptionBudgetList
		if err := r.list(ctx, &budgets, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("list the budgets of namespace %s: %w", namespace, err)
		}
		snapshot.Budgets[namespace] = kube.Pointers(budgets.Items)
	}
	snapshot.Rules, snapshot.Facts = r.rules(ctx, namespaces)
	if err := r.evictionRequests(ctx, snapshot); err != nil {
		return err
	}
	return r.evacuations(ctx, snapshot.Pods)
}

// reading returns the nodes of a group whose pods are relevant: those of a maintenance that reads
// pods, those with an Evacuation or EvictionRequest of ours, those with a DrainRecord, and those whose
// agent keeps pods away. Some may be gone.
func (r *reconciler) reading(ctx context.Context, g *group.Group, snapshot *maintenance.Snapshot) (sets.Set[string], error) {
	reading := sets.KeySet(snapshot.DrainRecords)
	for node, agent := range snapshot.Runners.Agents {
		if agent.Holds() {
			reading.Insert(node)
		}
	}
	for _, m := range snapshot.Maintenances {
		if maintenance.ReadsPods(m) {
			reading.Insert(r.schedule.nodesOf(m.Name)...)
		}
	}
	for _, node := range g.Nodes {
		if reading.Has(node) {
			continue
		}
		asked, err := r.asked(ctx, snapshot, node)
		if err != nil {
			return nil, err
		}
		if asked {
			reading.Insert(node)
		}
	}
	return reading, nil
}

// asked returns true if a maintenance has requested a pod of a node to leave.
func (r *reconciler) asked(ctx context.Context, snapshot *maintenance.Snapshot, node string) (bool, error) {
	var asked v1alpha1.EvacuationList
	if err := r.list(ctx, &asked, client.MatchingFields{kube.EvacuationNodeField: node}, client.Limit(1)); err != nil {
		return false, fmt.Errorf("list our evacuations on node %s: %w", node, err)
	}
	if len(asked.Items) > 0 {
		return true, nil
	}
	return r.requested(ctx, snapshot, node)
}

// list reads from the cache. The objects are the cache's own and are never changed. It does not wait
// for our own writes, because one that hangs would block all groups.
func (r *reconciler) list(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return r.client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)...)
}

// named reads objects by name, including our own writes unless one for the node of that name is still
// under way. Those that do not exist are left out.
func named[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r *reconciler, names []string) ([]P, error) {
	objects := make([]P, 0, len(names))
	for _, name := range names {
		object, options := P(new(T)), []client.GetOption{client.UnsafeDisableDeepCopy}
		if r.flights.has(name) {
			options = append(options, client.DisableReadYourWritesConsistency)
		}
		err := r.client.Get(ctx, types.NamespacedName{Name: name}, object, options...)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get %T %s: %w", *object, name, err)
		}
		if err == nil {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// rules reads the MachineDrainRules and, if there are any, the labels of namespaces.
func (r *reconciler) rules(ctx context.Context, of sets.Set[string]) (drainrule.Set, drainrule.Facts) {
	var rules v1alpha1.MachineDrainRuleList
	if err := r.list(ctx, &rules, client.InNamespace(r.namespace)); err != nil {
		return drainrule.Unread(r.namespace, err.Error()), drainrule.Facts{}
	}
	compiled := drainrule.Compile(kube.Pointers(rules.Items))
	if len(rules.Items) == 0 {
		return compiled, drainrule.Facts{}
	}
	facts := drainrule.Facts{Namespaces: make(map[string]map[string]string, len(of)), NamespaceErrors: map[string]string{}}
	for name := range of {
		var namespace corev1.Namespace
		err := r.client.Get(ctx, types.NamespacedName{Name: name}, &namespace, client.UnsafeDisableDeepCopy)
		switch {
		case err == nil:
			facts.Namespaces[name] = namespace.Labels
		case client.IgnoreNotFound(err) != nil:
			facts.NamespaceErrors[name] = err.Error()
		}
	}
	return compiled, facts
}

func (r *reconciler) evacuations(ctx context.Context, pods map[string][]maintenance.Pod) error {
	count := 0
	for _, onNode := range pods {
		count += len(onNode)
	}
	found := map[types.UID]*v1alpha1.Evacuation{}
	lookUp := func(uid types.UID) error {
		return r.addEvacuations(ctx, found, client.MatchingFields{kube.EvacuationPodField: string(uid)})
	}
	if count > fewPods {
		if err := r.addEvacuations(ctx, found); err != nil {
			return err
		}
		lookUp = func(types.UID) error { return nil }
	}
	for _, onNode := range pods {
		for i := range onNode {
			uid := onNode[i].Object.UID
			if err := lookUp(uid); err != nil {
				return err
			}
			onNode[i].Evacuation = found[uid]
		}
	}
	return nil
}

// addEvacuations adds Evacuations by the UID of their pod. Of several for one pod, which only a
// missing admission webhook lets in, it is ours.
func (r *reconciler) addEvacuations(ctx context.Context, found map[types.UID]*v1alpha1.Evacuation, options ...client.ListOption) error {
	var all v1alpha1.EvacuationList
	if err := r.list(ctx, &all, options...); err != nil {
		return fmt.Errorf("list evacuations: %w", err)
	}
	for i := range all.Items {
		one := &all.Items[i]
		if uid := one.Spec.PodRef.UID; found[uid] == nil || isOurs(one) {
			found[uid] = one
		}
	}
	return nil
}

func isOurs(evacuation *v1alpha1.Evacuation) bool {
	return controllerutil.ContainsFinalizer(evacuation, v1alpha1.NodeMaintenanceInstigator)
}
