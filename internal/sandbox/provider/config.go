package provider

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
)

// configs makes the bootstrap data of SandboxConfigs.
type configs struct{ client.Client }

func addConfigs(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("sandboxconfig").
		For(&api.SandboxConfig{}).
		WithOptions(controllerOptions()).
		Complete(configs{mgr.GetClient()})
}

// Reconcile makes the data of one SandboxConfig.
func (c configs) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	config := &api.SandboxConfig{}
	if err := c.Get(ctx, request.NamespacedName, config); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if config.DeletionTimestamp != nil || owner(config) == "" || config.Status.DataSecretName != "" {
		return reconcile.Result{}, nil
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, Name: config.Name + "-bootstrap"},
		Type:       "cluster.x-k8s.io/secret",
		StringData: map[string]string{api.DataKey: config.Spec.Data},
	}
	if err := controllerutil.SetControllerReference(config, secret, c.Scheme()); err != nil {
		return reconcile.Result{}, err
	}
	// A run that was interrupted has made it already.
	if err := c.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, fmt.Errorf("create the data: %w", err)
	}
	before := config.DeepCopy()
	config.Status.Initialization.DataSecretCreated, config.Status.DataSecretName = new(true), secret.Name
	if err := c.Status().Patch(ctx, config, client.MergeFrom(before)); err != nil {
		return reconcile.Result{}, fmt.Errorf("report: %w", err)
	}
	return reconcile.Result{}, nil
}
