package uninstall

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/uninstall"
	"ebbtide.dev/ebbtide/test/cluster"
)

// faulty is a client on whose way to the API server something goes wrong.
type faulty struct {
	client.WithWatch
	listed  func(list client.ObjectList, options *client.ListOptions) error
	behind  func(list client.ObjectList) bool
	watched func(apiwatch.Interface)
	patched func() error
}

func (f *faulty) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if f.listed != nil {
		if err := f.listed(list, (&client.ListOptions{}).ApplyOptions(options)); err != nil {
			return err
		}
	}
	err := f.WithWatch.List(ctx, list, options...)
	if err == nil && f.behind != nil && f.behind(list) {
		return meta.SetList(list, nil)
	}
	return err
}

func (f *faulty) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (apiwatch.Interface, error) {
	stream, err := f.WithWatch.Watch(ctx, list, options...)
	if err == nil && f.watched != nil {
		f.watched(stream)
	}
	return stream, err
}

func (f *faulty) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if f.patched != nil {
		if err := f.patched(); err != nil {
			return err
		}
	}
	return f.WithWatch.Patch(ctx, object, patch, options...)
}

// errAway is what an API server says of a webhook that it does not reach.
var errAway = apierrors.NewInternalError(errors.New(`failed calling webhook "nodemaintenance.ebbtide.dev": connection refused`))

// hookOf is a hook that completes.
func hookOf(t *testing.T, c *cluster.Cluster, reached client.WithWatch) uninstall.Hook {
	t.Helper()
	return uninstall.Hook{Client: reached, Namespace: namespaceOfManagers(t, c), Mode: uninstall.Complete, Timeout: time.Minute, Out: &bytes.Buffer{}}
}

// completes plays the manager: it lets a maintenance go some time after it was completed.
func completes(t *testing.T, c *cluster.Cluster, m *v1alpha1.NodeMaintenance, after time.Duration) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		seen := m.DeepCopy()
		for ctx.Err() == nil && seen.Spec.Stage != v1alpha1.StageComplete {
			time.Sleep(50 * time.Millisecond)
			_ = c.Client.Get(ctx, client.ObjectKeyFromObject(m), seen)
		}
		time.Sleep(after)
		_ = c.Client.Patch(ctx, seen, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		_ = c.Client.Delete(ctx, seen)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
}

// Whatever is between the hook and the API server ends its watches. What happens afterwards
// is seen all the same.
func TestLongWatchesThatAreEnded(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installDoor(t, c)
	m := draining(t, c, "seen-later")
	var watches atomic.Int32
	hook := hookOf(t, c, &faulty{WithWatch: c.Client, watched: func(stream apiwatch.Interface) {
		if watches.Add(1) <= 3 {
			stream.Stop()
		}
	}})
	completes(t, c, m, 4*time.Second)

	started := time.Now()
	if err := hook.Run(t.Context()); err != nil {
		t.Errorf("after %s: %v", time.Since(started), err)
	}
	if took := time.Since(started); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

// A manager that is just being replaced does not answer for a moment.
func TestWebhooksThatAreAwayForAMoment(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installDoor(t, c)
	m := draining(t, c, "patient")
	var patches atomic.Int32
	hook := hookOf(t, c, &faulty{WithWatch: c.Client, patched: func() error {
		if patches.Add(1) <= 2 {
			return errAway
		}
		return nil
	}})
	completes(t, c, m, 0)

	if err := hook.Run(t.Context()); err != nil {
		t.Error(err)
	}
}

// Who cannot uninstall lets others begin again, however far it had got.
func TestAHookThatFailsAtTheEnd(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installDoor(t, c)
	hook := hookOf(t, c, c.Client)
	hook.ServiceAccount = "nobody"

	err := hook.Run(t.Context())

	if want := `get the ServiceAccount of the managers: serviceaccounts "nobody" not found`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	assertOpen(t, c, hook.Namespace)
}

// What somebody begins before every API server has heard that nobody may is not completed
// by a hook that is to complete nothing.
func TestAMaintenanceThatIsBegunBehindTheFirstLook(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	installDoor(t, c)
	m := draining(t, c, "just-begun")
	var looks atomic.Int32
	hook := hookOf(t, c, &faulty{WithWatch: c.Client, behind: func(list client.ObjectList) bool {
		_, ok := list.(*v1alpha1.NodeMaintenanceList)
		return ok && looks.Add(1) == 1
	}})
	hook.Mode = uninstall.Refuse

	err := hook.Run(t.Context())

	if err == nil || !strings.Contains(err.Error(), "NodeMaintenances in progress (1): just-begun (Drain)") {
		t.Errorf("got %v, want it refused", err)
	}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil || m.Spec.Stage != v1alpha1.StageDrain {
		t.Errorf("it is in stage %s, %v", m.Spec.Stage, err)
	}
}

// A list of many objects takes longer than the API server keeps its state. No object is
// counted twice, and none is left out.
func TestAListThatIsTooOldInTheMiddle(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	ns := c.Namespace(t)
	const lists = 1100 // three pages
	create(t, c, lists, func(n int) client.Object {
		return lockedBudget(ns, fmt.Sprintf("budget-%04d", n))
	})
	late := &faulty{WithWatch: c.Client, listed: func(list client.ObjectList, options *client.ListOptions) error {
		if _, ok := list.(*policyv1.PodDisruptionBudgetList); ok {
			return expired(options.Continue)
		}
		return nil
	}}
	out := &bytes.Buffer{}
	release := uninstall.Releaser{Client: late, Now: time.Now, Yes: true, Out: out, Again: "release"}
	if err := release.Run(t.Context()); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(out.String(), "PodDisruptionBudget (1100):\n") {
		t.Errorf("it says\n%s", out)
	}
	budgets := &policyv1.PodDisruptionBudgetList{}
	if err := c.Client.List(t.Context(), budgets, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	for _, b := range budgets.Items {
		if len(b.Annotations) > 0 {
			t.Fatalf("budget %s bears %v", b.Name, b.Annotations)
		}
	}
}

// lockedBudget is a budget with a lock that is no lock of a drain.
func lockedBudget(ns, name string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: map[string]string{v1alpha1.LockAnnotation: "{}"}}}
}

// expired is what an API server says of a page whose state it does not keep any more, with
// where to go on in what is there now, as it does itself.
func expired(token string) error {
	text, err := base64.RawURLEncoding.DecodeString(token)
	before, rest, found := strings.Cut(string(text), `"rv":`)
	if token == "" || err != nil || !found || strings.HasPrefix(rest, "-1") {
		return nil
	}
	_, after, _ := strings.Cut(rest, ",")
	err = apierrors.NewResourceExpired("The provided continue parameter is too old")
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		status.ErrStatus.Continue = base64.RawURLEncoding.EncodeToString([]byte(before + `"rv":-1,` + after))
	}
	return err
}

// Anybody who has namespaces may create Leases there by the name of the managers'. Which
// were not looked at is said.
func TestLeasesInManyNamespaces(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	for range 14 {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace(t), Name: kube.LeaderLease}}
		if err := c.Client.Create(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Client.Delete(context.WithoutCancel(t.Context()), lease) })
	}
	out := &bytes.Buffer{}
	if err := (uninstall.Releaser{Client: c.Client, Now: time.Now, Out: out, Again: "release"}).Run(t.Context()); err != nil {
		t.Error(err)
	}
	const want = "Skipped 4 more namespaces with a Lease ebbtide.dev, as any user may create one: "
	if !strings.Contains(out.String(), want) || !strings.Contains(out.String(), " and 1 more\n") {
		t.Errorf("it does not say %q:\n%s", want, out)
	}
}
