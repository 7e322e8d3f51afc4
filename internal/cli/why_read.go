package cli

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/nodebudget"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/view"
)

// maxHolders bounds the maintenances that are read, as other clients can annotate a node, and
// maxClaims the claims of a pod.
const maxHolders, maxClaims = 8, 8

// asker reads what explains an object.
type asker struct {
	reached client.Client
	clock   *clock
	// blockers of the explained node.
	blockers []v1alpha1.Blocker
	// notes name what could not be read.
	notes []string
}

// noPod is the error of a pod that does not exist.
type noPod struct{ error }

func (a *asker) pod(ctx context.Context, key client.ObjectKey) ([]string, error) {
	facts := view.PodFacts{Namespace: key.Namespace, Name: key.Name}
	pod := &corev1.Pod{}
	switch err := a.reached.Get(ctx, key, pod); {
	case apierrors.IsNotFound(err):
		if err := a.findAway(ctx, key, &facts); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, fmt.Errorf("get pod %s: %w", key, err)
	default:
		facts.Pod, facts.Node = pod, pod.Spec.NodeName
		found := &v1alpha1.Evacuation{}
		if a.read(ctx, &facts.Unknown, found, client.ObjectKey{Namespace: key.Namespace, Name: evacuation.Name(pod)}) {
			facts.Evacuation = found
		}
		a.static(ctx, &facts, key)
	}
	node := &corev1.Node{}
	if facts.Node == "" || !a.read(ctx, &facts.Unknown, node, client.ObjectKey{Name: facts.Node}) {
		node = nil
	}
	if node != nil {
		facts.Maintenances = a.maintenances(ctx, &facts.Unknown, cordon.Holders(node))
	}
	if facts.Pod != nil && facts.Node == "" {
		a.stranded(ctx, &facts)
	}
	if facts.Pod != nil {
		unread := false
		budgets := listed[*policyv1.PodDisruptionBudget](ctx, a, &unread, &policyv1.PodDisruptionBudgetList{}, client.InNamespace(key.Namespace))
		facts.Around = &view.Surroundings{Now: timeOf(a.clock), Node: node, Budgets: budget.Compile(budgets)}
	}
	return facts.Why(), nil
}

// findAway looks for a static pod without a mirror pod in all agents.
func (a *asker) findAway(ctx context.Context, key client.ObjectKey, facts *view.PodFacts) error {
	_, err := pages(ctx, a.reached, &v1alpha1.NodeAgentList{}, func(agent *v1alpha1.NodeAgent) *v1alpha1.NodeAgent {
		if found := staticPodOf(agent, key); found != nil {
			facts.Node, facts.Static = agent.Name, found
		}
		return nil
	})
	switch {
	case facts.Static != nil:
		return nil
	case err != nil && !meta.IsNoMatchError(err):
		return noPod{fmt.Errorf("pod %q not found, and cannot search for a static pod that is down: list nodeagents: %w", key, err)}
	}
	return noPod{fmt.Errorf("pod %q not found, neither running nor as a static pod that is down; use -n to choose another namespace", key)}
}

// Unwrap returns the error within.
func (n noPod) Unwrap() error { return n.error }

func staticPodOf(agent *v1alpha1.NodeAgent, key client.ObjectKey) *v1alpha1.StaticPod {
	for i := range agent.Status.StaticPods {
		if one := &agent.Status.StaticPods[i]; one.Name == key.Name && one.Namespace == key.Namespace {
			return one.DeepCopy()
		}
	}
	return nil
}

// static reads the state of a static pod from the agent of its node.
func (a *asker) static(ctx context.Context, facts *view.PodFacts, key client.ObjectKey) {
	agent := &v1alpha1.NodeAgent{}
	if podclass.Mirror(facts.Pod) && a.read(ctx, &facts.Unknown, agent, client.ObjectKey{Name: facts.Node}) {
		facts.Static = staticPodOf(agent, key)
	}
}

