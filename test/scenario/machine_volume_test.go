package scenario

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// disk is a volume with a claim of the same name.
const disk = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  csi: {driver: sandbox.ebbtide.dev, volumeHandle: %[1]s}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[2]s}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  volumeName: %[1]s
  resources: {requests: {storage: 1Gi}}
`

// podWithDisk creates a pod with a volume of its own, waits until that is
// attached, and returns the attachment. It stays when it is detached, until letGo.
func (w *world) podWithDisk(node string, p pod) *storagev1.VolumeAttachment {
	w.t.Helper()
	volume := w.name(p.name)
	w.cluster.Apply(w.t, w.ns, fmt.Sprintf(disk, volume, p.name))
	object := w.podOn(node, p)
	object.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: p.name},
	}}}
	w.createPod(object)
	w.awaitPod(p.name, "running", running)
	w.awaitNode(node, "with the volume", func(n *corev1.Node) bool {
		for _, attached := range n.Status.VolumesAttached {
			if contains(string(attached.Name), "^"+volume) {
				return true
			}
		}
		return false
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

// Phases 5 and 6 of machine-deletion-process: the Machine waits until its volumes
// are detached, and names them.
func TestAMachineWaitsForItsVolumes(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	m := w.running("m")[0]
	attachment := w.podWithDisk(m, pod{name: "db"})

	w.deleteMachines(m)

	w.awaitGone("db")
	w.awaitStep(m, v1alpha1.ReasonWaitingForVolumeDetach, "Waiting for the volumes of Node "+m+" since ",
		"Volumes are still attached to the Node:\n* PersistentVolumeClaims: "+w.ns+"/db")
	w.awaitSays(m, v1alpha1.ConditionVolumeDetachSucceeded, "False", v1alpha1.ReasonWaitingForVolumeDetach,
		"* PersistentVolumeClaims: "+w.ns+"/db")
	w.awaitEvent("m", "VolumesAttached")
	w.letGo(attachment, attachment.Name)

	w.awaitNothingLeft(m)
	w.awaitEvent("m", "VolumesDetached")
}

// Goal of machine-drain-rules: nobody waits for the volumes of pods that are not
// drained. They are still attached when the Node goes.
func TestVolumesOfSkippedPodsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	m := w.runningAs("m", stays())
	w.machineRule("agent", skips())
	agent := w.podWithDisk(m, pod{name: "agent", labels: of("agent")})
	db := w.podWithDisk(m, pod{name: "db"})

	w.deleteMachines(m)

	w.awaitStep(m, v1alpha1.ReasonWaitingForVolumeDetach, "* PersistentVolumeClaims: "+w.ns+"/db")
	w.letGo(db, db.Name)
	w.awaitEmptied(m)
	w.awaitSays(m, v1alpha1.ConditionVolumeDetachSucceeded, "True", v1alpha1.ReasonVolumesDetached,
		"No volume is attached to Node "+m+" that matters.")
	w.awaitPod("agent", "still running", running)
	if w.attachmentOf(w.name("agent")).Name != agent.Name {
		t.Error("the volume of the skipped pod is attached anew")
	}
	w.awaitEnd(m)
}

// Phase 5 of machine-deletion-process: an annotation leaves out the wait, and so
// does the end of its time.
func TestTheWaitForVolumesIsLeftOut(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change        func(*v1alpha1.Machine)
		reason, words string
	}{
		"by an annotation": {
			annotated(v1alpha1.ExcludeWaitForNodeVolumeDetachAnnotation, ""), v1alpha1.ReasonSkipped,
			"Volumes are not waited for: Annotation machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach is set.",
		},
		"by the end of its time": {
			func(m *v1alpha1.Machine) { m.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = new(int32(1)) }, v1alpha1.ReasonTimedOut,
			"was given up after 1s (nodeVolumeDetachTimeoutSeconds). Volumes are still attached to the Node:\n* PersistentVolumeClaims: ",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMachineWorld(t)
			m := w.runningAs("m", stays(), test.change)
			w.podWithDisk(m, pod{name: "db"})

			w.deleteMachines(m)

			w.awaitEmptied(m)
			w.awaitGone("db")
			w.awaitSays(m, v1alpha1.ConditionVolumeDetachSucceeded, "False", test.reason, test.words)
			w.awaitEnd(m)
		})
	}
}
