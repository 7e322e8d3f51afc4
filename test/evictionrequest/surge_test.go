package evictionrequest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

const (
	surger          = v1alpha1.DeploymentSurgeResponder
	surgeAnnotation = v1alpha1.EvacuatorAnnotationPrefix + v1alpha1.DeploymentEvacuatorClass
	canceled        = "Failed=True/CanceledDueToNoRequesters: All requesters have withdrawn., TargetEvicted=False/EvictionFailed"
)

// named has the pods of a Deployment name our responder, annotated has them register our
// evacuator.
func named(d *appsv1.Deployment) {
	d.Spec.Template.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: surger, Priority: new(int32(10000))}}
}

func annotated(d *appsv1.Deployment) {
	d.Spec.Template.Annotations = map[string]string{surgeAnnotation: "10000/controller"}
}

// followed has the pods name a responder whose turn is after ours.
func followed(d *appsv1.Deployment) {
	spec := &d.Spec.Template.Spec
	spec.EvictionResponders = append(spec.EvictionResponders, corev1.EvictionResponder{Name: "example.com/next", Priority: new(int32(5000))})
}

// annotatedItself has the Deployment ask for that, and its pods name nobody.
func annotatedItself(d *appsv1.Deployment) {
	d.Annotations = map[string]string{surgeAnnotation: "10000/controller"}
}

// serve has an application of one replica run behind a Service, and returns its pod. It
// runs on a node to which no other pod goes after that until letNew is called.
func (w *world) serve(edit ...func(*appsv1.Deployment)) (pod *corev1.Pod, letNew func()) {
	w.t.Helper()
	labels := map[string]string{"app": "web"}
	meta := metav1.ObjectMeta{Namespace: w.ns, Name: "web"}
	spec := w.newPod("web").Spec
	spec.NodeName, spec.TerminationGracePeriodSeconds = "", new(int64(1))
	d := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1))}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
	}}
	for _, one := range edit {
		one(d)
	}
	w.must(w.client.Create(w.ctx, d))
	w.must(w.client.Create(w.ctx, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}}))
	w.eventually("web to serve", func() (bool, any) {
		ready, err := w.cluster.ReadyEndpoints(w.ctx, client.ObjectKeyFromObject(d))
		w.must(err)
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(d), d))
		return ready == 1 && d.Status.ReadyReplicas == 1, ready
	})
	w.cordon(true)
	return &w.pods()[0], func() { w.cordon(false) }
}

func (w *world) cordon(cordoned bool) {
	w.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.cluster.Nodes[0]}}
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, cordoned)
	w.must(w.client.Patch(w.ctx, node, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

// pods are those of the application.
func (w *world) pods() []corev1.Pod {
	w.t.Helper()
	list := &corev1.PodList{}
	w.must(w.client.List(w.ctx, list, client.InNamespace(w.ns), client.MatchingLabels{"app": "web"}))
	return list.Items
}

// awaitDetached waits until a pod is out of its ReplicaSet, and a replacement is there.
func (w *world) awaitDetached(pod *corev1.Pod) {
	w.t.Helper()
	w.eventually(pod.Name+" to be detached", func() (bool, any) {
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
		return pod.Annotations[v1alpha1.SurgeAnnotation] != "" && len(pod.OwnerReferences) == 0 && len(w.pods()) == 2, pod.ObjectMeta
	})
}

// awaitBack waits until a pod is as it was, alone, and nothing tells of its evacuation.
func (w *world) awaitBack(pod *corev1.Pod) {
	w.t.Helper()
	w.eventually(pod.Name+" to be back", func() (bool, any) {
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
		back := pod.Annotations[v1alpha1.SurgeAnnotation] == "" && len(pod.OwnerReferences) == 1 && pod.DeletionTimestamp == nil
		return back && len(w.pods()) == 1, pod.ObjectMeta
	})
	w.awaitNoEvacuation()
}

func (w *world) evacuations() []v1alpha1.Evacuation {
	w.t.Helper()
	list := &v1alpha1.EvacuationList{}
	w.must(w.client.List(w.ctx, list, client.InNamespace(w.ns)))
	return list.Items
}

func (w *world) awaitNoEvacuation() {
	w.t.Helper()
	w.eventually("no evacuation", func() (bool, any) { return len(w.evacuations()) == 0, w.evacuations() })
}

// awaitWord waits until a responder says something about a pod.
func (w *world) awaitWord(pod, responder, words string) *lifecyclev1alpha1.Eviction {
	w.t.Helper()
	e := &lifecyclev1alpha1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "pod-1-" + pod}}
	w.eventually(responder+" to say "+words, func() (bool, any) {
		if err := w.client.Get(w.ctx, client.ObjectKeyFromObject(e), e); err != nil {
			return false, err
		}
		own := core.ResponderOf(&e.Status, responder)
		if own == nil || own.Message == nil {
			return false, turnsOf(e)
		}
		return strings.Contains(*own.Message, words), *own.Message
	})
	return e
}

