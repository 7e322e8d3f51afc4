package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PoolLabel is on every node of a test; its value is the test's own.
const PoolLabel = "sandbox.ebbtide.dev/pool"

type counter struct{ n atomic.Int32 }

func (c *counter) next() int { return int(c.n.Add(1)) }

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// slug makes a test's name usable in names of objects.
func slug(name string) string {
	s := notInName.ReplaceAllString(strings.ToLower(name), "-")
	return strings.Trim(s[:min(len(s), 40)], "-")
}

// Pool is the value of PoolLabel on the nodes of this test.
func (c *Cluster) Pool() string { return c.prefix }

// AddNodes creates n nodes that pods of this test's namespaces can use, and
// removes them and their pods when the test ends.
func (c *Cluster) AddNodes(t testing.TB, n int) []string {
	t.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-n%d", c.prefix, c.created.next())
	}
	c.NamedNodes(t, nil, names...)
	return names
}

// NamedNodes is AddNodes for a test that chooses the names, which must be its
// own in the whole cluster, and further labels.
func (c *Cluster) NamedNodes(t testing.TB, labels map[string]string, names ...string) {
	t.Helper()
	c.ForgetNodes(t, names...)
	all := map[string]string{PoolLabel: c.prefix}
	maps.Copy(all, labels)
	if err := c.plane.CreateNodes(t.Context(), names, all); err != nil {
		t.Fatal(err)
	}
}

// ForgetNodes removes nodes, whoever creates them, and their pods when the test
// ends.
func (c *Cluster) ForgetNodes(t testing.TB, names ...string) {
	t.Helper()
	c.undo(t, func(ctx context.Context) { c.removeNodes(ctx, t, names) })
}

func (c *Cluster) removeNodes(ctx context.Context, t testing.TB, names []string) {
	for _, name := range names {
		// Nobody ends the pods of a node that is gone.
		pods := &corev1.PodList{}
		err := c.Client.List(ctx, pods, client.MatchingFields{"spec.nodeName": name})
		for i := range pods.Items {
			err = errors.Join(err, c.remove(ctx, &pods.Items[i]))
		}
		err = errors.Join(err, c.remove(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		if err != nil {
			t.Errorf("remove node %s: %v", name, err)
		}
	}
}

// remove deletes an object at once, whatever its finalizers.
func (c *Cluster) remove(ctx context.Context, object client.Object) error {
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	err := client.IgnoreNotFound(c.Client.Patch(ctx, object, patch))
	return errors.Join(err, client.IgnoreNotFound(c.Client.Delete(ctx, object, client.GracePeriodSeconds(0))))
}

// Namespace creates a namespace whose pods stay on the nodes of this test, unless they
// are real ones, and deletes it when the test ends. DaemonSets need the node selector
// PoolLabel: Pool() in their template besides.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("%s-ns%d", c.prefix, c.created.next())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if len(c.plane.RealNodes()) == 0 {
		namespace.Annotations = map[string]string{"scheduler.alpha.kubernetes.io/node-selector": PoolLabel + "=" + c.prefix}
	}
	c.undo(t, func(ctx context.Context) {
		if err := client.IgnoreNotFound(c.Client.Delete(ctx, namespace)); err != nil {
			t.Errorf("delete namespace %s: %v", name, err)
		}
	})
	if err := c.Client.Create(t.Context(), namespace); err != nil {
		t.Fatalf("create namespace: %v", err)
	}
	return name
}

// Apply creates the objects of a YAML text, or makes existing ones like it.
// Namespaced objects without a namespace go into the given one.
func (c *Cluster) Apply(t testing.TB, namespace, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("apply: %v", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		c.applyOne(t, namespace, object)
		objects = append(objects, object)
	}
}

func (c *Cluster) applyOne(t testing.TB, namespace string, object *unstructured.Unstructured) {
	t.Helper()
	namespaced, err := c.Client.IsObjectNamespaced(object)
	if err != nil {
		t.Fatalf("apply %s: %v", object.GetKind(), err)
	}
	if namespaced && object.GetNamespace() == "" {
		object.SetNamespace(namespace)
	}
	err = c.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner("test"), client.ForceOwnership)
	if err != nil {
		t.Fatalf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
	}
	if !namespaced {
		c.undo(t, func(ctx context.Context) { c.removeShared(ctx, t, object) })
	}
}

// removeShared removes an object that no namespace takes with it.
func (c *Cluster) removeShared(ctx context.Context, t testing.TB, object *unstructured.Unstructured) {
	if err := c.remove(ctx, object); err != nil && !apierrors.IsConflict(err) {
		t.Errorf("remove %s %s: %v", object.GetKind(), object.GetName(), err)
	}
}
