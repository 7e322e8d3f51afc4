//go:build linux

package reboot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
)

var errStorm = errors.New("the API server is overloaded")

// machine is node one in boot b1, with a logind that counts reboots and an API server in memory.
type machine struct {
	t      *testing.T
	loop   *Loop
	client client.Client
	// reboots counts calls of logind, which returns refuses.
	reboots int
	refuses error
	events  []string
	// unreadable is true while no NodeMaintenance can be read.
	unreadable bool
}

func newMachine(t *testing.T, objects ...client.Object) *machine {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t}
	m.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&corev1.Node{}).
		WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, is := object.(*v1alpha1.NodeMaintenance); is && m.unreadable {
				return errStorm
			}
			return c.Get(ctx, key, object, options...)
		}}).Build()
	m.loop = New(Options{
		BootID: "b1", Sentinel: filepath.Join(t.TempDir(), "reboot-required"), Enabled: true, Logind: m, Client: m.client, Log: logr.Discard(),
		Emit: func(events ...event.Event) {
			for _, e := range events {
				m.events = append(m.events, e.Reason)
			}
		},
	})
	return m
}

func (m *machine) Reboot(context.Context) error {
	m.reboots++
	return m.refuses
}

func (m *machine) NodeAndPods() (*corev1.Node, []*corev1.Pod) {
	node := &corev1.Node{}
	if err := m.client.Get(m.t.Context(), client.ObjectKey{Name: "one"}, node); err != nil {
		m.t.Fatal(err)
	}
	return node, nil
}

func (m *machine) required() corev1.ConditionStatus {
	node, _ := m.NodeAndPods()
	for _, c := range node.Status.Conditions {
		if c.Type == v1alpha1.NodeRebootRequired {
			return c.Status
		}
	}
	return ""
}

func handedOver() []client.Object {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "one", Labels: map[string]string{v1alpha1.HandedOverLabel: "true"}, Annotations: map[string]string{v1alpha1.HandedOverByAnnotation: "gone,m"},
	}}
	node.Status.NodeInfo.BootID = "b1"
	return []client.Object{node, &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "uid", Annotations: map[string]string{
			v1alpha1.RebootAnnotation:     "true",
			v1alpha1.HandedOverAnnotation: `{"maintenanceUID":"uid","nodeName":"one","bootID":"b1","time":"2026-03-01T11:00:00.000000Z"}`,
		}},
		Spec: v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageDrain, CompleteWhen: &v1alpha1.CompleteWhen{NewBoot: true}},
	}}
}

func TestNodeReportsItsSentinel(t *testing.T) {
	t.Parallel()
	m := newMachine(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}})
	m.loop.pass(t.Context(), m)
	if got := m.required(); got != corev1.ConditionFalse {
		t.Errorf("without the file the condition is %q, want False", got)
	}
	if err := os.WriteFile(m.loop.Sentinel, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m.loop.pass(t.Context(), m)
	if got := m.required(); got != corev1.ConditionTrue {
		t.Errorf("with the file the condition is %q, want True", got)
	}
	// A folder in place of the file says nothing: the last report stays.
	if err := errors.Join(os.Remove(m.loop.Sentinel), os.Mkdir(m.loop.Sentinel, 0o700)); err != nil {
		t.Fatal(err)
	}
	m.loop.pass(t.Context(), m)
	if got := m.required(); got != corev1.ConditionTrue {
		t.Errorf("with an unreadable file the condition is %q, want True as before", got)
	}
}

func TestNodeRebootsWhenItIsHandedOver(t *testing.T) {
	t.Parallel()
	m := newMachine(t, handedOver()...)
	m.loop.pass(t.Context(), m)
	m.loop.pass(t.Context(), m)
	if m.reboots != 1 || len(m.events) != 1 || m.events[0] != v1alpha1.EventNodeRebooting {
		t.Errorf("%d reboots with events %v, want one of each", m.reboots, m.events)
	}
}

func TestRefusedRebootIsRequestedAgain(t *testing.T) {
	t.Parallel()
	m := newMachine(t, handedOver()...)
	m.refuses = errStorm
	if again := m.loop.pass(t.Context(), m); again > time.Minute {
		t.Errorf("the next pass is after %s", again)
	}
	m.loop.requested = m.loop.requested.Add(-time.Minute)
	m.loop.pass(t.Context(), m)
	if m.reboots != 2 {
		t.Errorf("%d reboots were requested, want 2", m.reboots)
	}
}

func TestUnreadableMaintenanceRebootsNothing(t *testing.T) {
	t.Parallel()
	m := newMachine(t, handedOver()...)
	m.unreadable = true
	m.loop.pass(t.Context(), m)
	if m.reboots != 0 {
		t.Error("the node reboots for a NodeMaintenance that could not be read")
	}
	m.unreadable = false
	m.loop.pass(t.Context(), m)
	if m.reboots != 1 {
		t.Errorf("%d reboots when it can be read again, want 1", m.reboots)
	}
}

func TestDisabledAgentRebootsNothing(t *testing.T) {
	t.Parallel()
	m := newMachine(t, handedOver()...)
	m.loop.Enabled = false
	m.loop.pass(t.Context(), m)
	if m.reboots != 0 {
		t.Error("an agent without --reboot reboots its node")
	}
}

// The loop runs passes when it is woken, and ends with its context.
func TestLoopWakes(t *testing.T) {
	t.Parallel()
	m := newMachine(t, handedOver()...)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	rebooted := make(chan struct{})
	m.loop.Logind = logindFunc(func() { close(rebooted) })
	m.loop.Wake()
	go func() {
		defer close(done)
		m.loop.Run(ctx, m)
	}()
	<-rebooted
	cancel()
	<-done
}

type logindFunc func()

func (f logindFunc) Reboot(context.Context) error {
	f()
	return nil
}
