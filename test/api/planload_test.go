package api

import (
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/cluster"
)

// planNodes is how many nodes are planned for: 1000 for the numbers of docs/design/0018.
var planNodes = flag.Int("plan-nodes", 10, "how many nodes with 20 pods each kubectl ebbtide plan looks at")

// A plan of half of a cluster is made by the program as people run it, in bounded memory.
func TestAPlanOfManyNodesNeedsLittleMemory(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true, Workload: true})
	namespace := c.Namespace(t)
	nodes := *planNodes
	fill(t, c, namespace, nodes)
	plugin := binary(t)
	began := time.Now()
	command := exec.Command(plugin, "plan", "-l", "half="+c.Pool(), "--kubeconfig", c.Kubeconfig)
	out, err := command.Output()
	took := time.Since(began)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d nodes ", nodes/2); !strings.HasPrefix(string(out), want) {
		t.Errorf("want %q in\n%s", want, out)
	}
	usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("the system does not tell what a process used")
	}
	mebibytes := usage.Maxrss >> 10
	t.Logf("%d nodes, %d pods: %s, of CPU %s, at most %d MiB", nodes, nodes*20, took.Round(time.Millisecond),
		(command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Round(time.Millisecond), mebibytes)
	if mebibytes > 500 {
		t.Errorf("it needs %d MiB, want 500 at most", mebibytes)
	}
}

// fill creates nodes with 20 pods each, of applications of 20 pods with a budget each.
func fill(t *testing.T, c *cluster.Cluster, namespace string, nodes int) {
	t.Helper()
	var all []client.Object
	name := func(i int) string { return fmt.Sprintf("%s-%d", c.Pool(), i) }
	var names []string
	for i := range nodes {
		names = append(names, name(i))
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name(i), Labels: map[string]string{corev1.LabelHostname: name(i), cluster.PoolLabel: c.Pool()}}}
		if i%2 == 0 {
			node.Labels["half"] = c.Pool()
		}
		node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110")}
		all = append(all, node)
	}
	if nodes <= 10 {
		c.ForgetNodes(t, names...)
	}
	for app := range nodes {
		labels := map[string]string{"app": fmt.Sprintf("app-%d", app)}
		all = append(all, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: labels["app"]},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels}},
		})
		for i := range 20 {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: namespace, Name: fmt.Sprintf("%s-%d", labels["app"], i), Labels: labels,
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: labels["app"], UID: types.UID(labels["app"]), Controller: new(true)}},
				},
				Spec: corev1.PodSpec{NodeName: name((app*7 + i*13) % nodes), Containers: []corev1.Container{{Name: "app", Image: "app", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")},
				}}}},
			}
			for v := range 20 {
				pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", v), Value: strings.Repeat("v", 50)})
			}
			all = append(all, pod)
		}
	}
	together, ctx := errgroup.WithContext(t.Context())
	together.SetLimit(32)
	for _, object := range all {
		together.Go(func() error { return c.Client.Create(ctx, object) })
	}
	if err := together.Wait(); err != nil {
		t.Fatalf("fill the cluster: %v", err)
	}
}
