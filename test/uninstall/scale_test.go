// Package uninstall removes what Ebbtide has left from a real API server on which no manager
// acts, and checks such an installation: as the hook of the chart does, as people do, and
// while others meddle.
package uninstall

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/uninstall"
	"ebbtide.dev/ebbtide/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// many is how many objects bear something.
const many = 5000

// What Ebbtide has left on 5,000 objects is told of in a few lines and removed by one write
// each, also if somebody has written there what they like.
func TestLongManyObjects(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	ns := c.Namespace(t)
	lock := func(holder string) string {
		return `{"holder":"` + holder + `","acquiredAt":"` + time.Now().UTC().Format(time.RFC3339) +
			`","expiresAt":"` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `"}`
	}
	create(t, c, many, func(n int) client.Object {
		b := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1))}}
		b.Namespace, b.Name = ns, fmt.Sprintf("budget-%04d", n)
		b.Annotations = map[string]string{v1alpha1.LockAnnotation: lock("nodemaintenance/m/n"), "example.com/team": "a"}
		if n == 4711 {
			b.Annotations[v1alpha1.LockAnnotation] = lock("user/" + strings.Repeat(`\u001b[2J`, 2000))
		}
		return b
	})

	out := &bytes.Buffer{}
	asked, reached := counted(t, c)
	started := time.Now()
	err := uninstall.Releaser{Client: reached, Now: time.Now, Yes: true, Out: out, Again: "release"}.Run(t.Context())
	t.Logf("after %s and %d requests:\n%s", time.Since(started).Round(time.Second), asked.Load(), out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := out.String()
	for _, words := range []string{"PodDisruptionBudget (5000):\n", "/budget-4711: remove annotation ebbtide.dev/lock\n    note: its lock is no longer enforced: ", "\n  and 4990 more\n", "Removed the traces of Ebbtide on 50"} {
		if !strings.Contains(text, words) {
			t.Errorf("it does not say %q", words)
		}
	}
	if strings.Contains(text, "\x1b") || len(text) > 5000 {
		t.Errorf("it prints %d bytes", len(text))
	}
	if n := asked.Load(); n > many+200 {
		t.Errorf("it asked the API server %d times, want one write for each object and some pages of lists", n)
	}
	assertClean(t, c, ns)
}

// counting counts the requests that go through it.
type counting struct {
	next  http.RoundTripper
	asked *atomic.Int64
}

// RoundTrip is an http.RoundTripper.
func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	c.asked.Add(1)
	return c.next.RoundTrip(request)
}

