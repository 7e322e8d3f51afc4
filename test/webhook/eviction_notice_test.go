package webhook

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/validate"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// told is what the API server has said to one client beside its answers.
type told struct {
	mu   sync.Mutex
	text []string
}

func (o *told) HandleWarningHeader(_ int, _ string, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, text)
}

func (o *told) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := o.text
	o.text = nil
	return text
}

// newEvicter is a person who may evict pods, and what they are told.
func newEvicter(t *testing.T, c *cluster.Cluster) (client.Client, *told) {
	t.Helper()
	name, _ := c.User(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}})
	heard := &told{}
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	config.WarningHandler = heard
	user, err := client.New(config, client.Options{Scheme: c.Client.Scheme()})
	must(t, err)
	return user, heard
}

// newNode creates a node and returns when our webhooks know it.
func newNode(t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	must(t, c.Client.Create(t.Context(), node))
	heard := &told{}
	config := rest.CopyConfig(c.Config)
	config.WarningHandler = heard
	probe, err := client.New(config, client.Options{Scheme: c.Client.Scheme()})
	must(t, err)
	patience.Eventually(t, "the webhooks to know node "+name, func(ctx context.Context) (string, bool) {
		err := probe.Create(ctx, sample.Maintenance(name, name), client.DryRunAll)
		warnings := fmt.Sprint(heard.take(), err)
		return warnings, !strings.Contains(warnings, "matches no node now")
	})
}

// Whoever evicts pods is told once for each node how a NodeMaintenance would do it,
// also by an answer that has them wait, and what is said can be done.
func TestWhoEvictsIsToldOfNodeMaintenancesOnce(t *testing.T) {
	c := newAPI(t)
	namespace := c.Namespace(t)
	jane, toJane := newEvicter(t, c)
	joe, toJoe := newEvicter(t, c)
	nodes := []string{namespace + "-one", namespace + "-two"}
	newNode(t, c, nodes[0])
	newNode(t, c, nodes[1])
	notice := func(node string) []string {
		return []string{validate.EvictionNotice(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, nil)}
	}
	for n, step := range []struct {
		user  client.Client
		heard *told
		node  string
		moved bool
		want  []string
	}{
		{jane, toJane, nodes[0], true, notice(nodes[0])},
		{jane, toJane, nodes[0], false, nil},
		{joe, toJoe, nodes[0], false, notice(nodes[0])},
		{jane, toJane, nodes[1], false, notice(nodes[1])},
		{jane, toJane, nodes[0], true, nil},
	} {
		pod := sample.Pod(namespace, fmt.Sprintf("web-%d", n))
		pod.Spec.NodeName = step.node
		if step.moved {
			pod.Annotations = registered("mover.example.com", "20")
		}
		must(t, c.Client.Create(t.Context(), pod))
		err := evictWith(t, step.user, pod, metav1.DeleteOptions{})
		if apierrors.IsTooManyRequests(err) != step.moved || !step.moved && err != nil {
			t.Errorf("pod %s is evicted with %v, want to wait: %v", pod.Name, err, step.moved)
		}
		if diff := cmp.Diff(step.want, step.heard.take()); diff != "" {
			t.Errorf("for pod %s of %s, told (-want +got):\n%s", pod.Name, step.node, diff)
		}
	}
	_, spec, _ := strings.Cut(notice(nodes[0])[0], "with spec ")
	spec, _, _ = strings.Cut(spec, " cordons the node")
	m := &v1alpha1.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	must(t, yaml.UnmarshalStrict([]byte(spec), &m.Spec))
	must(t, c.Client.Create(t.Context(), m, client.DryRunAll))
}
