package uninstall

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/trace"
	"ebbtide.dev/ebbtide/internal/uninstall"
	"ebbtide.dev/ebbtide/test/cluster"
)

// Release may be interrupted behind any of its writes: the next one does the rest, and all
// is as if it had not been interrupted.
func TestReleaseIsKilledBehindAnyWrite(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	ns := c.Namespace(t)
	for n := range int32(100) {
		objects := traced(t, c, ns)
		mortal := &mortal{Client: c.Client, left: n}
		first := uninstall.Releaser{Client: mortal, Now: time.Now, Yes: true, Out: &bytes.Buffer{}, Again: "release"}
		killed := first.Run(t.Context())
		if died := atomic.LoadInt32(&mortal.left) < 0; died != (killed != nil) {
			t.Fatalf("it was killed behind write %d: %v", n, killed)
		}
		out := &bytes.Buffer{}
		if err := (uninstall.Releaser{Client: c.Client, Now: time.Now, Yes: true, Out: out, Again: "release"}).Run(t.Context()); err != nil {
			t.Fatalf("again, after it was killed behind write %d: %v\n%s", n, err, out)
		}
		assertReleased(t, c, objects)
		if killed == nil {
			if n < 7 {
				t.Errorf("it made only %d writes", n)
			}
			return
		}
	}
	t.Error("it writes on and on")
}

// mortal is a client that does nothing any more after so many writes.
type mortal struct {
	client.Client
	left int32
}

var errKilled = errors.New("killed")

func (m *mortal) write(do func() error) error {
	if atomic.AddInt32(&m.left, -1) < 0 {
		return errKilled
	}
	return do()
}

func (m *mortal) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return m.write(func() error { return m.Client.Patch(ctx, object, patch, options...) })
}

func (m *mortal) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return m.write(func() error { return m.Client.Delete(ctx, object, options...) })
}

func (m *mortal) Status() client.SubResourceWriter { return mortalStatus{m.Client.Status(), m} }

type mortalStatus struct {
	client.SubResourceWriter
	*mortal
}

func (m mortalStatus) Update(ctx context.Context, object client.Object, options ...client.SubResourceUpdateOption) error {
	return m.write(func() error { return m.SubResourceWriter.Update(ctx, object, options...) })
}

func (m mortalStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return m.write(func() error { return m.SubResourceWriter.Patch(ctx, object, patch, options...) })
}

func (m mortalStatus) Create(ctx context.Context, object, sub client.Object, options ...client.SubResourceCreateOption) error {
	return m.SubResourceWriter.Create(ctx, object, sub, options...)
}

// traced are objects of each kind with what a manager that is gone has left on them. The
// node was cordoned by its maintenance.
func traced(t *testing.T, c *cluster.Cluster, ns string) []client.Object {
	t.Helper()
	held := metav1.ObjectMeta{Namespace: ns, Name: "held"}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "held", Annotations: map[string]string{v1alpha1.CordonAnnotation: `{"wasUnschedulable":false,"holders":["held"]}`}}}
	node.Spec.Unschedulable = true
	node.Spec.Taints = []corev1.Taint{{Key: v1alpha1.DaemonSetTaint, Effect: corev1.TaintEffectNoSchedule}}
	b := &policyv1.PodDisruptionBudget{ObjectMeta: held}
	b.Annotations = map[string]string{v1alpha1.LockAnnotation: `{"holder":"nodemaintenance/held/held"}`}
	e := evacuationOf(ns, "held", v1alpha1.NodeMaintenanceInstigator)
	objects := []client.Object{node, b, e}
	manager := c.Mighty(t, cluster.Account.User())
	for _, object := range objects {
		if err := manager.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Client.Delete(context.WithoutCancel(t.Context()), object) })
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: v1alpha1.NodeDrained, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonNodeMaintenance}}
	if err := c.Client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	return append(objects, rollout(t, c, "held"), draining(t, c, "held"))
}

// evacuationOf is an Evacuation of a pod that does not exist.
func evacuationOf(ns, pod string, finalizers ...string) *v1alpha1.Evacuation {
	const uid = "6c4a1b0e-0000-4000-8000-000000000001"
	return &v1alpha1.Evacuation{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: uid + "-" + pod, Finalizers: finalizers},
		Spec:       v1alpha1.EvacuationSpec{PodRef: v1alpha1.LocalPodReference{Name: pod, UID: uid}},
	}
}

// assertReleased wants no object to bear anything, and removes them.
func assertReleased(t *testing.T, c *cluster.Cluster, objects []client.Object) {
	t.Helper()
	for _, object := range objects {
		err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if err != nil {
			continue
		}
		if f, found := trace.Of(object, trace.Facts{Now: time.Now()}); found {
			t.Errorf("%T %s still bears something: %s", object, object.GetName(), strings.Join(f.Does, "; "))
		}
		if node, ok := object.(*corev1.Node); ok && node.Spec.Unschedulable {
			t.Errorf("the node is cordoned: %+v", node.Spec)
		}
		if err := c.Client.Delete(t.Context(), object); err != nil {
			t.Error(err)
		}
	}
}

// What somebody else holds the hook cannot end. It says who holds it.
func TestLongAnEvacuationThatOthersHold(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	hook := uninstall.Hook{Client: c.Client, Namespace: namespaceOfManagers(t, c), Mode: uninstall.Complete, Timeout: 8 * time.Second, Out: &bytes.Buffer{}}
	installDoor(t, c)
	ns := c.Namespace(t)
	e := evacuationOf(ns, "web", v1alpha1.InstigatorFinalizerPrefix+"jane.example.com", "example.com/audit")
	if err := c.Client.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.Finalizers = nil
		_ = c.Client.Update(context.WithoutCancel(t.Context()), e)
		_ = c.Client.Delete(context.WithoutCancel(t.Context()), e)
	})

	err := hook.Run(t.Context())

	want := "still in progress (1): Evacuation " + ns + "/" + e.Name + " (finalizers example.com/audit). If no manager is running"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil || len(e.Finalizers) != 1 {
		t.Errorf("it is held by %v, %v", e.Finalizers, err)
	}
}