// A pod that names our responder is replaced before it leaves, whoever asks for it.
func TestAPodIsReplacedByItsResponder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod, letNew := w.serve(named)
	endpoints := w.cluster.WatchEndpoints(t, client.ObjectKey{Namespace: w.ns, Name: "web"})
	request := w.ask("example.com/upgrade", pod)
	w.awaitDetached(pod)
	w.awaitEviction("pod-1-"+pod.Name, awaiting, surger+" Active, "+evictor+" Inactive")
	w.awaitWord(pod.Name, surger, "Evacuator deployment.apps.k8s.io is to move the pod.")
	e := w.evacuations()[0]
	if !slices.Equal(e.Finalizers, []string{v1alpha1.LifecycleInstigator}) || !strings.Contains(e.Annotations[v1alpha1.EvictionTurnAnnotation], `"pod-1-`+pod.Name+`"`) {
		t.Errorf("the evacuation is asked for by %v, for %v", e.Finalizers, e.Annotations)
	}
	letNew()
	w.awaitGone(pod)
	w.awaitEviction("pod-1-"+pod.Name, gone(pod.Name), surger+" Completed, "+evictor+" Inactive")
	w.awaitRequest(request, gone(pod.Name))
	w.awaitWord(pod.Name, surger, "Pod "+pod.Name+" is gone.")
	w.awaitNoEvacuation()
	endpoints.AssertAtLeast(t, 1)
}

// Who withdraws in the middle has the pod as it was.
func TestASurgeIsWithdrawnInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]func(*appsv1.Deployment){"of the responder": named, "of the evictor": annotatedItself} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			pod, letNew := w.serve(one)
			request := w.ask("example.com/upgrade", pod)
			w.awaitDetached(pod)
			w.withdraw(request)
			w.awaitRequest(request, canceled)
			w.awaitBack(pod)
			letNew()
		})
	}
}

// A pod that cannot be replaced is left to who comes next, with the reason.
func TestAPodThatCannotBeReplacedIsHandedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claim()
	pod, letNew := w.serve(named, followed, withClaim)
	w.ask("example.com/upgrade", pod)
	w.awaitEviction("pod-1-"+pod.Name, awaiting, surger+" Completed, example.com/next Active, "+evictor+" Inactive")
	w.awaitWord(pod.Name, surger, "Deployment web cannot surge: only one node can mount its volume claim data, which is ReadWriteOnce.")
	w.awaitBack(pod)
	w.must(w.reports("pod-1-"+pod.Name, "example.com/next", true))
	letNew()
	w.awaitGone(pod)
	w.awaitEviction("pod-1-"+pod.Name, gone(pod.Name), surger+" Completed, example.com/next Completed, "+evictor+" Completed")
	w.awaitNoEvacuation()
}

const volume = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: /%[1]s}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  volumeName: %[1]s
  resources: {requests: {storage: 1Gi}}
`

// claim makes a volume that one node can mount, and a claim of it.
func (w *world) claim() {
	w.t.Helper()
	w.cluster.Apply(w.t, w.ns, fmt.Sprintf(volume, w.ns))
}

func withClaim(d *appsv1.Deployment) {
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
}
