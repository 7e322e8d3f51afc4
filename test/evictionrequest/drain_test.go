package evictionrequest

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	lifecycleac "k8s.io/client-go/applyconfigurations/lifecycle/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
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

// awaitHeld tries as drainers do until the answer is the one wanted: what the webhook has read
// may be a moment old. The pod is there, and stays.
func (w *world) awaitHeld(user client.Client, pod *corev1.Pod, words string) {
	w.t.Helper()
	w.eventually("an eviction to be told "+words, func() (bool, any) {
		err := w.evicts(user, pod)
		if err == nil {
			w.t.Fatalf("pod %s is evicted, want it to wait: %s", pod.Name, words)
		}
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
	// The evictor cannot evict it, so that the drainer must.
	pod := w.newPod("web-0", leader+" 20000")
	w.must(w.client.Create(w.ctx, pod))
	b := w.budget(1)
	w.eventually("the pod to run", func() (bool, any) {
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(pod), pod))
		return pod.Status.Phase == corev1.PodRunning, pod.Status.Phase
	})
	_, drainer := w.cluster.User(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}})
	w.ask("example.com/upgrade", pod)
	w.awaitEviction("pod-1-web-0", awaiting, leader+" Active, "+evictor+" Inactive")
	// Until then a budget refuses it, so that it cannot get through by being early.
	w.eventually("an eviction to wait for the responder", func() (bool, any) {
		err := w.evicts(drainer, pod)
		return err != nil && strings.HasSuffix(err.Error(), turnOf(pod, "")), err
	})
	w.must(w.client.Patch(w.ctx, b, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"minAvailable":0}}`))))
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

// A responder that evicts the pod in its own turn is not held up by itself, if it says who it is.
func TestAResponderEvictsByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod := w.pod("web-0", leader+" 20000")
	request := w.ask("example.com/upgrade", pod)
	w.awaitEviction("pod-1-web-0", awaiting, leader+" Active, "+evictor+" Inactive")
	w.awaitHeld(w.client, pod, turnOf(pod, ""))
	own := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.ns, Name: pod.Name, Annotations: map[string]string{v1alpha1.EvictionRequestAnnotation: leader},
	}}
	w.must(w.client.SubResource("eviction").Create(w.ctx, pod, own))
	w.awaitGone(pod)
	w.eventually("the request to have succeeded", func() (bool, any) {
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(request), request))
		return tells(request.Status.Conditions) == gone("web-0"), tells(request.Status.Conditions)
	})
}

// A replica that does not lead answers as the leader does.
func TestAReplicaThatDoesNotLeadHoldsEvictions(t *testing.T) {
	t.Parallel()
	w := bareWorld(t, cluster.Spec{EvictionRequests: true, Replicas: true, Nodes: 1})
	first := w.cluster.StartReplica(t)
	w.awaitState(first, core.StateActive)
	pod := w.pod("web-0", leader+" 20000")
	w.ask("example.com/upgrade", pod)
	w.awaitEviction("pod-1-web-0", awaiting, leader+" Active, "+evictor+" Inactive")
	w.awaitHeld(w.client, pod, turnOf(pod, ""))
	second := w.cluster.StartReplica(t)
	first.Kill()
	// The other one has the webhook before it has the Lease.
	w.awaitHeld(w.client, pod, turnOf(pod, ""))
	w.awaitState(second, core.StateActive)
	w.awaitHeld(w.client, pod, turnOf(pod, ""))
}

// Who may write the status of Evictions and nothing else can hold drainers up as long as they
// write, but only where the pod names the responder, and in its turn; and can let them through,
// as the responder itself could. The pod may be deleted all the while.
func TestAStatusIsForgedToHoldDrainersUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod, bare := w.pod("web-0", leader+" 20000"), w.pod("db-0")
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
	w.must(w.evicts(w.client, bare))
	w.must(says(own.WithCompletionTime(now)))
	w.awaitGone(pod)
}
