package scenario

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// A Machine of another cluster is made and deleted as one of this cluster: its
// node, pods, budgets, DaemonSets, namespaces and volumes are those over there.
func TestAMachineOfARemoteClusterLivesAndDies(t *testing.T) {
	t.Parallel()
	w := newMachineWorld(t)
	east := w.remote("east")
	name := east.running("m")
	if err := w.client.Get(w.ctx, client.ObjectKey{Name: name}, &corev1.Node{}); !apierrors.IsNotFound(err) {
		t.Errorf("node %s is looked for at home: %v, want that it is not found", name, err)
	}
	east.rule("portworx", ordered(100))
	east.labelNamespace(`"busy"`)
	east.rule("batch", v1alpha1.MachineDrainRuleDrain{Behavior: v1alpha1.DrainBehaviorWaitCompleted},
		func(p *v1alpha1.MachineDrainRulePodSelector) { p.NamespaceSelector = labelSelector(east.ns, "busy") })
	east.daemonSet("agent", name)
	east.pods(name, pod{name: "web"}, pod{name: "guarded", neverEvicted: true},
		pod{name: "report", labels: of("batch")}, pod{name: "storage", labels: of("portworx")})
	east.driver()
	attachment := east.podWithDisk(name, pod{name: "db"})

	w.deleteMachines(name)

	east.awaitGone("web")
	w.awaitStep(name, v1alpha1.ReasonDrainingNode,
		"Pods with eviction failed", "Cannot evict pod as it would violate the pod's disruption budget", east.ns+"/guarded",
		"Pods that are waited for to complete by themselves: "+east.ns+"/report",
		"Pods that are evicted after those of order 0 are gone", east.ns+"/storage")
	east.assertUnschedulable(name, true)
	east.awaitPod("storage", "still running", running)
	east.openBudget("guarded")
	east.awaitGone("guarded")
	east.awaitPod("storage", "still running", running)
	east.finish("report")
	east.awaitGone("storage")
	w.awaitStep(name, v1alpha1.ReasonWaitingForVolumeDetach, "PersistentVolumeClaims: "+east.ns+"/db")
	east.awaitPods("that of the DaemonSet and the finished one", func(pods []corev1.Pod) bool {
		return len(pods) == 2 && running(&pods[0]) && contains(pods[0].Name, "agent-") && pods[1].Name == "report"
	})
	east.letGo(attachment, attachment.Name)
	east.awaitNothingOf(name)
}

// driver has the volumes attached there that Kubernetes wants to be attached to
// nodes of this scenario, as a CSI driver does.
func (r *remote) driver() {
	r.t.Helper()
	list := &storagev1.VolumeAttachmentList{}
	r.must("list attachments", r.client.List(r.ctx, list))
	attached := client.RawPatch(types.MergePatchType, []byte(`{"status":{"attached":true}}`))
	follower := r.cluster.Follow(r.t, list, func(kind watch.EventType, object client.Object) {
		a, ok := object.(*storagev1.VolumeAttachment)
		if !ok || kind != watch.Added || !strings.HasPrefix(a.Spec.NodeName, r.prefix) {
			return
		}
		if err := r.client.Status().Patch(r.ctx, a, attached); err != nil {
			r.t.Errorf("attach a volume: %v", err)
		}
	})
	r.t.Cleanup(func() { follower.Stop(r.t) })
}
