package machine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/workload"
	"ebbtide.dev/ebbtide/test/fault"
)

var elsewhere = types.NamespacedName{Namespace: "fleet", Name: "shop"}

// listening is a reconciler that only notes whom it would wake. Machine one runs
// on node and is being deleted, two and three are of the same Cluster; four is of
// another one and refers to the object that one refers to, in another namespace.
func listening(t *testing.T) (r *reconciler, woken func() []string) {
	t.Helper()
	one := aMachine("one")
	one.Status.NodeRef = &v1alpha1.MachineNodeReference{Name: "node"}
	two := aMachine("two")
	two.Spec.ProviderID = "rack:///two"
	three := aMachine("three")
	four := aMachine("four")
	four.Namespace, four.Spec.ClusterName, four.Spec.InfrastructureRef.Name = "other", "else", "one"
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "shop"}}
	cluster.Spec.ControlPlane.Ref = &v1alpha1.ObjectReference{APIVersion: "control.example.com/v1", Kind: "Plane", Name: "plane"}
	server := fault.NewServer(t, one, two, three, four, cluster)

	r = newReconciler(server.Manager, server.Manager, nil, clock.RealClock{}, newMetrics(prometheus.NewRegistry(), time.Now))
	r.views.Watch(client.ObjectKeyFromObject(one), workload.Place{Node: "node"}, view{})
	user := aPod("user")
	user.OwnerReferences = []metav1.OwnerReference{{Kind: kindDaemonSet, Name: "agent", Controller: new(true)}}
	user.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	r.views.surround(client.ObjectKeyFromObject(one), surroundingsOf([]corev1.Pod{*user}))
	r.views.Watch(client.ObjectKeyFromObject(two), workload.Place{}, view{})
	var names []string
	r.wake = func(machines ...types.NamespacedName) {
		for _, machine := range machines {
			names = append(names, machine.Name)
		}
	}
	return r, func() []string {
		slices.Sort(names)
		return slices.Compact(names)
	}
}

func changed(r *reconciler, kind string, cluster types.NamespacedName, namespace, name string) {
	objects := map[string]client.Object{
		kindNamespace: &corev1.Namespace{}, kindClaim: &corev1.PersistentVolumeClaim{}, kindDaemonSet: &appsv1.DaemonSet{},
	}
	object := objects[kind]
	object.SetNamespace(namespace)
	object.SetName(name)
	r.surroundingsChanged(kind)(cluster, nil, object)
}

func aMachine(name string) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, UID: types.UID(name), Generation: 1},
		Spec: v1alpha1.MachineSpec{
			ClusterName:       "shop",
			InfrastructureRef: v1alpha1.ObjectReference{APIVersion: racks, Kind: "Rack", Name: name},
		},
	}
}

func aNode(changes ...func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
	for _, change := range changes {
		change(node)
	}
	return node
}

var (
	attachment = &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{NodeName: "node"}}
	disk       = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}}
)

