package provider

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
)

// volumes attaches volumes to nodes and detaches them, as the attacher of a CSI
// driver does. Which ones, the controller manager of Kubernetes says.
type volumes struct{ client.Client }

func addVolumes(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("sandboxvolume").
		For(&storagev1.VolumeAttachment{}).
		WithOptions(controllerOptions()).
		Complete(volumes{mgr.GetClient()})
}

// Reconcile attaches or detaches one volume.
func (v volumes) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	attachment := &storagev1.VolumeAttachment{}
	if err := v.Get(ctx, request.NamespacedName, attachment); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	switch {
	case attachment.Spec.Attacher != api.VolumeDriver:
		return reconcile.Result{}, nil
	case attachment.DeletionTimestamp != nil:
		return v.detach(ctx, attachment)
	case !attachment.Status.Attached:
		return reconcile.Result{}, v.attach(ctx, attachment)
	}
	return reconcile.Result{}, nil
}

func (v volumes) attach(ctx context.Context, attachment *storagev1.VolumeAttachment) error {
	attachment, err := kube.AddFinalizer(ctx, v.Client, attachment, api.VolumeFinalizer)
	if err != nil {
		return fmt.Errorf("add the finalizer: %w", err)
	}
	before := attachment.DeepCopy()
	attachment.Status.Attached = true
	if err := v.Status().Patch(ctx, attachment, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	log.FromContext(ctx).Info("Volume is attached", "node", attachment.Spec.NodeName)
	return nil
}

func (v volumes) detach(ctx context.Context, attachment *storagev1.VolumeAttachment) (reconcile.Result, error) {
	takes, err := v.detachAfter(ctx, attachment)
	if err != nil {
		return reconcile.Result{}, err
	}
	if left := time.Until(attachment.DeletionTimestamp.Add(takes)); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	if _, err := kube.RemoveFinalizer(ctx, v.Client, attachment, api.VolumeFinalizer); err != nil {
		return reconcile.Result{}, fmt.Errorf("remove the finalizer: %w", err)
	}
	log.FromContext(ctx).Info("Volume is detached", "node", attachment.Spec.NodeName)
	return reconcile.Result{}, nil
}

// detachAfter returns the time that a volume takes to be detached. One that is gone takes no time.
func (v volumes) detachAfter(ctx context.Context, attachment *storagev1.VolumeAttachment) (time.Duration, error) {
	name := attachment.Spec.Source.PersistentVolumeName
	if name == nil {
		return 0, nil
	}
	volume := &corev1.PersistentVolume{}
	if err := v.Get(ctx, client.ObjectKey{Name: *name}, volume); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	text, ok := volume.Annotations[api.DetachAfter]
	if !ok {
		return 0, nil
	}
	takes, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("annotation %s of volume %s: %w", api.DetachAfter, volume.Name, err)
	}
	return takes, nil
}
