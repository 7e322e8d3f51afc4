package lab

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
)

// clusterName is the name of the Cluster of a load's Machines.
const clusterName = "bench"

// machines is Ebbtide: its real manager, told by deleting the Machines of the
// nodes. Nobody provides infrastructure: what stands for it is ready from the
// beginning and is gone when it is deleted, so that what remains is the drain.
type machines struct {
	*manager
	load *Load
}

// startMachines starts the manager and returns when all Machines of the load run.
func (l *Lab) startMachines(ctx context.Context, load *Load) (Contender, error) {
	manager, err := l.runManager(ctx)
	if err != nil {
		return nil, err
	}
	m := &machines{manager, load}
	if err := m.bringUp(ctx); err != nil {
		return nil, errors.Join(err, m.Stop(ctx))
	}
	return m, nil
}

func (m *machines) bringUp(ctx context.Context) error {
	meta := metav1.ObjectMeta{Namespace: m.load.Namespace, Name: clusterName}
	if err := create(ctx, m.lab.Client, &v1alpha1.Cluster{ObjectMeta: meta}); err != nil {
		return err
	}
	if err := create(ctx, m.lab.Client, m.load.rules(m.load.Namespace, nil)...); err != nil {
		return err
	}
	for _, node := range m.load.Nodes {
		if err := m.bringUpOne(ctx, node); err != nil {
			return err
		}
	}
	return m.lab.until(ctx, "the Machines to run", func(ctx context.Context) (bool, error) {
		machines, err := m.list(ctx)
		for i := range machines.Items {
			if machines.Items[i].Status.Phase != v1alpha1.MachineRunning {
				return false, nil
			}
		}
		return err == nil, err
	})
}

// bringUpOne makes a Machine of a node and infrastructure for it that is there.
func (m *machines) bringUpOne(ctx context.Context, node string) error {
	meta, id := metav1.ObjectMeta{Namespace: m.load.Namespace, Name: node}, "bench://"+node
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"providerID":%q}}`, id))
	if err := m.lab.Client.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, patch); err != nil {
		return fmt.Errorf("patch node: %w", err)
	}
	infrastructure := &api.SandboxMachine{ObjectMeta: meta, Spec: api.SandboxMachineSpec{ProviderID: id}}
	if err := create(ctx, m.lab.Client, infrastructure); err != nil {
		return err
	}
	infrastructure.Status.Initialization.Provisioned = new(true)
	if err := m.lab.Client.Status().Update(ctx, infrastructure); err != nil {
		return fmt.Errorf("update infrastructure: %w", err)
	}
	return create(ctx, m.lab.Client, &v1alpha1.Machine{
		ObjectMeta: meta,
		Spec: v1alpha1.MachineSpec{
			ClusterName: clusterName,
			InfrastructureRef: v1alpha1.ObjectReference{
				APIVersion: api.SchemeGroupVersion.String(), Kind: "SandboxMachine", Name: node,
			},
		},
	})
}

func (m *machines) list(ctx context.Context) (*v1alpha1.MachineList, error) {
	list := &v1alpha1.MachineList{}
	if err := m.lab.Client.List(ctx, list, client.InNamespace(m.load.Namespace)); err != nil {
		return list, fmt.Errorf("list machines: %w", err)
	}
	return list, nil
}

// Drain deletes the Machines of all nodes of the load with one request and returns
// when they are gone.
func (m *machines) Drain(ctx context.Context, _ []string) error {
	list, inNamespace := &v1alpha1.MachineList{}, client.InNamespace(m.load.Namespace)
	changes, err := m.lab.watch(ctx, list, inNamespace)
	if err != nil {
		return err
	}
	defer changes.stop()
	if err := m.lab.Client.DeleteAllOf(ctx, &v1alpha1.Machine{}, inNamespace); err != nil {
		return fmt.Errorf("delete machines: %w", err)
	}
	for left := len(list.Items); left > 0; {
		change, err := changes.next(ctx)
		if err != nil {
			return fmt.Errorf("%d Machines are still there: %w", left, err)
		}
		if change.Type == watch.Deleted {
			left--
		}
	}
	return nil
}

// Stop ends the manager and frees what it held. On an error it shows what the
// Machines that are left wait for.
func (m *machines) Stop(ctx context.Context) error {
	left, err := m.list(ctx)
	if len(left.Items) > 0 {
		first := &left.Items[0]
		err = fmt.Errorf("%d Machines are left; %s is %s: %+v; the manager's log ends:\n%s",
			len(left.Items), first.Name, first.Status.Phase, first.Status.Conditions, m.process.Tail(20))
	}
	err = errors.Join(err, m.manager.Stop(ctx))
	held := []client.Object{&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: m.load.Namespace, Name: clusterName}}}
	for i := range left.Items {
		held = append(held, &left.Items[i])
	}
	free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	for _, object := range held {
		if freeErr := m.lab.Client.Patch(ctx, object, free); client.IgnoreNotFound(freeErr) != nil {
			err = errors.Join(err, fmt.Errorf("free what the manager held: %w", freeErr))
		}
	}
	return err
}
