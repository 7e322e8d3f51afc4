package scenario

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// disk is a volume that no claim has yet.
const disk = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  csi: {driver: sandbox.ebbtide.dev, volumeHandle: %[1]s}
`

// podWithDisk creates a pod with a claim of the same name to a volume of its own,
// waits until that is attached, and returns the attachment. It stays when it is
// detached, until letGo.
func (w *world) podWithDisk(node string, p pod) *storagev1.VolumeAttachment {
	w.t.Helper()
	w.createDisk(p)
	w.create(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: p.name}, Spec: w.claimOf(p),
	})
	return w.podWith(node, p, corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: p.name},
	})
}

// createDisk creates the volume of a pod and waits until it is there to be
// claimed: a claim that comes before waits for a quarter of a minute.
func (w *world) createDisk(p pod) {
	w.t.Helper()
	volume := w.name(p.name)
	w.cluster.Apply(w.t, w.ns, fmt.Sprintf(disk, volume))
	await(w, "available", &corev1.PersistentVolume{}, volume, func(v *corev1.PersistentVolume) bool {
		return v.Status.Phase == corev1.VolumeAvailable
	})
}

// claimOf claims the volume of a pod.
func (w *world) claimOf(p pod) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new(""), VolumeName: w.name(p.name),
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
}

// podWith is podWithDisk for a pod that gets to its volume in some way.
func (w *world) podWith(node string, p pod, source corev1.VolumeSource) *storagev1.VolumeAttachment {
	w.t.Helper()
	volume, object := w.name(p.name), w.podOn(node, p)
	object.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: source}}
	// The scheduler waits until the claim is bound. Who attaches volumes looks for
	// those of a pod that came before only once a minute.
	object.Spec.NodeName, object.Spec.NodeSelector = "", map[string]string{corev1.LabelHostname: node}
	w.createPod(object)
	w.awaitPod(p.name, "running", running)
	w.awaitNode(node, "with the volume", func(n *corev1.Node) bool {
		return slices.ContainsFunc(n.Status.VolumesAttached, func(attached corev1.AttachedVolume) bool {
			return contains(string(attached.Name), "^"+volume)
		})
	})
	attachment := w.attachmentOf(volume)
	w.keep(attachment, attachment.Name)
	w.t.Cleanup(func() { w.erase(attachment) })
	return attachment
}

func (w *world) attachmentOf(volume string) *storagev1.VolumeAttachment {
	w.t.Helper()
	list := &storagev1.VolumeAttachmentList{}
	w.must("list attachments", w.client.List(w.ctx, list))
	for i := range list.Items {
		if name := list.Items[i].Spec.Source.PersistentVolumeName; name != nil && *name == volume {
			return &list.Items[i]
		}
	}
	w.t.Fatalf("there is no attachment of volume %s", volume)
	return nil
}
