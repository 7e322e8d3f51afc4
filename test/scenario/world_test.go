package scenario

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

func TestMain(m *testing.M) {
	os.Exit(cluster.MainUnderRights(m,
		// A connection outlives its Cluster for a while, and a namespace that goes loses its RoleBindings.
		"get secrets.",
		// Every adoption of infrastructure uses it, without a request of its own: the API server
		// asks for it, by the plugin OwnerReferencesPermissionEnforcement.
		"update machines/finalizers.ebbtide.dev",
	))
}

// world is what one scenario has for itself in the cluster that all share: a
// namespace, and a prefix for the names of its nodes and maintenances.
type world struct {
	t       *testing.T
	ctx     context.Context
	client  client.WithWatch
	cluster *cluster.Cluster
	manager *cluster.Manager
	prefix  string
	ns      string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldIn(t, cluster.Spec{})
}

// mortal is the control plane of scenarios that kill the manager, one after the other.
var mortal = cluster.Spec{Alone: true}

// newMortalWorld is a world whose manager may be killed: nobody else needs it.
func newMortalWorld(t *testing.T) *world {
	t.Helper()
	return newWorldIn(t, mortal)
}

// newWorldIn is a world in a cluster of its kind. Without Ebbtide there is no manager.
func newWorldIn(t *testing.T, spec cluster.Spec) *world {
	t.Helper()
	c := cluster.Start(t, spec)
	ns := c.Namespace(t)
	w := &world{t: t, ctx: context.WithoutCancel(t.Context()), client: c.Client, cluster: c, prefix: ns + "-", ns: ns}
	if !spec.Workload {
		w.manager = c.StartManager(t)
	}
	return w
}

// name makes the name of a node or maintenance this world's own.
func (w *world) name(short string) string {
	return w.prefix + strings.TrimPrefix(short, w.prefix)
}

// nodes creates simulated nodes, ready to run pods.
func (w *world) nodes(short ...string) []string {
	w.t.Helper()
	names := make([]string, len(short))
	for i := range short {
		names[i] = w.name(short[i])
	}
	w.cluster.NamedNodes(w.t, nil, names...)
	return names
}

// must ends the scenario if a step of the test itself failed.
func (w *world) must(what string, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

func (w *world) create(object client.Object) {
	w.t.Helper()
	w.must(fmt.Sprintf("create %T %s", object, object.GetName()), w.admitted(func() error { return w.client.Create(w.ctx, object) }))
}

// admitted calls the API, again while our webhooks are not there to agree: the manager may
// just have been killed.
func (w *world) admitted(call func() error) (err error) {
	w.t.Helper()
	patience.Eventually(w.t, "our webhooks to be called", func(context.Context) (string, bool) {
		err = call()
		return fmt.Sprint(err), !sandbox.NotCalled(err)
	})
	return err
}

// change reads an object, lets edit change it and writes it, again after a conflict.
func (w *world) change(object client.Object, name string, edit func()) {
	w.t.Helper()
	key := client.ObjectKey{Namespace: object.GetNamespace(), Name: name}
	for {
		w.must("get "+name, w.client.Get(w.ctx, key, object))
		edit()
		err := w.admitted(func() error { return w.client.Update(w.ctx, object) })
		if !apierrors.IsConflict(err) {
			w.must("update "+name, err)
			return
		}
	}
}

// maintain creates a maintenance of named nodes. It is deleted with the scenario.
func (w *world) maintain(name string, stage v1alpha1.NodeMaintenanceStage, nodes []string, plan ...v1alpha1.DrainPlanEntry) {
	w.t.Helper()
	w.maintainTerm(name, stage, named(nodes), plan)
}

func named(nodes []string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: nodes}
}

func (w *world) maintainTerm(name string, stage v1alpha1.NodeMaintenanceStage, term corev1.NodeSelectorRequirement, plan []v1alpha1.DrainPlanEntry) {
	w.t.Helper()
	w.create(w.planned(name, stage, term, plan))
	w.t.Cleanup(func() { w.forget(name) })
}

// planned is a maintenance that is not created yet.
func (w *world) planned(name string, stage v1alpha1.NodeMaintenanceStage, term corev1.NodeSelectorRequirement, plan []v1alpha1.DrainPlanEntry) *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: w.name(name)},
		Spec: v1alpha1.NodeMaintenanceSpec{
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{term}},
			}},
			Stage: stage, DrainPlan: plan, Reason: "scenario " + w.t.Name(),
		},
	}
}

// forget deletes a maintenance and waits until it has given its nodes back.
func (w *world) forget(name string) {
	w.must("delete "+name, client.IgnoreNotFound(w.remove(w.maintenance(name))))
	w.awaitMaintenanceGone(name)
}

func (w *world) maintenance(name string) *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: w.name(name)}}
}

func (w *world) deleteMaintenance(name string) {
	w.t.Helper()
	w.must("delete "+name, w.remove(w.maintenance(name)))
}

func (w *world) remove(object client.Object) error {
	w.t.Helper()
	return w.admitted(func() error { return w.client.Delete(w.ctx, object) })
}

func (w *world) setStage(name string, stage v1alpha1.NodeMaintenanceStage) {
	w.t.Helper()
	m := w.maintenance(name)
	w.change(m, m.Name, func() { m.Spec.Stage = stage })
}

// cordon is what a person does with kubectl cordon and uncordon.
func (w *world) cordon(node string, unschedulable bool) {
	w.t.Helper()
	n := &corev1.Node{}
	w.change(n, node, func() { n.Spec.Unschedulable = unschedulable })
}

// entry is a drain plan entry for ordinary pods.
func entry(priority int32) v1alpha1.DrainPlanEntry {
	return v1alpha1.DrainPlanEntry{PodPriority: priority, PodType: v1alpha1.PodTypeDefault}
}

func selecting(e v1alpha1.DrainPlanEntry, key, value string) v1alpha1.DrainPlanEntry {
	e.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	return e
}
