package volume

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// world is a snapshot in the making.
type world struct{ Snapshot }

// start is a node with nothing attached.
func start() *world {
	return &world{Snapshot{
		Node:    &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}},
		Claims:  map[types.NamespacedName]*corev1.PersistentVolumeClaim{},
		Volumes: map[string]*corev1.PersistentVolume{},
	}}
}

// status has the status of the node tell of volumes.
func (w *world) status(names ...corev1.UniqueVolumeName) *world {
	for _, name := range names {
		w.Node.Status.VolumesAttached = append(w.Node.Status.VolumesAttached, corev1.AttachedVolume{Name: name})
	}
	return w
}

func (w *world) attachments(attachments ...*storagev1.VolumeAttachment) *world {
	w.Attachments = append(w.Attachments, attachments...)
	return w
}

func (w *world) volumes(volumes ...*corev1.PersistentVolume) *world {
	for _, volume := range volumes {
		w.Volumes[volume.Name] = volume
	}
	return w
}

// claims adds claims that are bound to the volumes that have them.
func (w *world) claims() *world {
	for _, volume := range w.Volumes {
		if ref := volume.Spec.ClaimRef; ref != nil {
			w.claim(ref.Name, volume.Name)
		}
	}
	return w
}

func (w *world) claim(name, volume string) *world {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name)},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: volume},
	}
	w.Claims[types.NamespacedName{Namespace: "ns", Name: name}] = claim
	return w
}

// owned has the claim belong to the pod of this UID.
func (w *world) owned(claim string, pod types.UID) *world {
	w.Claims[types.NamespacedName{Namespace: "ns", Name: claim}].OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Pod", Name: "pod", UID: pod, Controller: ptr.To(true)},
	}
	return w
}

func (w *world) ignored(pods ...*corev1.Pod) *world {
	w.Ignored = append(w.Ignored, pods...)
	return w
}

func (w *world) problem(text string) *world {
	w.Problem = text
	return w
}

// disk is a CSI volume of driver csi.example with its name as the handle; with a
// claim in namespace ns, unless that is empty.
func disk(name, claim string) *corev1.PersistentVolume {
	return volume(name, claim, corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example", VolumeHandle: name},
	})
}

func volume(name, claim string, source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PersistentVolumeSpec{PersistentVolumeSource: source},
	}
	if claim != "" {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: claim, UID: types.UID("uid-of-" + claim)}
	}
	return v
}

// attachment is that of a disk, which is attached.
func attachment(handle string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: attachmentName("csi.example", handle, "node"), Finalizers: []string{"external-attacher/csi-example"}},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "csi.example", NodeName: "node", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &handle},
		},
		Status: storagev1.VolumeAttachmentStatus{Attached: true},
	}
}

// inline is the attachment of a volume that a pod has without a claim, from a
// plugin that a CSI driver took over.
func inline(driver, handle string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: attachmentName(driver, handle, "node")},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: driver, NodeName: "node",
			Source: storagev1.VolumeAttachmentSource{InlineVolumeSpec: &corev1.PersistentVolumeSpec{
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle},
				},
			}},
		},
		Status: storagev1.VolumeAttachmentStatus{Attached: true},
	}
}

// pod is one whose volumes are called v0, v1 and so on.
func pod(sources ...corev1.VolumeSource) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid-of-pod"}}
	for i, source := range sources {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "v" + string(rune('0'+i)), VolumeSource: source})
	}
	return p
}

func claimed(name string) corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
}

var ephemeral = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}

// Sources that are the same in a PersistentVolume and a pod.
var (
	ebs    = &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://eu-west-1a/vol-1"}
	gce    = &corev1.GCEPersistentDiskVolumeSource{PDName: "disk-1"}
	azure  = &corev1.AzureDiskVolumeSource{DiskName: "d", DataDiskURI: "/subscriptions/s/disks/d"}
	fibre  = &corev1.FCVolumeSource{TargetWWNs: []string{"500a0982991b8dc5", "500a0982891b8dc5"}, Lun: ptr.To[int32](2)}
	world1 = &corev1.FCVolumeSource{WWIDs: []string{"3600508b400105e210000900000490000"}}
)
