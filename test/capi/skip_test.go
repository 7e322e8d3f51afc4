package capi

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A rule of ours has a pod with a volume stay. Cluster API, which does not know the rule, does
// not wait for the volume: nobody would ever detach it.
func TestLongAPodWithAVolumeThatOurRuleSkips(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bridged)
	w.bindKubeconfigs()
	w.pool(1, 0)
	victim := w.machines()[0]
	w.attached(nodeOf(victim))
	w.c.Apply(t, w.ns, `
apiVersion: ebbtide.dev/v1alpha1
kind: MachineDrainRule
metadata: {name: stays}
spec:
  drain: {behavior: Skip}
  pods: [{selector: {matchLabels: {app: stays}}}]
`)
	w.delete(victim)
	w.awaitEvent(victim, v1alpha1.EventBridgeDone, "is drained; the hook is removed")
	w.awaitGone(victim)
}

// attached runs a pod on a node with a volume that is attached there for as long as nobody
// detaches it.
func (w *world) attached(node string) {
	w.t.Helper()
	volume := w.ns + "-data"
	w.c.Apply(w.t, w.ns, fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {storageClassName: "", volumeName: %[1]s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: stays, labels: {app: stays}}
spec:
  nodeName: %[2]s
  containers: [{name: db, image: db}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`, volume, node))
	w.create(&corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volume},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:               &corev1.ObjectReference{Namespace: w.ns, Name: "data"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: volume}},
		},
	})
	attachment := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "disk.example.com", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
	}
	w.create(attachment)
	attachment.Status.Attached = true
	w.must(w.c.Client.Status().Update(w.ctx, attachment))
	w.t.Cleanup(func() {
		_ = w.c.Client.Delete(context.Background(), attachment)
		_ = w.c.Client.Delete(context.Background(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}})
	})
}