// stranded finds the first volume of a pod that is only available on held nodes.
func (a *asker) stranded(ctx context.Context, facts *view.PodFacts) {
	// A pod without a node has no Evacuation that could be unknown.
	unread := false
	var cluster []*metav1.PartialObjectMetadata
	for _, name := range claimsOf(facts.Pod) {
		found := a.volumeOf(ctx, &unread, client.ObjectKey{Namespace: facts.Namespace, Name: name})
		if found == nil {
			continue
		}
		if cluster == nil {
			var err error
			if cluster, err = nodes(ctx, a.reached); err != nil {
				a.note(&unread, "list nodes", err)
				return
			}
		}
		if facts.Stranded = view.StrandedOf(name, found, cluster); facts.Stranded != nil {
			facts.Maintenances = a.maintenances(ctx, &unread, facts.Stranded.Holders)
			return
		}
	}
}

// claimsOf returns the names of the first claims of a pod.
func claimsOf(pod *corev1.Pod) (names []string) {
	for i := range pod.Spec.Volumes {
		if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil && len(names) < maxClaims {
			names = append(names, claim.ClaimName)
		}
	}
	return names
}

// volumeOf returns the volume that is bound to a claim; nil if there is none.
func (a *asker) volumeOf(ctx context.Context, unread *bool, key client.ObjectKey) *corev1.PersistentVolume {
	claim, found := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	if !a.read(ctx, unread, claim, key) || claim.Spec.VolumeName == "" || !a.read(ctx, unread, found, client.ObjectKey{Name: claim.Spec.VolumeName}) {
		return nil
	}
	return found
}

// maintenances reads those that hold a node.
func (a *asker) maintenances(ctx context.Context, unknown *bool, holders []string) []*v1alpha1.NodeMaintenance {
	var found []*v1alpha1.NodeMaintenance
	for _, name := range holders[:min(len(holders), maxHolders)] {
		m := &v1alpha1.NodeMaintenance{}
		if a.read(ctx, unknown, m, client.ObjectKey{Name: name}) {
			found = append(found, m)
		}
	}
	return found
}

func (a *asker) node(ctx context.Context, name string) ([]string, error) {
	facts := &view.NodeFacts{Node: &corev1.Node{}}
	if err := a.reached.Get(ctx, client.ObjectKey{Name: name}, facts.Node); apierrors.IsNotFound(err) {
		return nil, a.noNode(ctx, name, err)
	} else if err != nil {
		return nil, fmt.Errorf("get node %s: %w", name, err)
	}
	facts.Maintenances = a.maintenances(ctx, &facts.Unknown, cordon.Holders(facts.Node))
	a.blockers = view.BlockersOn(facts.Maintenances, name)
	if len(facts.Maintenances) == 0 {
		var err error
		if facts.Pods, err = podsOf(ctx, a.reached, name); err != nil {
			a.note(&facts.Unknown, "list pods of node "+name, err)
		}
		facts.Budgets = listed[*policyv1.PodDisruptionBudget](ctx, a, &facts.Unknown, &policyv1.PodDisruptionBudgetList{})
	}
	facts.Rollouts = listed[*v1alpha1.NodeRollout](ctx, a, new(bool), &v1alpha1.NodeRolloutList{})
	facts.NodeBudgets = listed[*v1alpha1.NodeBudget](ctx, a, new(bool), &v1alpha1.NodeBudgetList{})
	if len(facts.Maintenances) == 0 && !nodebudget.Compile(facts.NodeBudgets).Empty() {
		facts.Waiting = listed[*v1alpha1.NodeMaintenance](ctx, a, new(bool), &v1alpha1.NodeMaintenanceList{})
	}
	facts.Now = timeOf(a.clock)
	return facts.Why(), nil
}

// noNode returns the error of a missing node, with similar names.
func (a *asker) noNode(ctx context.Context, name string, missing error) error {
	known, err := nodes(ctx, a.reached)
	if err != nil {
		return missing
	}
	return absentNode{notFound("node", []string{name}, namesOf(known)), missing}
}

// absentNode is an error with our text that is still the API server's.
type absentNode struct {
	error
	missing error
}

