package provider

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
)

// machines makes and removes the nodes of SandboxMachines.
type machines struct{ client.Client }

func addMachines(mgr manager.Manager) error {
	m := machines{mgr.GetClient()}
	return ctrl.NewControllerManagedBy(mgr).
		Named("sandboxmachine").
		For(&api.SandboxMachine{}).
		Watches(&v1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(infrastructure)).
		Watches(&v1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(m.neighbours)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(m.neighbours)).
		WithOptions(controllerOptions()).
		Complete(m)
}

// infrastructure is the SandboxMachine that a Machine names.
func infrastructure(_ context.Context, object client.Object) []reconcile.Request {
	machine, ok := object.(*v1alpha1.Machine)
	if !ok || machine.Spec.InfrastructureRef.Kind != "SandboxMachine" {
		return nil
	}
	key := client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.InfrastructureRef.Name}
	return []reconcile.Request{{NamespacedName: key}}
}

// neighbours are the SandboxMachines that a Cluster or a kubeconfig may be for.
func (m machines) neighbours(ctx context.Context, object client.Object) (requests []reconcile.Request) {
	list := &api.SandboxMachineList{}
	if err := m.List(ctx, list, client.InNamespace(object.GetNamespace())); err != nil {
		log.FromContext(ctx).Error(err, "List SandboxMachines")
	}
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// Reconcile brings one instance a step forward.
func (m machines) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	machine := &api.SandboxMachine{}
	if err := m.Get(ctx, request.NamespacedName, machine); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	provisioned := machine.Status.Initialization.Provisioned
	switch {
	case machine.DeletionTimestamp != nil:
		return m.remove(ctx, machine)
	case provisioned != nil && *provisioned:
		return reconcile.Result{}, nil
	case owner(machine) == "":
		return reconcile.Result{}, m.say(ctx, machine, "no Machine owns it yet")
	default:
		return m.create(ctx, machine)
	}
}

// owner is the name of the Machine that owns an object, if there is one.
func owner(object client.Object) string {
	ref := metav1.GetControllerOfNoCopy(object)
	if ref == nil || ref.APIVersion != v1alpha1.SchemeGroupVersion.String() || ref.Kind != "Machine" {
		return ""
	}
	return ref.Name
}

func (m machines) create(ctx context.Context, machine *api.SandboxMachine) (reconcile.Result, error) {
	if err := m.begin(ctx, machine); err != nil {
		return reconcile.Result{}, err
	}
	if left := leftOf(machine.Status.StartTime, machine.Spec.CreateSeconds); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	if err := m.run(ctx, machine); err != nil {
		if sayErr := m.say(ctx, machine, err.Error()); sayErr != nil {
			return reconcile.Result{}, sayErr
		}
		// A watch reports the missing object once it exists.
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	log.FromContext(ctx).Info("Instance runs", "node", machine.Name)
	return reconcile.Result{}, m.patchStatus(ctx, machine, func(status *api.SandboxMachineStatus) {
		status.Initialization.Provisioned, status.Message = new(true), "the instance runs"
	})
}

// begin records the start before anything is made.
func (m machines) begin(ctx context.Context, machine *api.SandboxMachine) error {
	recorded, err := kube.AddFinalizer(ctx, m.Client, machine, api.MachineFinalizer)
	if err != nil {
		return fmt.Errorf("add the finalizer: %w", err)
	}
	*machine = *recorded
	if machine.Status.StartTime != nil {
		return nil
	}
	return m.patchStatus(ctx, machine, func(status *api.SandboxMachineStatus) {
		status.StartTime, status.Message = new(metav1.Now()), "the instance is being created"
	})
}

// run makes the node and says by what ID it is known.
func (m machines) run(ctx context.Context, machine *api.SandboxMachine) error {
	workload, err := m.workload(ctx, machine)
	if err != nil {
		return err
	}
	node := sandbox.NewNode(machine.Name, machine.Spec.NodeLabels)
	node.Spec.ProviderID, node.Spec.Taints = providerID(machine), machine.Spec.Taints
	if err := workload.Create(ctx, node); err != nil {
		if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create the node: %w", err)
		}
		if err := workload.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return fmt.Errorf("read the existing node: %w", err)
		}
		if node.Spec.ProviderID != providerID(machine) {
			return fmt.Errorf("there is another node %s already, with the provider ID %q", node.Name, node.Spec.ProviderID)
		}
	}
	before := machine.DeepCopy()
	machine.Spec.ProviderID = providerID(machine)
	if err := m.Patch(ctx, machine, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("set the provider ID: %w", err)
	}
	return nil
}

func providerID(machine *api.SandboxMachine) string {
	return "sandbox://" + machine.Namespace + "/" + machine.Name
}

func (m machines) remove(ctx context.Context, machine *api.SandboxMachine) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(machine, api.MachineFinalizer) {
		return reconcile.Result{}, nil
	}
	if err := m.stop(ctx, machine); err != nil {
		// The instance ends nevertheless.
		log.FromContext(ctx).Error(err, "Failed to stop the node", "node", machine.Name)
	}
	if left := leftOf(machine.DeletionTimestamp, machine.Spec.DeleteSeconds); left > 0 {
		return reconcile.Result{RequeueAfter: left}, m.say(ctx, machine, "the instance is being deleted")
	}
	if _, err := kube.RemoveFinalizer(ctx, m.Client, machine, api.MachineFinalizer); err != nil {
		return reconcile.Result{}, fmt.Errorf("remove the finalizer: %w", err)
	}
	log.FromContext(ctx).Info("Instance is gone", "node", machine.Name)
	return reconcile.Result{}, nil
}

// stop has the node of an instance no longer answer.
func (m machines) stop(ctx context.Context, machine *api.SandboxMachine) error {
	workload, err := m.workload(ctx, machine)
	if err != nil {
		return err
	}
	node := &corev1.Node{}
	if err := workload.Get(ctx, client.ObjectKey{Name: machine.Name}, node); err != nil {
		return client.IgnoreNotFound(err)
	}
	if node.Spec.ProviderID != providerID(machine) {
		return nil
	}
	return client.IgnoreNotFound(sandbox.StopNode(ctx, workload, node.Name))
}

// leftOf returns the rest of some seconds since a time.
func leftOf(since *metav1.Time, seconds int32) time.Duration {
	return time.Until(since.Add(time.Duration(seconds) * time.Second))
}

// say reports what an instance waits for.
func (m machines) say(ctx context.Context, machine *api.SandboxMachine, message string) error {
	return m.patchStatus(ctx, machine, func(status *api.SandboxMachineStatus) { status.Message = message })
}

func (m machines) patchStatus(ctx context.Context, machine *api.SandboxMachine, change func(*api.SandboxMachineStatus)) error {
	before := machine.DeepCopy()
	change(&machine.Status)
	if equality.Semantic.DeepEqual(before.Status, machine.Status) {
		return nil
	}
	if err := m.Status().Patch(ctx, machine, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
