package evictionrequest

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	lifecycleac "k8s.io/client-go/applyconfigurations/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/cluster"
)

const leader = "example.com/leader"

// turnOf is what somebody is told who evicts a pod while its responder has the turn.
func turnOf(pod *corev1.Pod, says string) string {
	return "eviction in progress: responder " + leader + " has its turn to move pod " + pod.Name + " (Eviction pod-1-" + pod.Name +
		"); try again until the pod is gone" + says
}

// evicts is an eviction as kubectl drain asks for it, by name.
func (w *world) evicts(user client.Client, pod *corev1.Pod) error {
	return user.SubResource("eviction").Create(w.ctx, pod, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
}

// guarded makes a running pod that a budget holds until it is opened: what the webhook has read
// may be a moment old, and nobody is to get through by being early.
func (w *world) guarded(responder string) (pod *corev1.Pod, open func()) {
	w.t.Helper()
	pod = w.pod("web-0", responder)
	b := w.budget(1)
	w.eventually("the pod to run and its budget to know it", func() (bool, any) {
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(b), b))
		return pod.Status.Phase == corev1.PodRunning && b.Status.CurrentHealthy == 1, b.Status
	})
	return pod, func() {
		w.t.Helper()
		w.must(w.client.Patch(w.ctx, b, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"minAvailable":0}}`))))
		w.eventually("the budget to be open", func() (bool, any) {
			w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(b), b))
			return b.Status.DisruptionsAllowed == 1 && b.Status.ObservedGeneration == b.Generation, b.Status
		})
	}
}

// awaitHeld tries as drainers do until the answer is the one wanted. The pod stays.
func (w *world) awaitHeld(user client.Client, pod *corev1.Pod, words string) {
	w.t.Helper()
	w.eventually("an eviction to be told "+words, func() (bool, any) {
		err := w.evicts(user, pod)
		return apierrors.IsTooManyRequests(err) && strings.HasSuffix(err.Error(), words), err
	})
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
	if pod.DeletionTimestamp != nil {
		w.t.Errorf("pod %s terminates", pod.Name)
	}
}

// Who drains a node with kubectl beside a request waits for the responder that has its turn, is
// told what that says, and goes on when it has completed.
func TestKubectlDrainBesideARequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod, open := w.guarded(leader + " 20000")
	_, drainer := w.cluster.User(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}})
	w.ask("example.com/upgrade", pod)
	w.awaitEviction("pod-1-web-0", awaiting, leader+" Active, "+evictor+" Inactive")
	w.awaitHeld(drainer, pod, turnOf(pod, ""))
	open()
	w.must(w.reports("pod-1-web-0", leader, false))
	w.awaitHeld(drainer, pod, turnOf(pod, ". It says: moving"))
	if all := w.evacuations(); len(all) != 0 {
		t.Errorf("the pod is evacuated besides: %v", all)
	}
	w.must(w.reports("pod-1-web-0", leader, true))
	w.eventually("the drainer to be done", func() (bool, any) {
		err := w.evicts(drainer, pod)
		return err == nil || apierrors.IsNotFound(err), err
	})
	w.awaitGone(pod)
}

// A replica that does not lead answers as the leader would. Here somebody has the Lease for an
// hour, and another controller gives turns.
func TestLongAReplicaThatDoesNotLeadHoldsEvictions(t *testing.T) {
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, Replicas: true, Nodes: 1})
	now := metav1.NewMicroTime(time.Now())
	taken := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Account.Namespace, Name: kube.LeaderLease},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("somebody"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now, RenewTime: &now, LeaseTransitions: new(int32(0)),
		},
	}
	// Another replica may have been before us.
	w.must(client.IgnoreAlreadyExists(w.client.Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: taken.Namespace}})))
	w.must(client.IgnoreNotFound(w.client.Delete(w.ctx, taken.DeepCopy())))
	w.must(w.client.Create(w.ctx, taken))
	t.Cleanup(func() { _ = w.client.Delete(w.ctx, taken) })
	replica := w.cluster.StartReplica(t)
	pod, open := w.guarded(surger + " 10000")
	w.began = metav1.NewTime(time.Now().Truncate(time.Second))
	target := lifecycleac.EvictionTarget().WithPod(lifecycleac.EvictionPodReference().WithName(pod.Name).WithUID(pod.UID))
	w.must(w.client.Apply(w.ctx, lifecycleac.Eviction("theirs", w.ns).WithSpec(lifecycleac.EvictionSpec().WithTarget(target)), client.FieldOwner(another)))
	const active, inactive = lifecyclev1alpha1.ResponderStateActive, lifecyclev1alpha1.ResponderStateInactive
	w.gives("theirs", active, inactive)
	held := "eviction in progress: responder " + surger + " has its turn to move pod web-0 (Eviction theirs); try again until the pod is gone"
	w.awaitHeld(w.client, pod, held)
	open()
	w.awaitHeld(w.client, pod, held)
	own := lifecycleac.ResponderStatus().WithName(surger).WithHeartbeatTime(metav1.Now()).WithCompletionTime(metav1.Now())
	w.must(w.client.Status().Apply(w.ctx, lifecycleac.Eviction("theirs", w.ns).WithStatus(lifecycleac.EvictionStatus().WithResponders(own)),
		client.FieldOwner(surger), client.ForceOwnership))
	w.gives("theirs", lifecyclev1alpha1.ResponderStateCompleted, active)
	w.eventually("the pod to be evicted in the turn of the evictor", func() (bool, any) {
		err := w.evicts(w.client, pod)
		return err == nil || apierrors.IsNotFound(err), err
	})
	if replica.Leads(t) {
		t.Error("the replica leads")
	}
}

// Who may write the status of Evictions and nothing else can hold drainers up as long as they
// write, but only where the pod names the responder, and in its turn; and can let them through,
// as the responder itself could. The pod may be deleted all the while.
func TestAStatusIsForgedToHoldDrainersUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod, open := w.guarded(leader + " 20000")
	bare := w.newPod("db-0")
	bare.Labels = nil
	w.must(w.client.Create(w.ctx, bare))
	w.ask("example.com/upgrade", pod)
	w.awaitEviction("pod-1-web-0", awaiting, leader+" Active, "+evictor+" Inactive")
	_, mallory := w.cluster.User(t, rbacv1.PolicyRule{APIGroups: []string{"lifecycle.k8s.io"}, Resources: []string{"evictions/status"}, Verbs: []string{"patch"}})
	says := func(own *lifecycleac.ResponderStatusApplyConfiguration) error {
		return mallory.Status().Apply(w.ctx, lifecycleac.Eviction("pod-1-web-0", w.ns).WithStatus(lifecycleac.EvictionStatus().WithResponders(own)),
			client.FieldOwner("mallory"), client.ForceOwnership)
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	own := lifecycleac.ResponderStatus().WithName(leader).WithHeartbeatTime(now)
	w.must(says(own.WithMessage("one\ntwo\x1b[2J" + strings.Repeat("x", 3000))))
	w.awaitHeld(w.client, pod, turnOf(pod, ". It says: one two [2J"+strings.Repeat("x", 286)+"…"))
	open()
	w.must(w.evicts(w.client, bare))
	w.must(says(own.WithCompletionTime(now)))
	w.awaitGone(pod)
}

// another is who plays a controller that is not Ebbtide's.
const another = "evictionrequest-controller"

// gives has another controller give turns in an Eviction, the first of which is active.
func (w *world) gives(eviction string, states ...lifecyclev1alpha1.ResponderStateType) {
	w.t.Helper()
	status := lifecycleac.EvictionStatus()
	for i, name := range []string{surger, evictor} {
		status.WithTargetResponders(lifecycleac.TargetResponder().WithName(name).WithPriority([]int32{10000, 100}[i]).WithState(states[i]))
		one := lifecycleac.ResponderStatus().WithName(name)
		if states[i] != lifecyclev1alpha1.ResponderStateInactive {
			one.WithStartTime(w.began)
		}
		status.WithResponders(one)
	}
	w.must(w.client.Status().Apply(w.ctx, lifecycleac.Eviction(eviction, w.ns).WithStatus(status), client.FieldOwner(another), client.ForceOwnership))
}
