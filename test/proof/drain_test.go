package proof

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// drain is one that is under way.
type drain struct {
	*world
	crash       *crash
	maintenance *v1alpha1.NodeMaintenance
	pods        *cluster.Follower
	// changed has an element for each change of a pod, up to more than a story has.
	changed chan struct{}
	// surged are the pods that were detached.
	surged map[types.UID]bool
	// drained is closed when the maintenance says so.
	drained chan struct{}
}

// begin begins to drain these nodes.
func (w *world) begin(nodes []string, crash *crash) *drain {
	w.t.Helper()
	d := &drain{
		world: w, crash: crash, maintenance: w.maintenance(nodes),
		changed: make(chan struct{}, 1000), surged: map[types.UID]bool{}, drained: make(chan struct{}),
	}
	pods := &corev1.PodList{}
	if err := w.client.List(w.t.Context(), pods, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatalf("list pods: %v", err)
	}
	d.pods = w.cluster.Follow(w.t, pods, d.seePod, client.InNamespace(w.namespace))
	maintenances := &v1alpha1.NodeMaintenanceList{}
	byName := client.MatchingFields{"metadata.name": d.maintenance.Name}
	if err := w.client.List(w.t.Context(), maintenances, byName); err != nil {
		w.t.Fatalf("list maintenances: %v", err)
	}
	w.cluster.Follow(w.t, maintenances, d.seeMaintenance(), byName)
	w.try("the maintenance is created", func(ctx context.Context) error {
		return w.client.Create(ctx, d.maintenance.DeepCopy())
	})
	w.t.Cleanup(func() { d.delete() })
	return d
}

func (d *drain) seePod(_ watch.EventType, object client.Object) {
	if object.GetAnnotations()[v1alpha1.SurgeAnnotation] != "" {
		d.surged[object.GetUID()] = true
	}
	select {
	case d.changed <- struct{}{}:
	default: // nobody counts that far
	}
}

func (d *drain) seeMaintenance() func(watch.EventType, client.Object) {
	var once sync.Once
	return func(_ watch.EventType, object client.Object) {
		m, ok := object.(*v1alpha1.NodeMaintenance)
		if ok && apimeta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained) {
			once.Do(func() { close(d.drained) })
		}
	}
}

// play lets happen what the story says until the nodes are drained or the
// maintenance is cancelled.
func (d *drain) play(s story) (cancelled bool) {
	d.t.Helper()
	bound, cancel := patience.Context(d.t)
	defer cancel()
	for change := 1; ; change++ {
		select {
		case <-d.drained:
			return false
		case <-bound.Done():
			d.t.Fatalf("the nodes are not drained:\n%s", d.state())
		case <-d.changed:
		}
		if change == s.killAt {
			d.crash.next(d.t)
		}
		if change == s.cancelAt {
			d.cancel()
			return true
		}
	}
}

// state is what somebody would look at who wonders why nothing happens.
func (d *drain) state() string {
	var state []string
	for _, list := range []client.ObjectList{
		&v1alpha1.NodeMaintenanceList{}, &v1alpha1.EvacuationList{}, &corev1.PodList{}, &policyv1.PodDisruptionBudgetList{},
	} {
		if err := d.client.List(d.t.Context(), list, client.InNamespace(d.namespace)); err != nil {
			return err.Error()
		}
		text, err := yaml.Marshal(list)
		if err != nil {
			return err.Error()
		}
		state = append(state, string(text))
	}
	return strings.Join(state, "---\n")
}

// cancel completes the maintenance although its nodes are not drained.
func (d *drain) cancel() {
	d.t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"stage":"Complete"}}`))
	d.try("the maintenance is completed", func(ctx context.Context) error {
		return d.client.Patch(ctx, d.maintenance.DeepCopy(), patch)
	})
}

// end completes the drain and returns how many pods were detached.
func (d *drain) end(before fingerprint) (surged int) {
	d.t.Helper()
	d.delete()
	d.awaitAsBefore(before)
	d.pods.Stop(d.t)
	return len(d.surged)
}

// delete deletes the maintenance and waits until it has given its nodes back.
func (d *drain) delete() {
	d.t.Helper()
	d.try("the maintenance is gone", func(ctx context.Context) error {
		err := d.client.Delete(ctx, d.maintenance.DeepCopy())
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil:
			return errors.New("it is being deleted")
		}
		return err
	})
}

// crash kills the manager, which all worlds share, and starts another one.
type crash struct {
	mu      sync.Mutex
	manager *cluster.Manager
	count   int
}

func (c *crash) next(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.manager.Kill(t)
	c.manager.Start(t)
	c.count++
}
