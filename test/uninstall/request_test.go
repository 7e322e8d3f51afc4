package uninstall

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/uninstall"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// requesting is an API server that serves EvictionRequests, and a namespace of it.
type requesting struct {
	t  *testing.T
	c  *cluster.Cluster
	ns string
	// ours are what maintenances and turns of Ebbtide have left, theirs what others have asked.
	ours, theirs []client.Object
}

func newRequesting(t *testing.T) *requesting {
	t.Helper()
	if err := sandbox.CheckEvictionRequests(sandbox.RequestedVersion()); err != nil {
		t.Skip(err)
	}
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true, EvictionRequests: true})
	return &requesting{t: t, c: c, ns: c.Namespace(t)}
}

// create makes an object that is gone when the test ends, whoever holds it.
func (r *requesting) create(object client.Object) {
	r.t.Helper()
	if err := r.c.Client.Create(r.t.Context(), object); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		ctx := context.WithoutCancel(r.t.Context())
		_ = r.c.Client.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		if err := r.c.Client.Delete(ctx, object, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			r.t.Error(err)
		}
	})
}

// pod makes a pod that names a responder.
func (r *requesting) pod(name string) *corev1.Pod {
	r.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.ns, Name: name}, Spec: corev1.PodSpec{
		Containers:         []corev1.Container{{Name: "web", Image: "example.com/web"}},
		EvictionResponders: []corev1.EvictionResponder{{Name: "example.com/leader", Priority: new(int32(20000))}},
	}}
	pod.Spec.AutomountServiceAccountToken = new(false)
	r.create(pod)
	return pod
}

// asked makes the request of maintenances for a pod, once it was changed.
func (r *requesting) asked(pod *corev1.Pod, change func(*lifecyclev1alpha1.EvictionRequest)) *lifecyclev1alpha1.EvictionRequest {
	r.t.Helper()
	request := evictionrequest.New(pod)
	change(request)
	r.create(request)
	return request
}

// leave leaves everything that maintenances, turns and leaders leave, and what others ask.
func (r *requesting) leave() {
	r.t.Helper()
	asIs := func(*lifecyclev1alpha1.EvictionRequest) {}
	asked, failed := r.asked(r.pod("asked"), asIs), r.asked(r.pod("failed"), asIs)
	failed.Status.ObservedGeneration = new(int64(1))
	for _, one := range []lifecyclev1alpha1.EvictionConditionType{lifecyclev1alpha1.EvictionConditionFailed, lifecyclev1alpha1.EvictionConditionTargetEvicted} {
		condition := metav1.Condition{Type: string(one), Status: metav1.ConditionTrue, Reason: "NoFurtherResponder", LastTransitionTime: metav1.Now()}
		if one == lifecyclev1alpha1.EvictionConditionTargetEvicted {
			condition.Status, condition.Reason = metav1.ConditionFalse, "EvictionFailed"
		}
		failed.Status.Conditions = append(failed.Status.Conditions, condition)
	}
	if err := r.c.Client.Status().Update(r.t.Context(), failed); err != nil {
		r.t.Fatal(err)
	}
	withdrawn := r.asked(r.pod("withdrawn"), func(request *lifecyclev1alpha1.EvictionRequest) {
		*request = *evictionrequest.WithdrawnAt(request, time.Now(), true)
	})
	turn := evacuationOf(r.ns, "turn", v1alpha1.LifecycleInstigator)
	turn.Annotations = map[string]string{v1alpha1.EvictionTurnAnnotation: `{"name":"pod-1-turn","uid":"x","responder":"ebbtide.dev/deployment-surge"}`}
	r.create(turn)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: evictionrequest.LeaseNamespace, Name: evictionrequest.Lease}}
	r.create(lease)
	r.ours = []client.Object{asked, failed, withdrawn, turn, lease}

	others := r.pod("of-others")
	theirs := evictionrequest.New(others)
	theirs.Name, theirs.Spec.Requester = "upgrade", "example.com/upgrade"
	// It has our name, and somebody else asks by it.
	taken := evictionrequest.New(others)
	taken.Spec.Requester = "example.com/mallory"
	r.create(theirs)
	r.create(taken)
	r.theirs = []client.Object{theirs, taken, others}
}

func (r *requesting) release(c client.Client, yes bool) (out string, err error) {
	text := &bytes.Buffer{}
	err = uninstall.Releaser{Client: c, Now: time.Now, Yes: yes, Out: text, Again: "release"}.Run(r.t.Context())
	return text.String(), err
}

