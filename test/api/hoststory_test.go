//go:build linux

package api

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/agent"
	"ebbtide.dev/ebbtide/internal/agent/host"
	core "ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/event"
	drain "ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/nodeagent"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

var parts = []string{"kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"}

// hostStory is a host of a control plane: its folder is real, the API server is that of
// another host, and the kubelet and the manager are played.
type hostStory struct {
	*hostWorld
	dir    string
	client client.WithWatch // of the agent, where it has not the rights of the chart

	mu   sync.Mutex
	seen []string // what went and came, in this order
}

func newHostStory(t *testing.T) *hostStory {
	t.Helper()
	w := &hostStory{hostWorld: newHostWorld(t), dir: t.TempDir()}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		left := []client.Object{
			&v1alpha1.NodeAgent{ObjectMeta: metav1.ObjectMeta{Name: w.a}}, object(t, lease(corev1.NamespaceNodeLease, w.a, "")),
			object(t, lease(cluster.Account.Namespace, drain.AgentLease(w.a), "")), object(t, lease(cluster.Account.Namespace, host.ClaimName, "")),
		}
		for _, part := range parts {
			left = append(left, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: part + "-" + w.a}})
		}
		for _, o := range left {
			if err := client.IgnoreNotFound(w.admin.Delete(ctx, o, client.GracePeriodSeconds(0))); err != nil {
				t.Errorf("clean up: %v", err)
			}
		}
	})
	return w
}

func (w *hostStory) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, what)
}

func (w *hostStory) story() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.seen, " ")
}

func partManifest(part string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %[1]s, namespace: kube-system, labels: {component: %[1]s, tier: control-plane}}\n"+
		"spec: {priorityClassName: system-node-critical, hostNetwork: true, containers: [{name: %[1]s, image: x}]}\n", part)
}

// play is the kubelet, which shows what the folder makes and renews its Lease, and the
// manager, which asks for what it shows.
func (w *hostStory) play(ctx context.Context) {
	beat := host.Heartbeat{Client: w.admin, Namespace: corev1.NamespaceNodeLease, Name: w.a}
	for ctx.Err() == nil {
		if err := beat.Renew(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.a, UID: "any"}}); err != nil && ctx.Err() == nil {
			w.t.Errorf("renew the Lease of the kubelet: %v", err)
		}
		for _, part := range parts {
			_, err := os.Stat(filepath.Join(w.dir, part+".yaml"))
			if err := w.show(ctx, part, err == nil); err != nil && ctx.Err() == nil {
				w.t.Errorf("show %s: %v", part, err)
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (w *hostStory) show(ctx context.Context, part string, is bool) error {
	pod := &corev1.Pod{}
	there := w.admin.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: part + "-" + w.a}, pod) == nil
	switch {
	case there && !is:
		w.note("-" + part)
		return w.admin.Delete(ctx, pod, client.GracePeriodSeconds(0))
	case there || !is:
		return nil
	}
	pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: part + "-" + w.a, Labels: map[string]string{"component": part, "tier": "control-plane"},
		},
		Spec: corev1.PodSpec{NodeName: w.a, HostNetwork: true, PriorityClassName: "system-node-critical", Containers: []corev1.Container{{Name: part, Image: "x"}}},
	}
	podclass.MakeMirror(pod, "node")
	if err := w.admin.Create(ctx, pod); err != nil {
		return err
	}
	w.note("+" + part)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := w.admin.Status().Update(ctx, pod); err != nil {
		return err
	}
	return w.ask(ctx, pod)
}

// ask has the pod leave, as far as the Evacuation goes.
func (w *hostStory) ask(ctx context.Context, pod *corev1.Pod) error {
	e := core.New(pod, v1alpha1.NodeMaintenanceInstigator, nil)
	if err := w.admin.Create(ctx, e); err != nil {
		return err
	}
	e.Status.ActiveEvacuatorClass = v1alpha1.KubeletEvacuatorClass
	return w.admin.Status().Update(ctx, e)
}

