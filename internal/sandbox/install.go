package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
)

// servedWithin bounds how long the API server may take to serve a new kind.
const servedWithin = 30 * time.Second

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
	err := wait.PollUntilContextTimeout(ctx, 25*time.Millisecond, servedWithin, true, func(ctx context.Context) (bool, error) {
		lastErr = c.Client.List(ctx, list, client.Limit(1))
		return lastErr == nil, nil
	})
	if err != nil {
		return fmt.Errorf("CRD %s is not served: %w", crd.Name, errors.Join(lastErr, err))
	}
	return nil
}

// InstallRBAC gives the manager what the chart gives it, and nothing else. The
// provider's role is there to be summed up by the chart's, as a real one's is.
func (c *Cluster) InstallRBAC(ctx context.Context) error {
	documents, err := charts.Roles()
	if err != nil {
		return err
	}
	provider, err := api.Role()
	if err != nil {
		return err
	}
	role, err := readRole(provider)
	if err != nil {
		return err
	}
	unbound, err := charts.KubeconfigRole()
	if err != nil {
		return err
	}
	kubeconfigs, err := readRole(unbound[0])
	if err != nil {
		return err
	}
	objects := []client.Object{
		kubeconfigs,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ManagerNamespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: ManagerServiceAccount, Namespace: ManagerNamespace}},
		role,
	}
	for _, document := range documents {
		role, err := readRole(document)
		if err != nil {
			return err
		}
		objects = append(objects, role, bind(role))
	}
	for _, object := range objects {
		if err := c.createOnce(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func readRole(document []byte) (*unstructured.Unstructured, error) {
	role := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(document, &role.Object); err != nil {
		return nil, fmt.Errorf("read role: %w", err)
	}
	return role, nil
}

// bind binds the manager to a Role or a ClusterRole.
func bind(role client.Object) client.Object {
	kind := role.GetObjectKind().GroupVersionKind().Kind
	meta := metav1.ObjectMeta{Name: role.GetName(), Namespace: role.GetNamespace()}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role.GetName()}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ManagerNamespace, Name: ManagerServiceAccount}}
	if kind == "Role" {
		return &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
	}
	return &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
}

func (c *Cluster) createOnce(ctx context.Context, object client.Object) error {
	err := c.Client.Create(ctx, object)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
	}
	return nil
}