// assertLeft wants nothing of ours to be left, and what others have asked as it was.
func (r *requesting) assertLeft() {
	r.t.Helper()
	for _, object := range r.ours {
		if err := r.c.Client.Get(r.t.Context(), client.ObjectKeyFromObject(object), object); client.IgnoreNotFound(err) != nil || err == nil {
			r.t.Errorf("%T %s is still there with finalizers %v: %v", object, object.GetName(), object.GetFinalizers(), err)
		}
	}
	for _, object := range r.theirs {
		before := object.GetResourceVersion()
		if err := r.c.Client.Get(r.t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.GetResourceVersion() != before {
			r.t.Errorf("%T %s of others was touched: %v", object, object.GetName(), err)
		}
	}
}

// Release removes what maintenances have asked by EvictionRequests, whatever came of it, and
// the Lease of who answered; what others have asked it leaves alone. It may be killed behind
// any of its writes.
func TestReleaseTakesEvictionRequestsBack(t *testing.T) {
	r := newRequesting(t)
	r.leave()
	said, err := r.release(r.c.Client, false)
	for _, words := range []string{
		"EvictionRequest (3):\n", r.ours[0].GetName() + ": delete it\n", "Lease (1):\n  kube-system/ebbtide-eviction-controller: delete it\n",
		"Evacuation (1):\n  " + r.ns + "/" + r.ours[3].GetName() + ": delete it; remove finalizer evacuation.coordination.k8s.io/instigator_lifecycle.ebbtide.dev",
	} {
		if err != nil || !strings.Contains(said, words) || strings.Contains(said, "/upgrade") {
			t.Errorf("%v; it does not say %q, or tells of what others ask:\n%s", err, words, said)
		}
	}
	for left := range int32(20) {
		killed := &mortal{Client: r.c.Client, left: left}
		if _, err := r.release(killed, true); err == nil {
			break
		}
	}
	if said, err := r.release(r.c.Client, true); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	r.assertLeft()
}

// Who may not see or delete EvictionRequests is told so, and does the rest.
func TestReleaseWithoutTheRightToEvictionRequests(t *testing.T) {
	r := newRequesting(t)
	r.leave()
	rest := rbacv1.PolicyRule{
		APIGroups: []string{"", "apps", "policy", "ebbtide.dev", "admissionregistration.k8s.io", "coordination.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"},
	}
	_, blind := r.c.User(t, rest)
	said, err := r.release(blind, false)
	if err == nil || !strings.Contains(said, "Could not read every EvictionRequest: list evictionrequests.lifecycle.k8s.io: ") {
		t.Errorf("who may not see requests is told %v:\n%s", err, said)
	}
	_, reader := r.c.User(t, rest, rbacv1.PolicyRule{APIGroups: []string{"lifecycle.k8s.io"}, Resources: []string{"evictionrequests"}, Verbs: []string{"list"}})
	said, err = r.release(reader, true)
	const help = "3 objects could not be changed; ask a user with more rights to run release --yes again"
	if err == nil || !strings.Contains(err.Error(), help) || !strings.Contains(said, `cannot delete resource "evictionrequests" in API group "lifecycle.k8s.io"`) {
		t.Errorf("who may not delete requests is told %v:\n%s", err, said)
	}
	if said, err = r.release(r.c.Client, true); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	r.assertLeft()
}

// Where no maintenance is left, as when EvictionRequests were switched off in the middle, the
// hook takes the requests back itself, and need not be woken for that by anything else. The
// Lease of who answered goes at once where nobody has the right to it any more.
func TestTheHookTakesEvictionRequestsBack(t *testing.T) {
	r := newRequesting(t)
	hook := uninstall.Hook{Client: r.c.Client, Namespace: namespaceOfManagers(t, r.c), Mode: uninstall.Complete, Timeout: 2 * time.Minute, Out: &bytes.Buffer{}}
	installDoor(t, r.c)
	meta := metav1.ObjectMeta{Namespace: hook.Namespace, Name: "drainer-of-requests"}
	r.create(&corev1.ServiceAccount{ObjectMeta: meta})
	hook.ServiceAccount = meta.Name
	t.Cleanup(func() {
		door := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hook.Namespace, Name: "ebbtide-uninstall"}}
		_ = r.c.Client.Delete(context.WithoutCancel(t.Context()), door)
	})
	r.leave()
	// An Evacuation is taken down by managers, and there is none.
	r.dropTurn()
	held := r.ours[0]
	r.hold(held, `["example.com/audit"]`)
	done := make(chan error, 1)
	go func() { done <- hook.Run(context.WithoutCancel(t.Context())) }()
	patience.Eventually(t, "the hook to delete the request that somebody holds", func(ctx context.Context) (string, bool) {
		err := r.c.Client.Get(ctx, client.ObjectKeyFromObject(held), held)
		return fmt.Sprint(held.GetDeletionTimestamp(), err), err == nil && held.GetDeletionTimestamp() != nil
	})
	r.hold(held, "null")
	if err := <-done; err != nil {
		t.Errorf("%v\n%s", err, hook.Out)
	}
	r.assertLeft()
}

// dropTurn removes the Evacuation of a turn.
func (r *requesting) dropTurn() {
	r.t.Helper()
	turn := r.ours[3]
	r.hold(turn, "null")
	if err := r.c.Client.Delete(r.t.Context(), turn); err != nil {
		r.t.Fatal(err)
	}
}

// hold sets the finalizers of an object.
func (r *requesting) hold(object client.Object, finalizers string) {
	r.t.Helper()
	if err := r.c.Client.Patch(r.t.Context(), object, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"finalizers":%s}}`, finalizers))); err != nil {
		r.t.Fatal(err)
	}
}
