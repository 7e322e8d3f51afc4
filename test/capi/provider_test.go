package capi

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/cluster"
)

// Kinds of Cluster API, and of the provider.
var (
	clusterKind      = schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"}
	machineKind      = schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"}
	deploymentKind   = schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineDeployment"}
	hostKind         = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "SandboxHost"}
	controlPlaneKind = schema.GroupVersionKind{Group: "controlplane.cluster.x-k8s.io", Version: "v1", Kind: "SandboxControlPlane"}
)

const hostFinalizer = "sandbox.ebbtide.dev/host"

// provider makes a node of each SandboxHost, which is its machine, and lets go of one that
// is deleted. The node itself is deleted by Cluster API.
type provider struct {
	client client.WithWatch
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu sync.Mutex
	// elsewhere are the clients of other clusters that nodes are in, by namespace.
	elsewhere map[string]client.WithWatch
	errors    []error
}

func startProvider(c *cluster.Cluster) *provider {
	ctx, cancel := context.WithCancel(context.Background())
	p := &provider{client: c.Client, cancel: cancel, elsewhere: map[string]client.WithWatch{}}
	p.done.Go(func() {
		for ctx.Err() == nil {
			p.watch(ctx)
		}
	})
	return p
}

func (p *provider) stop() {
	p.cancel()
	p.done.Wait()
}

// watch returns when a watch has ended.
func (p *provider) watch(ctx context.Context) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(hostKind)
	watcher, err := p.client.Watch(ctx, list)
	if err != nil {
		return
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		host, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Deleted || event.Type == watch.Bookmark {
			continue
		}
		if err := p.reconcile(ctx, host); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			p.mu.Lock()
			p.errors = append(p.errors, fmt.Errorf("host %s: %w", host.GetName(), err))
			p.mu.Unlock()
		}
	}
}

func (p *provider) reconcile(ctx context.Context, host *unstructured.Unstructured) error {
	providerID, _, _ := unstructured.NestedString(host.Object, "spec", "providerID")
	switch {
	case host.GetDeletionTimestamp() != nil:
		host.SetFinalizers(slices.DeleteFunc(host.GetFinalizers(), func(f string) bool { return f == hostFinalizer }))
		return p.client.Update(ctx, host)
	case providerID != "":
		return nil
	}
	name := host.GetName()
	labels, _, _ := unstructured.NestedStringMap(host.Object, "spec", "nodeLabels")
	node := sandbox.NewNode(name, labels)
	node.Spec.ProviderID = "sandbox:///" + host.GetNamespace() + "/" + name
	// As a kubelet has it that was started for Cluster API, until that has taken it over.
	node.Spec.Taints = []corev1.Taint{{Key: "node.cluster.x-k8s.io/uninitialized", Effect: corev1.TaintEffectNoSchedule}}
	if err := client.IgnoreAlreadyExists(p.in(host.GetNamespace()).Create(ctx, node)); err != nil {
		return err
	}
	host.SetFinalizers([]string{hostFinalizer})
	if err := unstructured.SetNestedField(host.Object, node.Spec.ProviderID, "spec", "providerID"); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(host.Object, true, "status", "initialization", "provisioned"); err != nil {
		return err
	}
	return p.client.Update(ctx, host)
}

// in is the cluster that the nodes of a namespace's hosts are in.
func (p *provider) in(namespace string) client.WithWatch {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.elsewhere[namespace]; c != nil {
		return c
	}
	return p.client
}

// lead has the nodes of a namespace's hosts be in another cluster.
func (p *provider) lead(namespace string, to client.WithWatch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.elsewhere[namespace] = to
}
