package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/image"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

const (
	// system is the namespace of the release, as in README.md.
	system = "ebbtide-system"
	// leaderLease is the Lease of whoever acts.
	leaderLease = "ebbtide.dev"
	root        = "../.."
)

// stage is a cluster of real nodes in which Ebbtide is installed by Helm, and what people
// have at hand.
type stage struct {
	*cluster.Cluster
	// bin is a folder with helm and kubectl.
	bin string
}

// newStage has the images on the nodes and the tools built. Nothing is installed yet.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{Cluster: cluster.Start(t, cluster.Spec{RealNodes: 3, Workload: true, Audit: true}), bin: t.TempDir()}
	importApp(t, s.Cluster)
	s.importManager(t)
	for _, path := range []string{prebuilt.Path(t, "helm"), prebuilt.Path(t, "kubectl-ebbtide"), cluster.KubectlPath(t)} {
		if err := os.Symlink(path, filepath.Join(s.bin, filepath.Base(path))); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// importManager gives the nodes the image that the README has people put into their registry.
func (s *stage) importManager(t *testing.T) {
	t.Helper()
	chart, err := os.ReadFile(root + "/charts/ebbtide/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^appVersion: (\S+)$`).FindSubmatch(chart)
	if version == nil {
		t.Fatal("Chart.yaml has no appVersion")
	}
	s.importImage(t, string(version[1]), image.Image{Binaries: built(t, "ebbtide"), Further: map[string]map[image.Platform]string{
		"/ebbtide-agent": built(t, "ebbtide-agent"),
	}})
}

// built is a program for the nodes.
func built(t testing.TB, name string) map[image.Platform]string {
	t.Helper()
	return map[image.Platform]string{image.AMD64: prebuilt.Path(t, name)}
}

// importImage gives the nodes an image of the manager.
func (s *stage) importImage(t *testing.T, tag string, manager image.Image) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "ebbtide.tar")
	manager.Name = "registry.example.com/ebbtide:" + tag
	if err := manager.WriteArchive(archive, image.AMD64); err != nil {
		t.Fatal(err)
	}
	s.Import(t, archive)
}

// shell runs commands as people type them, in the root of the repository.
func (s *stage) shell(t *testing.T, script string) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	command.Dir = root
	command.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "HELM_CACHE_HOME="+s.bin, "HELM_CONFIG_HOME="+s.bin, "HELM_DATA_HOME="+s.bin,
		"PATH="+s.bin+":"+os.Getenv("PATH"))
	out, err := command.CombinedOutput()
	return string(out), err
}

// run is shell for commands that are to succeed.
func (s *stage) run(t *testing.T, script string) string {
	t.Helper()
	out, err := s.shell(t, script)
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", script, err, out, s.managers(t))
	}
	return out
}

// managers is what can be seen of the managers, for who looks for what went wrong.
func (s *stage) managers(t *testing.T) string {
	t.Helper()
	out, _ := s.Kubectl(t, "-n", system, "get", "pods,jobs", "-o", "wide")
	described, _ := s.Kubectl(t, "-n", system, "describe", "pods")
	logs, _ := s.Kubectl(t, "-n", system, "logs", "--prefix", "--tail=40", "-l", "app.kubernetes.io/name=ebbtide")
	return out + described + logs
}

// leader is the manager that acts, and its node.
func (s *stage) leader(t *testing.T) (pod, node string) {
	t.Helper()
	patience.Eventually(t, "a manager that leads", func(ctx context.Context) (string, bool) {
		lease, running := &coordinationv1.Lease{}, &corev1.Pod{}
		if err := s.Client.Get(ctx, types.NamespacedName{Namespace: system, Name: leaderLease}, lease); err != nil {
			return err.Error(), false
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return "nobody leads", false
		}
		pod, _, _ = strings.Cut(*lease.Spec.HolderIdentity, "_")
		err := s.Client.Get(ctx, types.NamespacedName{Namespace: system, Name: pod}, running)
		node = running.Spec.NodeName
		return fmt.Sprint(pod, err), err == nil && running.DeletionTimestamp == nil
	})
	return pod, node
}

