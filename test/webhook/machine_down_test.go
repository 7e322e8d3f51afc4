package webhook

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// silence has the webhooks for Machines of the chart asked about a namespace at a
// place where nobody answers.
func silence(t *testing.T, c *cluster.Cluster, namespace string) {
	t.Helper()
	for _, o := range cluster.Chart(t) {
		if o.GetKind() != "ValidatingWebhookConfiguration" {
			continue
		}
		webhooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		must(t, err)
		var silent []any
		for _, w := range webhooks {
			if webhook := w.(map[string]any); strings.HasPrefix(webhook["name"].(string), "machine") {
				webhook["clientConfig"] = map[string]any{"url": "https://localhost:1/"}
				webhook["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}}
				silent = append(silent, webhook)
			}
		}
		o.Object["webhooks"] = silent
		o.SetName(namespace)
		must(t, c.Client.Create(t.Context(), o))
		t.Cleanup(func() { must(t, c.Client.Delete(context.WithoutCancel(t.Context()), o)) })
	}
}

// What holds a Machine can be taken away while our manager is down.
func TestOnlyMoreHooksNeedTheManagerWhileAMachineGoes(t *testing.T) {
	c := newAPI(t)
	m := sample.Machine(c.Namespace(t), "m")
	m.Finalizers = []string{"example.com/holds"}
	m.Annotations = map[string]string{v1alpha1.PreDrainHookAnnotationPrefix + "/apps": "mover"}
	m.Spec.LifecycleHooks.PreDrain = []v1alpha1.LifecycleHook{{Name: "MoveApps", Owner: "mover"}, {Name: "MoveData", Owner: "mover"}}
	must(t, c.Client.Create(t.Context(), m))
	silence(t, c, m.Namespace)
	must(t, c.Client.Delete(t.Context(), m))
	merge := func(document string, options ...client.PatchOption) error {
		return c.Client.Patch(context.WithoutCancel(t.Context()), m.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(document)), options...)
	}
	patience.Eventually(t, "the API server to ask nobody", func(context.Context) (string, bool) {
		err := merge(`{"spec":{"lifecycleHooks":{"preTerminate":[{"name":"Backup","owner":"keeper"}]}}}`, client.DryRunAll)
		return fmt.Sprint(err), strings.Contains(fmt.Sprint(err), `failed calling webhook "machines.ebbtide.dev"`)
	})
	for _, change := range []string{
		`{"metadata":{"labels":{"team":"sales"},"annotations":{"machine.cluster.x-k8s.io/exclude-node-draining":""}}}`,
		`{"spec":{"lifecycleHooks":{"preDrain":[{"name":"MoveData","owner":"mover"},{"name":"MoveApps","owner":"mover"}]}}}`,
		`{"spec":{"lifecycleHooks":{"preDrain":[{"name":"MoveData","owner":"mover"}]}}}`,
		`{"metadata":{"annotations":{"pre-drain.delete.hook.machine.cluster.x-k8s.io/apps":null}}}`,
		`{"spec":{"lifecycleHooks":null}}`,
		`{"metadata":{"annotations":null}}`,
		`{"metadata":{"finalizers":null}}`,
	} {
		if err := merge(change); err != nil {
			t.Errorf("%s: %v", change, err)
		}
	}
}
