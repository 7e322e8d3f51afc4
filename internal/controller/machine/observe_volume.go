package machine

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/core/volume"
	"ebbtide.dev/ebbtide/internal/kube"
)

// observeVolumes reads the attachments of the Node and their owners. It comes after observePods.
func observeVolumes(ctx context.Context, seen *observed) {
	c, node := seen.connection.Client, seen.node
	var attachments storagev1.VolumeAttachmentList
	err := c.List(ctx, &attachments, client.MatchingFields{kube.AttachmentNodeField: node.Name}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		seen.VolumesProblem, seen.unread = fmt.Sprintf("list the VolumeAttachments of node %s: %v", node.Name, err), true
		return
	}
	found := volumes{
		Reader: c,
		Snapshot: volume.Snapshot{
			Attachments: kube.Pointers(attachments.Items),
			Claims:      map[types.NamespacedName]*corev1.PersistentVolumeClaim{},
			Volumes:     map[string]*corev1.PersistentVolume{},
		},
	}
	if err := found.read(ctx, node, seen.Drain.Pods); err != nil {
		found.Problem, seen.unread = err.Error(), true
	}
	seen.Volumes = found.Snapshot
}

// volumes reads claims and volumes from a cache. A missing one is waited for, so a stale cache is
// safe.
type volumes struct {
	client.Reader
	volume.Snapshot
}

func (v *volumes) read(ctx context.Context, node *corev1.Node, pods []*corev1.Pod) error {
	for _, pod := range pods {
		if err := v.addClaims(ctx, pod); err != nil {
			return err
		}
	}
	for _, attachment := range v.Attachments {
		if name := attachment.Spec.Source.PersistentVolumeName; name != nil {
			if err := v.addVolume(ctx, *name); err != nil {
				return err
			}
		}
	}
	for i := range node.Status.VolumesAttached {
		if err := v.addAttached(ctx, node.Status.VolumesAttached[i].Name); err != nil {
			return err
		}
	}
	return nil
}

func (v *volumes) addClaims(ctx context.Context, pod *corev1.Pod) error {
	for _, key := range volume.Claims(pod) {
		claim := &corev1.PersistentVolumeClaim{}
		err := v.Get(ctx, key, claim)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get claim %s: %w", key, err)
		}
		if err != nil {
			continue
		}
		v.Claims[key] = claim
		if err := v.addVolume(ctx, claim.Spec.VolumeName); err != nil {
			return err
		}
	}
	return nil
}

func (v *volumes) addVolume(ctx context.Context, name string) error {
	if name == "" || v.Volumes[name] != nil {
		return nil
	}
	found := &corev1.PersistentVolume{}
	err := v.Get(ctx, types.NamespacedName{Name: name}, found)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get volume %s: %w", name, err)
	}
	if err == nil {
		v.Volumes[name] = found
	}
	return nil
}

// addAttached adds the volumes that the status of the node may mean. Those of CSI drivers are found
// by their handle.
func (v *volumes) addAttached(ctx context.Context, name corev1.UniqueVolumeName) error {
	options := []client.ListOption{client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency}
	if driver, handle, csi := volume.Handle(name); csi {
		options = append(options, client.MatchingFields{kube.VolumeHandleField: kube.VolumeHandle(driver, handle)})
	}
	var list corev1.PersistentVolumeList
	if err := v.List(ctx, &list, options...); err != nil {
		return fmt.Errorf("list the volumes that are attached as %s: %w", name, err)
	}
	for i := range list.Items {
		if found := &list.Items[i]; slices.Contains(volume.AttachedNames(found), name) {
			v.Volumes[found.Name] = found
		}
	}
	return nil
}
