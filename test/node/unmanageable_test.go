package node

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox/machine"
	"ebbtide.dev/ebbtide/test/patience"
)

// webAddress is where the node's kubelet asks for a static pod, on the node's own loopback.
const webAddress = "127.0.0.1:8099"

var webText = strings.NewReplacer("edge", "web", ":8081", ":8082").Replace(staticText)

// unmanageable has static pods of each kind that no rename takes down: of a folder that
// cannot be written, of a staticPodPath that is a file, and of a staticPodURL. The drain
// leaves the one of the URL, and takes down what it can.
func (s *statics) unmanageable(t *testing.T) {
	s.serveFromURL(t)
	file := filepath.Join(s.dir, staticFile)
	s.configureKubelet(t, "staticPodURL: http://"+webAddress+"/pod.yaml\nstaticPodPath: /etc/kubernetes/manifests/"+staticFile)
	s.awaitPod(t, "web")
	s.restartAgent(file)
	s.unmanageableBecause(t, "edge", v1alpha1.StaticPodSingleFile, file+" is a file. Static pods can be taken down if the kubelet's staticPodPath is a folder, and --manifest-dir the same.")

	s.configureKubelet(t, "staticPodURL: http://"+webAddress+"/pod.yaml\nstaticPodPath: /etc/kubernetes/manifests")
	fixed := s.readOnly(t)
	s.restartAgent(fixed)
	s.unmanageableBecause(t, "edge", v1alpha1.StaticPodReadOnly, fixed+" cannot be written, so no static pod can be taken down: read-only file system")

	s.restartAgent(s.dir)
	s.awaitState(t, v1alpha1.StaticPodRunning)
	s.unmanageableBecause(t, "web", v1alpha1.StaticPodFromURL, "default/web-"+s.node+" comes from the kubelet's staticPodURL. Remove it from that server, or let it stop with the node.")
	m := s.drain(t, "unmanageable")
	s.awaitState(t, v1alpha1.StaticPodHeld)
	if pod := s.awaitPod(t, "web"); !isPodReady(pod) {
		t.Errorf("the pod of the URL does not run: %+v", pod.Status)
	}
	status := m.Status.NodeStatuses[0]
	if n := status.PodsRetained; n != 1 || len(status.Retained) != 1 || !strings.Contains(fmt.Sprint(status.Retained), "web-"+s.node) {
		t.Errorf("%d pods are retained, want the one of the URL by its name: %+v", n, status.Retained)
	}
	s.giveBack(t, m)
	s.configureKubelet(t, "staticPodPath: /etc/kubernetes/manifests")
	patience.Eventually(t, "the pod of the URL to be gone", func(ctx context.Context) (string, bool) {
		err := s.Client.Get(ctx, types.NamespacedName{Namespace: "default", Name: "web-" + s.node}, &corev1.Pod{})
		return fmt.Sprint(err), err != nil
	})
}

// serveFromURL answers on the node's loopback with the manifest of a pod.
func (s *statics) serveFromURL(t *testing.T) {
	t.Helper()
	_ = newDiary(t, s.Cluster, s.node, "web")
	var listener net.Listener
	if err := machine.InNetwork(kubelet(t, s.Cluster, s.node), func() (err error) {
		listener, err = net.Listen("tcp", webAddress)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(webText))
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

// configureKubelet replaces what the kubelet's configuration says of static pods, and
// restarts it.
func (s *statics) configureKubelet(t *testing.T, sources string) {
	t.Helper()
	file := filepath.Join(filepath.Dir(s.dir), "kubelet.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.Split(string(data), "\n"), func(line string) bool { return strings.HasPrefix(line, "staticPod") })
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+sources+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	restartKubelet(t, s.Cluster, s.node)
}

// readOnly is the kubelet's folder at another place, where it cannot be written.
func (s *statics) readOnly(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount(s.dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (s *statics) restartAgent(dir string) {
	s.agent.Kill()
	s.startAgent(dir)
}

// awaitPod waits for the static pod of a name to be ready.
func (s *statics) awaitPod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	patience.Eventually(t, "pod "+name+" to be ready", func(ctx context.Context) (string, bool) {
		err := s.Client.Get(ctx, types.NamespacedName{Namespace: "default", Name: name + "-" + s.node}, pod)
		return fmt.Sprintf("%+v %v", pod.Status, err), err == nil && isPodReady(pod)
	})
	return pod
}

// unmanageableBecause wants the agent to leave a pod alone, for a reason.
func (s *statics) unmanageableBecause(t *testing.T, name, reason, message string) {
	t.Helper()
	patience.Eventually(t, name+" to be left alone because of "+reason, func(ctx context.Context) (string, bool) {
		agent := &v1alpha1.NodeAgent{}
		err := s.Client.Get(ctx, types.NamespacedName{Name: s.node}, agent)
		return fmt.Sprintf("%+v %v, want %s", agent.Status.StaticPods, err, message), slices.ContainsFunc(agent.Status.StaticPods, func(pod v1alpha1.StaticPod) bool {
			return pod.Name == name+"-"+s.node && pod.State == v1alpha1.StaticPodUnmanageable && pod.Reason == reason && pod.Message == message
		})
	})
}