// run has the agent work until it is stopped.
func (w *hostStory) run(change func(*agent.ControlPlane)) (stop func()) {
	o := agent.ControlPlane{Terminate: true, Host: true, RestoreAfter: time.Hour, Hostname: "host-a", Address: "api.example.com", Namespace: cluster.Account.Namespace}
	change(&o)
	connection := w.client
	if connection == nil {
		connection = w.user("ebbtide:agent:"+w.a, "ebbtide:agents")
	}
	a := agent.New(agent.Options{
		Self:      nodeagent.Self{Node: w.a, BootID: "boot", Dir: w.dir},
		Manifests: agent.NewFolder(w.dir), Records: agent.NewJournal(filepath.Join(w.t.TempDir(), "state")), ControlPlane: o,
		Client: connection, Emit: func(...event.Event) {}, Log: logr.Discard(),
	})
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
}

// says waits for what the agent tells of a part.
func (w *hostStory) says(part string, state v1alpha1.StaticPodState, words string) {
	w.t.Helper()
	patience.Eventually(w.t, fmt.Sprintf("the agent to say that %s is %s", part, state), func(ctx context.Context) (string, bool) {
		said := &v1alpha1.NodeAgent{}
		if err := w.admin.Get(ctx, client.ObjectKey{Name: w.a}, said); err != nil {
			return err.Error(), false
		}
		for _, pod := range said.Status.StaticPods {
			if pod.Name == part+"-"+w.a && pod.State == state && strings.Contains(pod.Message, words) {
				return "", true
			}
		}
		return fmt.Sprintf("%s; %+v", w.story(), said.Status.StaticPods), false
	})
}

func (w *hostStory) claimed(by string) {
	w.t.Helper()
	patience.Eventually(w.t, fmt.Sprintf("the claim to be %q's", by), func(context.Context) (string, bool) {
		err := holds(w.t, w.admin, by)
		return fmt.Sprint(err), err == nil
	})
}

// The API server that the test runs is another host's, as its own Lease says. So scheduler,
// controller manager and API server of this host go, and etcd stays, as it is alone.
func TestAnAgentOfAHostTakesItsControlPlaneDown(t *testing.T) {
	w := newHostStory(t)
	for _, part := range parts {
		if err := os.WriteFile(filepath.Join(w.dir, part+".yaml"), []byte(partManifest(part)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	played := make(chan struct{})
	go func() {
		w.play(ctx)
		close(played)
	}()
	defer func() {
		cancel()
		<-played
	}()
	targets := `metadata: {annotations: {ebbtide.dev/drain-targets: '[{"podPriority":2147483647,"podType":"Static"}]'}}`
	if err := patch(t, w.server.Mighty(t, cluster.Account.User()), w.node(w.a), targets); err != nil {
		t.Fatal(err)
	}
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	stop := w.run(func(o *agent.ControlPlane) { o.Hostname = hostname })
	w.says("kube-apiserver", v1alpha1.StaticPodUnmanageable, "no API server of another host has renewed its Lease in kube-system in the last 60s")
	stop()
	stop = w.run(func(*agent.ControlPlane) {})
	w.says("kube-apiserver", v1alpha1.StaticPodHeld, "put aside")
	w.says("etcd", v1alpha1.StaticPodUnmanageable, "3 Ready members of etcd are required including its own, and there are 1")
	w.claimed(w.a)
	if err := patch(t, w.admin, w.node(w.a), `metadata: {annotations: {ebbtide.dev/drain-targets: null}}`); err != nil {
		t.Fatal(err)
	}
	w.says("kube-scheduler", v1alpha1.StaticPodRunning, "")
	w.claimed("")
	stop()
	all := "-kube-scheduler -kube-controller-manager -kube-apiserver +kube-apiserver +kube-controller-manager +kube-scheduler"
	if story := w.story(); !strings.HasSuffix(story, all) || strings.Contains(story, "-etcd") {
		t.Errorf("in this order: %s; want %s", story, all)
	}
	var beat coordinationv1.Lease
	if err := w.admin.Get(t.Context(), client.ObjectKey{Namespace: cluster.Account.Namespace, Name: "ebbtide-agent-" + w.a}, &beat); err != nil || host.Holder(&beat) != w.a || time.Since(beat.Spec.RenewTime.Time) > 40*time.Second {
		t.Errorf("the sign of life of the agent is %+v, %v", beat.Spec, err)
	}
}
