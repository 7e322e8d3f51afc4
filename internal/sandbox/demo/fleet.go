package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
)

//go:embed fleet.yaml
var fleet []byte

//go:embed tenants.yaml
var tenants []byte

const (
	fleetNamespace = "fleet"
	// tenantPods counts the pods of the applications of tenants.yaml.
	tenantPods = 6 + 3 + 1
	// The hooks of every Machine.
	beforeDrain = "Backup"
	beforeEnd   = "Inventory"
)

var workers = []string{"worker-1", "worker-2", "worker-3"}

// openFleet creates the Cluster, the rules and the Machines.
func openFleet(ctx context.Context, c client.Client) error {
	if err := create(ctx, c, fleet); err != nil {
		return err
	}
	for _, name := range workers {
		for _, object := range newWorker(name) {
			if err := c.Create(ctx, object); err != nil {
				return fmt.Errorf("create %T %s: %w", object, name, err)
			}
		}
	}
	return nil
}

// newWorker is a Machine with what it is made of.
func newWorker(name string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: fleetNamespace, Name: name}
	ref := func(kind string) v1alpha1.ObjectReference {
		return v1alpha1.ObjectReference{APIVersion: api.SchemeGroupVersion.String(), Kind: kind, Name: name}
	}
	config := ref("SandboxConfig")
	return []client.Object{
		&api.SandboxConfig{ObjectMeta: meta, Spec: api.SandboxConfigSpec{Data: "join the cluster"}},
		&api.SandboxMachine{ObjectMeta: meta, Spec: api.SandboxMachineSpec{CreateSeconds: 1, DeleteSeconds: 1}},
		&v1alpha1.Machine{ObjectMeta: meta, Spec: v1alpha1.MachineSpec{
			ClusterName:       "shop",
			Bootstrap:         v1alpha1.MachineBootstrap{ConfigRef: &config},
			InfrastructureRef: ref("SandboxMachine"),
			LifecycleHooks: v1alpha1.LifecycleHooks{
				PreDrain:     []v1alpha1.LifecycleHook{{Name: beforeDrain, Owner: "the backups of the demo"}},
				PreTerminate: []v1alpha1.LifecycleHook{{Name: beforeEnd, Owner: "the inventory of the demo"}},
			},
		}},
	}
}

// moveIn creates the applications and waits until all pods are ready and the
// volume is attached. It returns the node that runs the database.
func moveIn(ctx context.Context, c client.Client) (string, error) {
	if err := create(ctx, c, tenants); err != nil {
		return "", err
	}
	var lastErr error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, openWithin, true, func(ctx context.Context) (bool, error) {
		list := &storagev1.VolumeAttachmentList{}
		lastErr = c.List(ctx, list)
		return lastErr == nil && len(list.Items) == 1 && list.Items[0].Status.Attached, nil
	})
	if err != nil {
		return "", fmt.Errorf("wait for the volume: %w", errors.Join(err, lastErr))
	}
	return awaitOpen(ctx, c, tenantPods, "db")
}

// removeHooks removes hooks at a point, as their owner does when it is done.
func removeHooks(ctx context.Context, c client.Client, name, point string) error {
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"lifecycleHooks":{%q:null}}}`, point))
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: fleetNamespace, Name: name}}
	if err := c.Patch(ctx, machine, patch); err != nil {
		return fmt.Errorf("remove the %s hook: %w", point, err)
	}
	return nil
}
