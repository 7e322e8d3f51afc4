package cluster_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// provided is a control plane with the provider, and a namespace of the test.
type provided struct {
	*cluster.Cluster
	namespace string
}

func startProvider(t *testing.T) provided {
	t.Helper()
	c := cluster.Start(t, cluster.Spec{})
	c.StartProvider(t)
	return provided{c, c.Namespace(t)}
}

// meta names an object of the test. Nodes take their names from it.
func (w provided) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: w.Pool() + "-" + name}
}

func (w provided) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := w.Client.Create(t.Context(), object); err != nil {
		t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

func (w provided) remove(t *testing.T, object client.Object) {
	t.Helper()
	if err := w.Client.Delete(t.Context(), object); err != nil {
		t.Fatalf("delete %T %s: %v", object, object.GetName(), err)
	}
}

// machine creates a Machine of a Cluster, of which nobody takes care.
func (w provided) machine(t *testing.T, clusterName string) *v1alpha1.Machine {
	t.Helper()
	machine := &v1alpha1.Machine{ObjectMeta: w.meta("m"), Spec: v1alpha1.MachineSpec{
		ClusterName: clusterName,
		InfrastructureRef: v1alpha1.ObjectReference{
			APIVersion: api.SchemeGroupVersion.String(), Kind: "SandboxMachine", Name: w.meta("m").Name,
		},
	}}
	w.create(t, machine)
	return machine
}

// own has a Machine own an object, as its controller does.
func (w provided) own(t *testing.T, machine *v1alpha1.Machine, object client.Object) {
	t.Helper()
	before := object.DeepCopyObject().(client.Object)
	if err := controllerutil.SetControllerReference(machine, object, w.Client.Scheme()); err != nil {
		t.Fatal(err)
	}
	if err := w.Client.Patch(t.Context(), object, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// await reads an object until it is as wanted.
func await(t *testing.T, c client.Reader, object client.Object, what string, reached func() bool) {
	t.Helper()
	patience.Eventually(t, object.GetName()+" "+what, func(ctx context.Context) (string, bool) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%+v", object), reached()
	})
}

// awaitGone waits until an object does not exist.
func awaitGone(t *testing.T, c client.Reader, object client.Object) {
	t.Helper()
	patience.Eventually(t, object.GetName()+" gone", func(ctx context.Context) (string, bool) {
		err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
		return fmt.Sprintf("%v %+v", err, object), apierrors.IsNotFound(err)
	})
}

// readiness is the status of a node's condition Ready.
func readiness(node *corev1.Node) corev1.ConditionStatus {
	for _, cond := range node.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			return cond.Status
		}
	}
	return ""
}
