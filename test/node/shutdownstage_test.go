package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
	fake "ebbtide.dev/ebbtide/test/logind"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

// shutdowns are two nodes, of which one shuts down, and the manager.
type shutdowns struct {
	*cluster.Cluster
	node, namespace string
	// binary and kubeconfig are what the agent is started with.
	binary, kubeconfig string
	agent              *inside
	logind             *fake.Logind
	test               *testing.T // of all stories, which logind and the agent outlive
}

func newShutdowns(t *testing.T) *shutdowns {
	t.Helper()
	c := cluster.Start(t, cluster.Spec{RealNodes: 2, Workload: true})
	importApp(t, c)
	c.Apply(t, "default", agentRights)
	c.StartManager(t)
	s := &shutdowns{
		Cluster: c, test: t, node: c.Nodes[0], namespace: c.Namespace(t),
		binary: prebuilt.Path(t, "ebbtide-agent"), kubeconfig: c.ServiceAccountKubeconfig(t, "default", "agent"),
	}
	s.boot(t)
	s.tells(t, v1alpha1.ShutdownNone, v1alpha1.ReasonShutdownWaits)
	s.logind.AwaitHeld(t, "ebbtide", 1)
	if signals := s.logind.Signals(); len(signals) != 1 {
		t.Errorf("logind was sent signals %v, want one to read the delay that the agent asks for", signals)
	}
	s.serve(t)
	return s
}

// boot starts on the node what its boot would start: D-Bus, systemd-logind and the agent.
func (s *shutdowns) boot(t *testing.T) {
	t.Helper()
	bus := fake.StartBusIn(s.test, s.path("run/dbus"))
	s.logind = fake.Start(s.test, bus, fake.Spec{DropIns: s.path("run/systemd/logind.conf.d")})
	s.startAgent(t)
}

func (s *shutdowns) path(name string) string { return onNode(s.test, s.Cluster, s.node, name) }

// onNode is where a file of a node is for who is not on it.
func onNode(t *testing.T, c *cluster.Cluster, node, name string) string {
	t.Helper()
	return filepath.Join("/proc", strconv.Itoa(kubelet(t, c, node)), "root", name)
}

// serve has a pod of an application on the node.
func (s *shutdowns) serve(t *testing.T) {
	t.Helper()
	one := program{name: "held", replicas: 1, grace: 5 * time.Second, on: s.node}
	if pod := s.pod(t); pod.Name != "" {
		return
	}
	list := &corev1.PodList{}
	if err := s.Client.List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	s.Apply(t, s.namespace, one.text())
	for i := range list.Items {
		if err := s.Client.Delete(t.Context(), &list.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
	// The Deployment may still count the pod that has just been deleted.
	patience.Eventually(t, "the application to run on "+s.node, func(context.Context) (string, bool) {
		pod := s.pod(t)
		return fmt.Sprintf("%+v", pod.Status), slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	})
}

// pod is that of the application on the node; without a name if there is none.
func (s *shutdowns) pod(t *testing.T) corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := s.Client.List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Spec.NodeName == s.node && list.Items[i].DeletionTimestamp == nil {
			return list.Items[i]
		}
	}
	return corev1.Pod{}
}

// startAgent runs the agent as a unit of the node would: with its files and its boot, and
// with nothing that says where D-Bus is.
func (s *shutdowns) startAgent(t *testing.T) {
	t.Helper()
	for from, to := range map[string]string{s.binary: "run/ebbtide-agent", s.kubeconfig: "run/agent.kubeconfig"} {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(s.path(to)+".new", data, 0o700)
		}
		if err == nil {
			err = os.Rename(s.path(to)+".new", s.path(to))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.agent = startInside(s.test, kubelet(t, s.Cluster, s.node), "/run/ebbtide-agent",
		"--node-name="+s.node, "--kubeconfig=/run/agent.kubeconfig", "--health-address=0", "--shutdown-delay=40s",
		"--reboot", "--reboot-sentinel=/run/reboot-required")
}

// inside is a program among the files of a node.
type inside struct{ command *exec.Cmd }

// startInside runs a program with the files that a process has. It ends with the test,
// which shows what it printed if it has failed.
func startInside(t *testing.T, pid int, args ...string) *inside {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), fmt.Sprintf("%d.log", time.Now().UnixNano())))
	if err != nil {
		t.Fatal(err)
	}
	p := &inside{command: exec.Command("nsenter", append([]string{"--target", strconv.Itoa(pid), "--mount", "--"}, args...)...)}
	p.command.Stdout, p.command.Stderr = log, log
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s printed:\n%s", args[0], text[max(0, len(text)-10_000):])
		}
	})
	return p
}

// Kill ends it as a crash does, and returns when it is gone.
func (p *inside) Kill() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}
