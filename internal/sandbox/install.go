package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/internal/certificate"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
)

// InstallCRDs installs the kinds of the chart and of the sandbox's provider, and
// waits until they are served. What is installed already stays as it is.
func (c *Cluster) InstallCRDs(ctx context.Context) error {
	ours, err := charts.CRDs()
	if err != nil {
		return err
	}
	provider, err := api.CRDs()
	if err != nil {
		return err
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, document := range slices.Concat(ours, provider) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(document, crd); err != nil {
			return fmt.Errorf("read CRD: %w", err)
		}
		if err := c.createOnce(ctx, crd); err != nil {
			return err
		}
		crds = append(crds, crd)
	}
	for _, crd := range crds {
		if err := c.waitServed(ctx, crd); err != nil {
			return err
		}
	}
	return nil
}

// waitServed waits until a kind can be found and listed. The API server says
// Established a moment before that.
func (c *Cluster) waitServed(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{
		Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Kind: crd.Spec.Names.ListKind,
	})
	var lastErr error
	err := wait.PollUntilContextTimeout(ctx, 25*time.Millisecond, startWithin, true, func(ctx context.Context) (bool, error) {
		lastErr = c.Client.List(ctx, list, client.Limit(1))
		return lastErr == nil, nil
	})
	if err != nil {
		return fmt.Errorf("CRD %s is not served: %w", crd.Name, errors.Join(lastErr, err))
	}
	return nil
}

// readChart settles what is installed, and whose account the manager's is.
func (c *Cluster) readChart() (err error) {
	if c.spec.Chart == nil {
		if c.spec.Chart, err = charts.Sandbox(ServesMutatingPolicies(c.binaries.Version)); err != nil {
			return err
		}
	}
	for _, object := range c.spec.Chart {
		if object.GetKind() == "ServiceAccount" {
			c.account = Account{Namespace: object.GetNamespace(), Name: object.GetName()}
			return nil
		}
	}
	return errors.New("the chart has no ServiceAccount")
}

// InstallChart installs the chart: what the manager may do, and what the
// API server asks about requests. The webhooks are called at a port of localhost, where
// a Service of the chart would lead to pods. What is installed already is led to the
// port. The certificate is made as the hooks of the chart make it. The role of the
// sandbox's provider is there to be summed up by the chart's, as a real one's is.
func (c *Cluster) InstallChart(ctx context.Context, port int) error {
	document, err := api.Role()
	if err != nil {
		return err
	}
	provider := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(document, &provider.Object); err != nil {
		return fmt.Errorf("read the role of the provider: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.account.Namespace}}
	if err := c.createOnce(ctx, namespace); err != nil {
		return err
	}
	hook := certificate.Hook{Client: c.Client, Namespace: c.account.Namespace, Now: time.Now, Out: io.Discard}
	if err := hook.Run(ctx, certificate.Before); err != nil {
		return fmt.Errorf("make the certificate of the webhooks: %w", err)
	}
	for _, object := range append(slices.Clip(c.spec.Chart), provider) {
		if c.leavesOut(object) {
			continue
		}
		object := object.DeepCopy()
		if err := callLocally(object, port); err != nil {
			return fmt.Errorf("read %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		err := c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("sandbox"), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("install %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if err := hook.Run(ctx, certificate.After); err != nil {
		return fmt.Errorf("have the API server trust the webhooks: %w", err)
	}
	return nil
}

// leavesOut is true for what the chart has only for clusters that serve EvictionRequests.
func (c *Cluster) leavesOut(object *unstructured.Unstructured) bool {
	return !c.spec.EvictionRequests && object.GetName() == "ebbtide-responders"
}

// createOnce creates an object unless it exists, again if a busy machine cut the connection.
func (c *Cluster) createOnce(ctx context.Context, object client.Object) error {
	err := retry.OnError(retry.DefaultBackoff, utilnet.IsProbableEOF, func() error { return c.Client.Create(ctx, object) })
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
	}
	return nil
}
