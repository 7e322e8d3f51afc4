package demo

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
)

//go:embed rollout.yaml
var rolloutShop []byte

const (
	rolloutNodes, rolloutPods = 12, 24 + 1
	rolloutName, newKernel    = "kernel-update", "6.12.9"
	// pauseAfter is the number of nodes that are done when the rollout is paused.
	pauseAfter = 3
	// pauseFor is the time for which it is paused.
	pauseFor = 2 * time.Second
)

// RunRollout shows a rollout over twelve nodes, of which one fails.
func (d Demo) RunRollout(ctx context.Context) error {
	return d.on(ctx, sandbox.Spec{Nodes: rolloutNodes}, func(ctx context.Context, c *sandbox.Cluster) error {
		ctx, cancel := context.WithTimeoutCause(ctx, drainWithin, errTooLong)
		defer cancel()
		if err := nameZones(ctx, c.Client); err != nil {
			return err
		}
		if err := create(ctx, c.Client, rolloutShop); err != nil {
			return err
		}
		stuck, err := awaitOpen(ctx, c.Client, rolloutPods, "legacy")
		if err != nil {
			return err
		}
		return d.rollOut(ctx, c.Client, stuck)
	})
}

// nameZones puts the nodes into three zones.
func nameZones(ctx context.Context, c client.Client) error {
	list := &corev1.NodeList{}
	if err := c.List(ctx, list); err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	for i := range list.Items {
		node := &list.Items[i]
		before := node.DeepCopy()
		node.Labels[corev1.LabelTopologyZone] = "zone-" + string(rune('a'+i*3/len(list.Items)))
		if err := c.Patch(ctx, node, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("label node %s: %w", node.Name, err)
		}
	}
	return nil
}

// rollOut starts the rollout, does the work on the nodes, and prints the story.
func (d Demo) rollOut(ctx context.Context, c client.WithWatch, stuck string) error {
	changes, err := watchAll(ctx, c, []source{
		{&v1alpha1.NodeRolloutList{}, named(rolloutName)},
		{&corev1.NodeList{}, all()},
		{&policyv1.PodDisruptionBudgetList{}, in(namespace)},
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, `
Kubernetes %s, %d nodes in three zones. Namespace shop runs
  Deployment  web     24 pods  budget: 4 may be missing
  Deployment  legacy   1 pod   budget: none may be missing, on %s

NodeRollout %s: kernel %s, one canary node, then two nodes at a time in one zone at a time,
at most 10 seconds for each drain, stop at the first node that fails.

`, sandbox.RequestedVersion(), rolloutNodes, stuck, rolloutName, newKernel)
	s := newRolloutStory(printer(d.Out), func(node string) error { return update(ctx, c, node) })
	t := &teller{story: s, changes: changes, start: time.Now()}
	if err := c.Create(ctx, newRollout()); err != nil {
		return fmt.Errorf("create NodeRollout: %w", err)
	}
	if err := d.pauseAndResume(ctx, c, t, s); err != nil {
		return err
	}
	if err := t.tellUntil(ctx, s.hasFailed); err != nil {
		return err
	}
	s.say(time.Since(t.start), "repair", "the budget of legacy is deleted, and "+s.failed+" is tried again")
	if err := retry(ctx, c, s.failed); err != nil {
		return err
	}
	if err := t.tellUntil(ctx, s.isComplete); err != nil {
		return err
	}
	s.printSummary(d.Out, time.Since(t.start))
	return nil
}

func (d Demo) pauseAndResume(ctx context.Context, c client.Client, t *teller, s *rolloutStory) error {
	if err := t.tellUntil(ctx, func() bool { return len(s.done) >= pauseAfter || s.hasFailed() }); err != nil {
		return err
	}
	s.say(time.Since(t.start), "pause", "no more nodes start")
	if err := change(ctx, c, func(spec *v1alpha1.NodeRolloutSpec) { spec.State = v1alpha1.RolloutPaused }); err != nil {
		return err
	}
	if err := t.tellFor(ctx, pauseFor); err != nil {
		return err
	}
	s.say(time.Since(t.start), "resume", "the rollout continues")
	return change(ctx, c, func(spec *v1alpha1.NodeRolloutSpec) { spec.State = v1alpha1.RolloutRunning })
}

func newRollout() *v1alpha1.NodeRollout {
	return &v1alpha1.NodeRollout{
		ObjectMeta: metav1.ObjectMeta{Name: rolloutName},
		Spec: v1alpha1.NodeRolloutSpec{
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpExists}},
			}}},
			Target:         &v1alpha1.CompleteWhen{KernelVersion: newKernel, ReadySeconds: new(int32(0))},
			MaxUnavailable: new(intstr.FromInt32(2)), TopologyKey: corev1.LabelTopologyZone,
			Canary:      &v1alpha1.RolloutCanary{NodeCount: 1},
			Failure:     v1alpha1.RolloutFailure{DrainTimeoutSeconds: new(int32(10)), RetryCount: new(int32(0))},
			Maintenance: v1alpha1.RolloutMaintenance{Reason: "new kernel"},
		},
	}
}

// update does what the administrator's tool does with a drained node.
func update(ctx context.Context, c client.Client, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"nodeInfo":{"kernelVersion":"`+newKernel+`"}}}`))
	if err := c.Status().Patch(ctx, node, patch); err != nil {
		return fmt.Errorf("update node %s: %w", name, err)
	}
	return nil
}

// change changes the spec of the rollout.
func change(ctx context.Context, c client.Client, edit func(*v1alpha1.NodeRolloutSpec)) error {
	r := &v1alpha1.NodeRollout{}
	if err := c.Get(ctx, client.ObjectKey{Name: rolloutName}, r); err != nil {
		return fmt.Errorf("get NodeRollout: %w", err)
	}
	before := r.DeepCopy()
	edit(&r.Spec)
	if err := c.Patch(ctx, r, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("change NodeRollout: %w", err)
	}
	return nil
}

// retry removes the cause of the failure and has the node tried again.
func retry(ctx context.Context, c client.Client, node string) error {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "legacy"}}
	if err := c.Delete(ctx, budget); err != nil {
		return fmt.Errorf("delete the budget: %w", err)
	}
	return change(ctx, c, func(spec *v1alpha1.NodeRolloutSpec) {
		spec.Nodes = append(spec.Nodes, v1alpha1.RolloutNodeSpec{Name: node, ForgivenAttemptCount: 1})
	})
}
