package scenario

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// share is a volume over the network that no claim has yet.
const share = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  capacity: {storage: 1Gi}
  accessModes: [%[2]s]
  persistentVolumeReclaimPolicy: Retain
  nfs: {server: 192.0.2.1, path: /%[1]s}
`

// serveWithVolume creates an application of one pod on a claim named data, under a budget
// that lets none of its pods go before another one serves.
func (w *world) serveWithVolume(mode corev1.PersistentVolumeAccessMode) {
	w.t.Helper()
	volume := w.name("data")
	w.cluster.Apply(w.t, w.ns, fmt.Sprintf(share, volume, mode))
	await(w, "available", &corev1.PersistentVolume{}, volume, func(v *corev1.PersistentVolume) bool {
		return v.Status.Phase == corev1.VolumeAvailable
	})
	w.create(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{mode}, StorageClassName: new(""), VolumeName: volume,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}})
	w.serve(app{name: "web", replicas: 1, ready: "0s", edit: func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}}
	}})
	w.createBudget("web", policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))})
}

// The replacement of a pod could not start while the pod has its volume.
func TestLongADeploymentWithAVolumeOfOneNodeDoesNotSurge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nodes, letNew := w.oldAndNew()
	w.serveWithVolume(corev1.ReadWriteOnce)
	pod := w.thePod("web")
	letNew()

	w.maintain("upgrade", v1alpha1.StageDrain, nodes[:1])

	w.awaitEventNote(pod.Name, "NotSurged", "Deployment web cannot surge: only one node can mount its volume claim data, which is ReadWriteOnce.")
	w.awaitPod(pod.Name, "untouched", func(p *corev1.Pod) bool { return p.Annotations[v1alpha1.SurgeAnnotation] == "" })
	w.awaitBlocker("upgrade", nodes[0], v1alpha1.BlockerPDBUnsatisfiable, "PodDisruptionBudget web")
}

// awaitEventNote waits for an event about a pod, on the pod or its Evacuation.
func (w *world) awaitEventNote(pod, reason, begins string) {
	w.t.Helper()
	w.eventually(reason+" of "+pod+": "+begins, func() (bool, any) {
		list := &eventsv1.EventList{}
		w.must("list events", w.client.List(w.ctx, list, client.InNamespace(w.ns)))
		var seen []string
		for i := range list.Items {
			e := &list.Items[i]
			if contains(e.Regarding.Name, pod) && e.Reason == reason && contains(e.Note, begins) {
				return true, nil
			}
			seen = append(seen, e.Reason+" of "+e.Regarding.Name+": "+e.Note)
		}
		return false, seen
	})
}