// counted is a client of which the requests are counted.
func counted(t *testing.T, c *cluster.Cluster) (*atomic.Int64, client.Client) {
	t.Helper()
	asked := &atomic.Int64{}
	config := rest.CopyConfig(c.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, asked} })
	reached, err := client.New(config, client.Options{Scheme: c.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return asked, reached
}

func assertClean(t *testing.T, c *cluster.Cluster, ns string) {
	t.Helper()
	list := &policyv1.PodDisruptionBudgetList{}
	if err := c.Client.List(t.Context(), list, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	for _, b := range list.Items {
		if len(b.Annotations) != 1 || b.Annotations["example.com/team"] != "a" {
			t.Fatalf("budget %s bears %v", b.Name, b.Annotations)
		}
	}
	if len(list.Items) != many {
		t.Errorf("%d budgets are left", len(list.Items))
	}
}

// create creates n objects.
func create(t *testing.T, c *cluster.Cluster, n int, object func(int) client.Object) {
	t.Helper()
	var all sync.WaitGroup
	manager := c.Mighty(t, cluster.Account.User())
	for worker := range 16 {
		all.Go(func() {
			for i := worker; i < n; i += 16 {
				if err := manager.Create(t.Context(), object(i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// One who could go on for ever writes an object again and again; the others are cleaned, and
// it is told of.
func TestRewrittenObjectStaysOne(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	ns := c.Namespace(t)
	for _, name := range []string{"quiet", "loud"} {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: map[string]string{v1alpha1.LockAnnotation: "{}"}}}
		if err := c.Client.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	stubborn := again{Client: c.Client, name: "loud"}
	out := &bytes.Buffer{}
	err := uninstall.Releaser{Client: stubborn, Now: time.Now, Yes: true, Out: out, Again: "kubectl ebbtide release"}.Run(t.Context())
	want := "traces of Ebbtide have reappeared: PodDisruptionBudget " + ns + "/loud; stop its managers, and run kubectl ebbtide release --yes again"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s\n%s", err, want, out)
	}
	b := &policyv1.PodDisruptionBudget{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "quiet"}, b); err != nil || len(b.Annotations) > 0 {
		t.Errorf("the other budget bears %v, %v", b.Annotations, err)
	}
}

// again is a client behind whose back somebody writes an object again.
type again struct {
	client.Client
	name string
}

func (a again) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if err := a.Client.Patch(ctx, object, patch, options...); err != nil || object.GetName() != a.name {
		return err
	}
	back := object.DeepCopyObject().(client.Object)
	back.SetAnnotations(map[string]string{v1alpha1.LockAnnotation: "{}"})
	return a.Client.Update(ctx, back)
}

// A Machine is let go only by who says so.
func TestLongMachinesAreLeftAlone(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	ns := c.Namespace(t)
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "worker", Finalizers: []string{v1alpha1.MachineFinalizer}}}
	m.Spec.ClusterName = "here"
	m.Spec.InfrastructureRef = v1alpha1.ObjectReference{APIVersion: "example.com/v1", Kind: "Instance", Name: "worker"}
	if err := c.Client.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	// Nothing keeps anybody from beginning something, so that the hook says so.
	release := uninstall.Releaser{Client: c.Client, Now: time.Now, Yes: true, Out: out, Again: "release"}
	const want = "1 Machines and Clusters cannot be deleted without a manager; add --machines to release them, after which their nodes are not drained"
	if err := release.Run(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if text := out.String(); !strings.Contains(text, "Machine, kept without --machines (1):\n  "+ns+"/worker: remove finalizer ebbtide.dev/machine\n    note: when it is deleted, its node will not be drained") {
		t.Errorf("it says\n%s", text)
	}
	hook := uninstall.Hook{Client: c.Client, Namespace: ns, Mode: uninstall.Complete, Timeout: time.Minute, Out: out}
	if err := hook.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Machines and Clusters that cannot be deleted without a manager (1): Machine "+ns+"/worker") {
		t.Errorf("the hook goes on: %v", err)
	}
	if !strings.Contains(out.String(), "warning: policy ebbtide-uninstall is not installed, so new NodeMaintenances may be left behind\n") {
		t.Errorf("it says nothing of the missing policy:\n%s", out)
	}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "ebbtide-uninstall"}, &corev1.ConfigMap{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the door is still closed: %v", err)
	}
	release.Machines = true
	if err := release.Run(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil || len(m.Finalizers) > 0 {
		t.Errorf("the Machine is held by %v, %v", m.Finalizers, err)
	}
}

// Anybody may create a Lease by which somebody seems to lead. That stops nobody who has
// seen who and where.
func TestForgedLeaseIsIgnored(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	ns := c.Namespace(t)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: kube.LeaderLease}}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new("mallory\x1b[2J"+strings.Repeat("y", 1<<16)), new(int32(1<<30))
	lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(100 * time.Hour)))
	if err := c.Client.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	release := uninstall.Releaser{Client: c.Client, Now: time.Now, Out: out, Again: "release"}
	err := release.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "a manager is running and would redo the changes: mallory [2Jyyy") ||
		!strings.Contains(err.Error(), ", in namespace "+ns+" until ") || !strings.Contains(err.Error(), "add --force") || len(err.Error()) > 1000 || out.Len() > 0 {
		t.Errorf("got %v\n%s", err, out)
	}
	release.Force = true
	if err := release.Run(t.Context()); err != nil || !strings.Contains(out.String(), "Lease (1):\n  "+ns+"/ebbtide.dev: delete it\n") {
		t.Errorf("with force: %v\n%s", err, out)
	}
	release.Yes = true
	if err := release.Run(t.Context()); err != nil {
		t.Errorf("with force: %v\n%s", err, out)
	}
}
