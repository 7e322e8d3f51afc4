package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/bench/report"
)

// manager is Ebbtide: its real manager, told by NodeMaintenances.
type manager struct {
	lab     *Lab
	process *sandbox.Manager
	// apart has each node drained by a NodeMaintenance of its own.
	apart bool
	// drains are the NodeMaintenances that it was told by.
	drains []*v1alpha1.NodeMaintenance
	// rules are those of the load; they lie beside the manager.
	rules []*v1alpha1.MachineDrainRule
}

// runManager starts the manager.
func (l *Lab) runManager(ctx context.Context) (*manager, error) {
	process, err := l.cluster.StartManager(ctx)
	if err != nil {
		return nil, err
	}
	return &manager{lab: l, process: process}, nil
}

// startManager starts the manager and returns when it answers to a maintenance
// of no node: then its caches are filled.
func (l *Lab) startManager(ctx context.Context, load *Load) (Contender, error) {
	m, err := l.runManager(ctx)
	if err != nil {
		return nil, err
	}
	m.apart, m.rules = load.work.Apart, load.rules(l.cluster.Namespace(), load.labels())
	if err := m.warm(ctx); err != nil {
		return nil, errors.Join(err, m.Stop(ctx))
	}
	return m, nil
}

func (m *manager) warm(ctx context.Context) error {
	if err := create(ctx, m.lab.Client, m.rules...); err != nil {
		return err
	}
	nobody := maintenance("bench-warm", []string{"no-such-node"}, v1alpha1.StageIdle)
	if err := m.lab.Client.Create(ctx, nobody); err != nil {
		return fmt.Errorf("create maintenance: %w", err)
	}
	if err := m.lab.until(ctx, "ebbtide to be warm", func(ctx context.Context) (bool, error) {
		err := m.lab.Client.Get(ctx, client.ObjectKeyFromObject(nobody), nobody)
		return nobody.Status.ObservedGeneration == nobody.Generation, err
	}); err != nil {
		return err
	}
	return m.remove(ctx, nobody)
}

func (m *manager) Agent() string { return report.Ebbtide }

func (m *manager) Drain(ctx context.Context, nodes []string) error {
	together := len(nodes)
	if m.apart {
		together = 1
	}
	for share := range slices.Chunk(nodes, together) {
		m.drains = append(m.drains, maintenance(share[0], share, v1alpha1.StageDrain))
	}
	if err := m.createDrains(ctx); err != nil {
		return err
	}
	all, drained := &v1alpha1.NodeMaintenanceList{}, map[string]bool{}
	changes, err := m.lab.watch(ctx, all)
	if err != nil {
		return err
	}
	defer changes.stop()
	see := func(now *v1alpha1.NodeMaintenance) {
		if meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionDrained) {
			drained[now.Name] = true
		}
	}
	for i := range all.Items {
		see(&all.Items[i])
	}
	for len(drained) < len(m.drains) {
		change, err := changes.next(ctx)
		if err != nil {
			return fmt.Errorf("wait for Drained: %w", err)
		}
		if now, isMaintenance := change.Object.(*v1alpha1.NodeMaintenance); isMaintenance {
			see(now)
		}
	}
	return nil
}

// createDrains creates all of them at once.
func (m *manager) createDrains(ctx context.Context) error {
	failures := make([]error, len(m.drains))
	var all sync.WaitGroup
	for n, drain := range m.drains {
		all.Go(func() { failures[n] = create(ctx, m.lab.Client, drain) })
	}
	all.Wait()
	return errors.Join(failures...)
}

// Stop deletes the maintenances, waits until the manager has tidied up after them,
// and ends the manager. On an error it shows how the manager's log ends.
func (m *manager) Stop(ctx context.Context) error {
	err := m.remove(ctx, m.drains...)
	for _, rule := range m.rules {
		err = errors.Join(err, client.IgnoreNotFound(m.lab.Client.Delete(ctx, rule)))
	}
	if err != nil {
		err = fmt.Errorf("%w; the manager's log ends:\n%s", err, m.process.Tail(20))
	}
	m.process.Stop()
	return errors.Join(err, m.lab.removeWebhooks(ctx))
}

// removeWebhooks has the API server forget a manager that is gone.
func (l *Lab) removeWebhooks(ctx context.Context) error {
	meta := metav1.ObjectMeta{Name: "ebbtide"}
	err := errors.Join(
		client.IgnoreNotFound(l.Client.Delete(ctx, &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta})),
		client.IgnoreNotFound(l.Client.Delete(ctx, &admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta})),
	)
	if err != nil {
		return fmt.Errorf("remove webhooks: %w", err)
	}
	return nil
}

func (m *manager) remove(ctx context.Context, drains ...*v1alpha1.NodeMaintenance) error {
	for _, drain := range drains {
		if err := client.IgnoreNotFound(m.lab.Client.Delete(ctx, drain)); err != nil {
			return fmt.Errorf("delete maintenance: %w", err)
		}
	}
	return m.lab.until(ctx, "maintenances and evacuations to be gone", func(ctx context.Context) (bool, error) {
		maintenances, evacuations := &v1alpha1.NodeMaintenanceList{}, &v1alpha1.EvacuationList{}
		err := errors.Join(m.lab.Client.List(ctx, maintenances), m.lab.Client.List(ctx, evacuations))
		return len(maintenances.Items)+len(evacuations.Items) == 0, err
	})
}

func maintenance(name string, nodes []string, stage v1alpha1.NodeMaintenanceStage) *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.NodeMaintenanceSpec{
			Stage:      stage,
			DrainDepth: v1alpha1.PodTypeDefault,
			Reason:     "benchmark",
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: nodes,
				}},
			}}},
		},
	}
}
