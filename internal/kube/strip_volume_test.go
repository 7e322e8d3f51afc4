package kube_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/kube"
)

// full is much of an object, identity is who it is.
var (
	full = metav1.ObjectMeta{
		Name: "one", UID: "uid", ResourceVersion: "12", CreationTimestamp: birth, DeletionTimestamp: &birth,
		Labels: map[string]string{"team": "shop"}, Annotations: map[string]string{"ebbtide.dev/x": "y"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: "web"}}, Finalizers: []string{"example.com/keep"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
	}
	identity = metav1.ObjectMeta{Name: "one", UID: "uid", ResourceVersion: "12", CreationTimestamp: birth, DeletionTimestamp: &birth}
)

func with(change func(*metav1.ObjectMeta)) metav1.ObjectMeta {
	meta := identity
	change(&meta)
	return meta
}

var (
	owned     = with(func(meta *metav1.ObjectMeta) { meta.OwnerReferences = full.OwnerReferences })
	finalized = with(func(meta *metav1.ObjectMeta) {
		meta.Finalizers = full.Finalizers
	})
	labelled = with(func(meta *metav1.ObjectMeta) { meta.Labels = full.Labels })
)

var cached = map[string]struct{ got, want client.Object }{
	"namespace: its labels": {
		got:  kube.StripNamespace(&corev1.Namespace{ObjectMeta: full, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}}}),
		want: &corev1.Namespace{ObjectMeta: labelled},
	},
	"DaemonSet: that it exists": {
		got:  kube.StripDaemonSet(&appsv1.DaemonSet{ObjectMeta: full, Spec: appsv1.DaemonSetSpec{MinReadySeconds: 3}}),
		want: &appsv1.DaemonSet{ObjectMeta: identity},
	},
	"claim: whose it is and its volume": {
		got: kube.StripClaim(&corev1.PersistentVolumeClaim{ObjectMeta: full, Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: "volume", StorageClassName: new("fast"),
		}}),
		want: &corev1.PersistentVolumeClaim{ObjectMeta: owned, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "volume"}},
	},
	"volume: its claim, driver and handle": {
		got: kube.StripVolume(&corev1.PersistentVolume{ObjectMeta: full, Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data", UID: "claim"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "disk.example", VolumeHandle: "one", VolumeAttributes: map[string]string{"zone": "a"},
			}},
		}}),
		want: &corev1.PersistentVolume{ObjectMeta: identity, Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "claim"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "disk.example", VolumeHandle: "one",
			}},
		}},
	},
	"attachment: what, where, whether it is attached, and why still": {
		got: kube.StripAttachment(&storagev1.VolumeAttachment{
			ObjectMeta: full,
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: "disk.example", NodeName: "node", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("volume")},
			},
			Status: storagev1.VolumeAttachmentStatus{
				Attached: true, AttachmentMetadata: map[string]string{"path": "/dev/one"},
				DetachError: &storagev1.VolumeError{Time: birth, Message: "device is busy"},
			},
		}),
		want: &storagev1.VolumeAttachment{
			ObjectMeta: finalized,
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: "disk.example", NodeName: "node", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("volume")},
			},
			Status: storagev1.VolumeAttachmentStatus{Attached: true, DetachError: &storagev1.VolumeError{Message: "device is busy"}},
		},
	},
}

// What the wait for volumes and the rules of a drain read of other kinds stays in
// the cache, and nothing else.
func TestCacheKeepsFieldsOfMachineDeletion(t *testing.T) {
	t.Parallel()
	for name, test := range cached {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Errorf("cached (-want +got):\n%s", diff)
			}
		})
	}
}

// A node may have disks attached for a pod that no claim of its own names.
func TestStripPodKeepsTheVolumesThatMayBeAttached(t *testing.T) {
	t.Parallel()
	disk := corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk"}}
	template := &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("fast")}}

	got := kube.StripPod(&corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: template}}},
		{Name: "files", VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "files"}}},
		{Name: "disk", VolumeSource: disk},
	}}})

	want := []corev1.Volume{
		{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		{Name: "disk", VolumeSource: disk},
	}
	if diff := cmp.Diff(want, got.Spec.Volumes); diff != "" {
		t.Errorf("cached volumes (-want +got):\n%s", diff)
	}
}
