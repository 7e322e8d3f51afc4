package provider

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
)

// answersWithin bounds a request to another cluster.
const answersWithin = 5 * time.Second

// workload is a client of the cluster that the node of an instance belongs into:
// this one, or the one of its Cluster's kubeconfig.
func (m machines) workload(ctx context.Context, machine *api.SandboxMachine) (client.Client, error) {
	key := client.ObjectKey{Namespace: machine.Namespace, Name: owner(machine)}
	owning := &v1alpha1.Machine{}
	if err := m.Get(ctx, key, owning); err != nil {
		return nil, fmt.Errorf("read the Machine: %w", err)
	}
	key.Name = owning.Spec.ClusterName
	cluster := &v1alpha1.Cluster{}
	if err := m.Get(ctx, key, cluster); err != nil {
		return nil, fmt.Errorf("read the Cluster: %w", err)
	}
	ref := cluster.Spec.KubeconfigSecretRef
	if ref == nil {
		return m.Client, nil
	}
	key.Name = ref.Name
	secret := &corev1.Secret{}
	if err := m.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[ref.Key])
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.Timeout = answersWithin
	remote, err := client.New(config, client.Options{Scheme: m.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return remote, nil
}