// settled waits until both managers are ready, on different nodes. The scheduler prefers that
// and may do otherwise while nodes are cordoned; then one of them has to move.
func (s *stage) settled(t *testing.T) {
	t.Helper()
	patience.Eventually(t, "two managers to be ready on two nodes", func(ctx context.Context) (string, bool) {
		list := &corev1.PodList{}
		err := s.Client.List(ctx, list, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/name": "ebbtide"})
		ready, nodes := 0, map[string]bool{}
		for i := range list.Items {
			if isPodReady(&list.Items[i]) {
				ready, nodes[list.Items[i].Spec.NodeName] = ready+1, true
			}
		}
		if err == nil && ready == 2 && len(nodes) == 1 && len(list.Items) == 2 {
			err = s.Client.Delete(ctx, &list.Items[1])
		}
		return fmt.Sprint(ready, " ready on ", len(nodes), " nodes, ", err), ready == 2 && len(nodes) == 2 && len(list.Items) == 2
	})
}

func isPodReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

// maintain asks for a maintenance of one node. It is over with the test at the latest.
func (s *stage) maintain(t *testing.T, name, node string, edit ...func(*v1alpha1.NodeMaintenance)) {
	t.Helper()
	m := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeMaintenanceSpec{
		Reason: "a story", Stage: v1alpha1.StageDrain, DrainDepth: v1alpha1.PodTypeDefault,
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
		}}}},
	}}
	for _, change := range edit {
		change(m)
	}
	patience.Eventually(t, "maintenance "+name+" to be taken", func(ctx context.Context) (string, bool) {
		err := s.Client.Create(ctx, m)
		return fmt.Sprint(err), err == nil
	})
	t.Cleanup(func() { s.complete(t, name) })
}

func (s *stage) maintenance(ctx context.Context, name string) (*v1alpha1.NodeMaintenance, error) {
	m := &v1alpha1.NodeMaintenance{}
	return m, s.Client.Get(ctx, client.ObjectKey{Name: name}, m)
}

// drained waits until a maintenance says so, and returns how long after its creation that was.
func (s *stage) drained(t *testing.T, name string) time.Duration {
	t.Helper()
	begin := time.Now()
	defer func() {
		if t.Failed() {
			t.Log(s.managers(t))
		}
	}()
	patience.Eventually(t, "maintenance "+name+" to be Drained", func(ctx context.Context) (string, bool) {
		m, err := s.maintenance(ctx, name)
		return fmt.Sprintf("%s %+v %v", m.Status.Summary, m.Status.NodeStatuses, err), meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained)
	})
	return time.Since(begin).Round(10 * time.Millisecond)
}

// says waits until a maintenance has a blocker of a type.
func (s *stage) says(t *testing.T, name string, blocker v1alpha1.BlockerType) (message string) {
	t.Helper()
	patience.Eventually(t, fmt.Sprintf("maintenance %s to be blocked by %s", name, blocker), func(ctx context.Context) (string, bool) {
		m, err := s.maintenance(ctx, name)
		for i := range m.Status.NodeStatuses {
			for _, one := range m.Status.NodeStatuses[i].Blockers {
				if one.Type == blocker {
					message = one.Message
					return "", true
				}
			}
		}
		return fmt.Sprintf("%+v %v", m.Status.NodeStatuses, err), false
	})
	return message
}

// complete ends a maintenance and waits until it is gone. One that is not there is over.
func (s *stage) complete(t *testing.T, name string) {
	t.Helper()
	patience.Eventually(t, "maintenance "+name+" to be over", func(ctx context.Context) (string, bool) {
		m, err := s.maintenance(ctx, name)
		if err != nil {
			return err.Error(), client.IgnoreNotFound(err) == nil
		}
		if m.DeletionTimestamp == nil {
			err = s.Client.Delete(ctx, m)
		}
		return fmt.Sprintf("%s, %v", m.Status.Summary, err), false
	})
}