var happenings = map[string]struct {
	happens func(*reconciler)
	want    []string
}{
	"a pod of the node goes": {
		func(r *reconciler) { r.podChanged(workload.Local, aPod("a"), nil) }, []string{"one"},
	},
	"a pod of a node of that name in another cluster goes": {
		func(r *reconciler) { r.podChanged(elsewhere, aPod("a"), nil) }, nil,
	},
	"a pod comes that has no node": {
		func(r *reconciler) {
			pod := aPod("a")
			pod.Spec.NodeName = ""
			r.podChanged(workload.Local, nil, pod)
		}, nil,
	},
	"a pod of another node goes": {
		func(r *reconciler) {
			pod := aPod("a")
			pod.Spec.NodeName = "other"
			r.podChanged(workload.Local, pod, nil)
		}, nil,
	},
	"a pod changes in nothing that the cache keeps": {
		func(r *reconciler) {
			pod := aPod("a")
			pod.ResourceVersion = "2"
			r.podChanged(workload.Local, aPod("a"), pod)
		}, nil,
	},
	"an attachment comes": {
		func(r *reconciler) { r.attachmentChanged(workload.Local, nil, attachment) }, []string{"one"},
	},
	"a volume comes": {
		func(r *reconciler) { r.volumeChanged(workload.Local, nil, disk) }, []string{"one"},
	},
	"a volume comes in another cluster": {
		func(r *reconciler) { r.volumeChanged(elsewhere, nil, disk) }, nil,
	},
	"the namespace of a pod of the node changes": {
		func(r *reconciler) { changed(r, kindNamespace, workload.Local, "", "shop") }, []string{"one"},
	},
	"a namespace of no pod of the node changes": {
		func(r *reconciler) { changed(r, kindNamespace, workload.Local, "", "attic") }, nil,
	},
	"that namespace of another cluster changes": {
		func(r *reconciler) { changed(r, kindNamespace, elsewhere, "", "shop") }, nil,
	},
	"the claim of a pod of the node changes": {
		func(r *reconciler) { changed(r, kindClaim, workload.Local, "shop", "data") }, []string{"one"},
	},
	"a claim of no pod of the node changes": {
		func(r *reconciler) { changed(r, kindClaim, workload.Local, "attic", "data") }, nil,
	},
	"the DaemonSet of a pod of the node changes": {
		func(r *reconciler) { changed(r, kindDaemonSet, workload.Local, "shop", "agent") }, []string{"one"},
	},
	"a DaemonSet without a pod on the node changes": {
		func(r *reconciler) { changed(r, kindDaemonSet, workload.Local, "shop", "proxy") }, nil,
	},
	"a node's heartbeat": {
		func(r *reconciler) {
			r.nodeChanged(workload.Local, aNode(), aNode(func(n *corev1.Node) {
				n.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
			}))
		}, nil,
	},
	"a node becomes unreachable": {
		func(r *reconciler) {
			r.nodeChanged(workload.Local, aNode(), aNode(func(n *corev1.Node) {
				n.Status.Conditions[0].Status = corev1.ConditionUnknown
			}))
		}, []string{"one"},
	},
	"a volume of the node is detached": {
		func(r *reconciler) {
			r.nodeChanged(workload.Local, aNode(func(n *corev1.Node) {
				n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "disk"}}
			}), aNode())
		}, []string{"one"},
	},
	"a node registers that a Machine waits for": {
		func(r *reconciler) {
			r.nodeChanged(workload.Local, nil, aNode(func(n *corev1.Node) { n.Name, n.Spec.ProviderID = "new", "rack:///two" }))
		}, []string{"two"},
	},
	"infrastructure changes": {
		func(r *reconciler) { r.objectChanged(rackKind.GroupKind(), elsewhereOf("one")) }, []string{"one"},
	},
	"an object of that name and another kind changes": {
		func(r *reconciler) { r.objectChanged(bootsKind.GroupKind(), elsewhereOf("one")) }, nil,
	},
	"the control plane changes": {
		func(r *reconciler) {
			plane := kindOf(v1alpha1.ObjectReference{APIVersion: "control.example.com/v1beta1", Kind: "Plane"})
			r.objectChanged(plane.GroupKind(), elsewhereOf("plane"))
		}, []string{"one", "three", "two"},
	},
	"a Machine's own status": {
		func(r *reconciler) {
			now := aMachine("three")
			now.Status.Phase = v1alpha1.MachineRunning
			r.wake(r.machineChanged(aMachine("three"), now)...)
		}, nil,
	},
	"a Machine's hook": {
		func(r *reconciler) {
			now := aMachine("three")
			now.Annotations = map[string]string{v1alpha1.PreDrainHookAnnotationPrefix: "x"}
			r.wake(r.machineChanged(aMachine("three"), now)...)
		}, []string{"three"},
	},
	"a control-plane Machine is deleted": {
		func(r *reconciler) {
			was := aMachine("three")
			was.Labels = map[string]string{v1alpha1.ControlPlaneLabel: ""}
			now := was.DeepCopy()
			now.DeletionTimestamp = new(metav1.Now())
			r.wake(r.machineChanged(was, now)...)
		}, []string{"one", "three", "two"},
	},
	"the Machine goes that has the Node another one waits for": {
		func(r *reconciler) {
			gone := aMachine("gone")
			gone.Spec.ProviderID = "rack:///two"
			r.wake(r.machineChanged(gone, nil)...)
		}, []string{"gone", "two"},
	},
	"a Cluster is paused": {
		func(r *reconciler) {
			was := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "shop", Generation: 1}}
			now := was.DeepCopy()
			now.Generation = 2
			r.wake(r.clusterChanged(was, now)...)
		}, []string{"one", "three", "two"},
	},
	"a rule changes": {
		func(r *reconciler) {
			r.wake(r.ruleChanged(nil, &v1alpha1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet"}})...)
		}, []string{"one"},
	},
	"a rule of another namespace changes": {
		func(r *reconciler) {
			r.wake(r.ruleChanged(nil, &v1alpha1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Namespace: "other"}})...)
		}, nil,
	},
}

// Whatever can change a decision wakes the Machines that it matters to, and
// nothing else wakes anybody.
func TestEventsWakeTheMachinesThatTheyMatterTo(t *testing.T) {
	t.Parallel()
	for name, test := range happenings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, woken := listening(t)
			test.happens(r)
			if diff := cmp.Diff(test.want, woken()); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}

func elsewhereOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "fleet", Name: name}
}

// A thousand pods that go at once cost one pass, not a thousand.
func TestABurstOfEventsCostsOnePass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer q.ShutDown()
		for range 1000 {
			wake(q, []types.NamespacedName{key})
		}
		time.Sleep(2 * coalesce)
		synctest.Wait()
		if q.Len() != 1 {
			t.Errorf("%d passes are due, want 1", q.Len())
		}
	})
}

// Of a status of which only the words change, one a second is written.
func TestTheWordsOfAStatusAreWrittenOnceASecond(t *testing.T) {
	inWorld(t, fleet(), func(w *world) {
		w.running()
		w.refuseEvictions(true)
		w.must(w.api.Delete(t.Context(), w.machine()))
		w.settle()
		before := len(w.api.Writes())
		for i := range 20 {
			w.must(w.api.Create(t.Context(), aPod("more-"+string(rune('a'+i)))))
			w.step()
		}
		statuses := 0
		for _, write := range w.api.Writes()[before:] {
			if write == "patch status of Machine one" {
				statuses++
			}
		}
		// Twenty steps take two seconds.
		if statuses < 1 || statuses > 3 {
			t.Errorf("%d statuses were written in two seconds, want one a second", statuses)
		}
	})
}

// A failure is waited out longer and longer, be it of a read, a record or an act.
func TestFailuresAreSpacedOut(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]string{
		"a read":   "get Rack one",
		"a record": "patch status of Machine one",
		"an act":   "delete Rack one",
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fleet(), func(w *world) {
				w.running()
				w.must(w.api.Delete(t.Context(), w.machine()))
				w.refuse(refused, forbidden)
				var last time.Duration
				for range 20 {
					w.step()
					result, err := w.manager.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: key})
					w.must(err)
					last = result.RequeueAfter
				}
				if last != lastRetry {
					t.Errorf("after many failures the next pass is due after %s, want %s", last, lastRetry)
				}
			})
		})
	}
}