// Unwrap returns the error of the API server.
func (n absentNode) Unwrap() error { return n.missing }

func (a *asker) budget(ctx context.Context, key client.ObjectKey) ([]string, error) {
	facts := &view.BudgetFacts{Budget: &policyv1.PodDisruptionBudget{}}
	if err := a.reached.Get(ctx, key, facts.Budget); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("PodDisruptionBudget %q not found; use -n to choose another namespace", key)
	} else if err != nil {
		return nil, fmt.Errorf("get poddisruptionbudget %s: %w", key, err)
	}
	in := client.InNamespace(key.Namespace)
	facts.Pods = listed[*corev1.Pod](ctx, a, &facts.Unknown, &corev1.PodList{}, in)
	facts.Budgets = listed[*policyv1.PodDisruptionBudget](ctx, a, &facts.Unknown, &policyv1.PodDisruptionBudgetList{}, in)
	facts.Evacuations = listed[*v1alpha1.Evacuation](ctx, a, &facts.Unknown, &v1alpha1.EvacuationList{}, in)
	facts.Now = timeOf(a.clock)
	return facts.Why(), nil
}

func (a *asker) machine(ctx context.Context, key client.ObjectKey) ([]string, error) {
	m := &v1alpha1.Machine{}
	if err := a.reached.Get(ctx, key, m); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("Machine %q not found; use -n to choose another namespace", key)
	} else if err != nil {
		return nil, fmt.Errorf("get machine %s: %w", key, err)
	}
	return view.MachineWhy(m), nil
}

func (a *asker) maintenance(ctx context.Context, name string) ([]string, error) {
	m := &v1alpha1.NodeMaintenance{}
	if err := a.reached.Get(ctx, client.ObjectKey{Name: name}, m); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("NodeMaintenance %q not found. List them with\n  %s", name, command.Of("%s status", commandName()))
	} else if err != nil {
		return nil, fmt.Errorf("get nodemaintenance %s: %w", name, err)
	}
	r := &reading{reached: a.reached}
	r.one(ctx, m)
	r.Now = timeOf(a.clock)
	a.notes = append(a.notes, r.Unread...)
	status := view.One(&r.Snapshot)
	return view.MaintenanceWhy(&status), nil
}

func (a *asker) rollout(ctx context.Context, name string) ([]string, error) {
	r := &v1alpha1.NodeRollout{}
	if err := a.reached.Get(ctx, client.ObjectKey{Name: name}, r); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("NodeRollout %q not found. List them with\n  %s", name, command.Of("%s rollout list", commandName()))
	} else if err != nil {
		return nil, fmt.Errorf("get noderollout %s: %w", name, err)
	}
	shown := view.RolloutOf(r)
	shown.Returned = isReturned(ctx, a.reached, &shown)
	return view.RolloutWhy(&shown), nil
}

// read reports whether an object was read. Errors are noted, unless the object or its kind does not
// exist.
func (a *asker) read(ctx context.Context, unknown *bool, object client.Object, key client.ObjectKey) bool {
	err := a.reached.Get(ctx, key, object)
	if err != nil && !apierrors.IsNotFound(err) {
		kind := strings.ToLower(reflect.TypeOf(object).Elem().Name())
		a.note(unknown, "get "+kind+" "+strings.TrimPrefix(key.String(), "/"), err)
	}
	return err == nil
}

func (a *asker) note(unknown *bool, what string, err error) {
	if meta.IsNoMatchError(err) {
		return
	}
	*unknown = true
	line := incomplete(what, err.Error())
	if !slices.Contains(a.notes, line) {
		a.notes = append(a.notes, line)
	}
}

// listed returns all objects of a list that can be read.
func listed[T listable](ctx context.Context, a *asker, unknown *bool, list client.ObjectList, options ...client.ListOption) []T {
	all, err := pages(ctx, a.reached, list, whole[T], options...)
	if err != nil {
		kind := strings.TrimSuffix(strings.ToLower(reflect.TypeOf(list).Elem().Name()), "list") + "s"
		a.note(unknown, "list "+kind, err)
	}
	return all
}
