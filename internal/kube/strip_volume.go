package kube

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StripClaim returns the parts of a PersistentVolumeClaim that decisions read.
func StripClaim(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	meta := identity(&claim.ObjectMeta)
	meta.OwnerReferences = claim.OwnerReferences
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: meta,
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: claim.Spec.VolumeName},
	}
}

// StripVolume returns the parts of a PersistentVolume that decisions read.
func StripVolume(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	stripped := &corev1.PersistentVolume{
		ObjectMeta: identity(&volume.ObjectMeta),
		Spec:       corev1.PersistentVolumeSpec{PersistentVolumeSource: volume.Spec.PersistentVolumeSource},
	}
	if claim := volume.Spec.ClaimRef; claim != nil {
		stripped.Spec.ClaimRef = &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
	}
	if csi := volume.Spec.CSI; csi != nil {
		stripped.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: csi.Driver, VolumeHandle: csi.VolumeHandle}
	}
	return stripped
}

// StripAttachment returns the parts of a VolumeAttachment that decisions read.
func StripAttachment(attachment *storagev1.VolumeAttachment) *storagev1.VolumeAttachment {
	stripped := &storagev1.VolumeAttachment{
		ObjectMeta: identity(&attachment.ObjectMeta),
		Spec:       attachment.Spec,
		Status:     storagev1.VolumeAttachmentStatus{Attached: attachment.Status.Attached},
	}
	stripped.Finalizers = attachment.Finalizers
	if failed := attachment.Status.DetachError; failed != nil {
		stripped.Status.DetachError = &storagev1.VolumeError{Message: failed.Message}
	}
	return stripped
}

func identity(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: meta.Name, Namespace: meta.Namespace, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp,
	}
}

// attachable returns the volumes of a pod that may be attached to its node: claims, ephemeral
// claims and disks without a claim.
func attachable(volumes []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for i := range volumes {
		source := &volumes[i].VolumeSource
		found := corev1.VolumeSource{
			PersistentVolumeClaim: source.PersistentVolumeClaim,
			AWSElasticBlockStore:  source.AWSElasticBlockStore,
			AzureDisk:             source.AzureDisk,
			Cinder:                source.Cinder,
			FC:                    source.FC,
			FlexVolume:            source.FlexVolume,
			GCEPersistentDisk:     source.GCEPersistentDisk,
			ISCSI:                 source.ISCSI,
			PortworxVolume:        source.PortworxVolume,
			RBD:                   source.RBD,
			VsphereVolume:         source.VsphereVolume,
		}
		if source.Ephemeral != nil {
			found.Ephemeral = &corev1.EphemeralVolumeSource{}
		}
		if found != (corev1.VolumeSource{}) {
			kept = append(kept, corev1.Volume{Name: volumes[i].Name, VolumeSource: found})
		}
	}
	return kept
}
