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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// maintains is what everybody may do here who may not delete every node.
var maintains = rbacv1.PolicyRule{
	APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"nodemaintenances"},
	Verbs: []string{"get", "create", "update", "patch", "delete"},
}

// deletes is the right to delete these nodes; without names, every node.
func deletes(nodes ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, ResourceNames: nodes, Verbs: []string{"delete"}}
}

// newNodes creates nodes with a name of this test.
func newNodes(t *testing.T, c *cluster.Cluster, number int, labels map[string]string) []string {
	t.Helper()
	var names []string
	for i := range number {
		name := fmt.Sprintf("%s-%02d", c.Pool(), i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
		for key, value := range labels {
			node.Labels[key] = value
		}
		must(t, c.Client.Create(t.Context(), node))
		t.Cleanup(func() { must(t, c.Client.Delete(context.WithoutCancel(t.Context()), node)) })
		names = append(names, name)
	}
	return names
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantRefused wants a refusal by our webhook in words that contain these.
func wantRefused(t *testing.T, err error, words ...string) {
	t.Helper()
	wantRefusedBy(t, "nodemaintenances.ebbtide.dev", err, words...)
}

// wantRefusedBy wants a refusal by a webhook in words that contain these.
func wantRefusedBy(t *testing.T, webhook string, err error, words ...string) {
	t.Helper()
	words = append(words, fmt.Sprintf("admission webhook %q denied the request", webhook))
	for _, word := range words {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), word) {
			t.Errorf("error %v, want a refusal that says %q", err, word)
		}
	}
}

// What holds nodes bears the finalizer from its first moment; what is over gets none.
func TestTheFinalizerComesWithTheStage(t *testing.T) {
	ours := []string{v1alpha1.MaintenanceCompletionFinalizer}
	const theirs = "example.com/audit"
	for name, test := range map[string]struct {
		stage      v1alpha1.NodeMaintenanceStage
		finalizers []string
		want       []string
	}{
		"idle":                    {stage: v1alpha1.StageIdle},
		"cordon":                  {stage: v1alpha1.StageCordon, want: ours},
		"drain":                   {stage: v1alpha1.StageDrain, want: ours},
		"drain, asked for by all": {stage: v1alpha1.StageDrain, finalizers: ours, want: ours},
		"drain beside others":     {stage: v1alpha1.StageDrain, finalizers: []string{theirs}, want: append([]string{theirs}, ours...)},
		"complete":                {stage: v1alpha1.StageComplete},
	} {
		t.Run(name, func(t *testing.T) {
			c := newAPI(t)
			m := sample.Maintenance(c.Pool(), "nobody")
			m.Spec.Stage, m.Finalizers = test.stage, test.finalizers
			must(t, c.Client.Create(t.Context(), m))
			t.Cleanup(func() {
				must(t, c.Client.Patch(context.WithoutCancel(t.Context()), m,
					client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"stage":"Complete"},"metadata":{"finalizers":null}}`))))
				must(t, c.Client.Delete(context.WithoutCancel(t.Context()), m))
			})
			if diff := cmp.Diff(test.want, m.Finalizers); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
			if test.stage != v1alpha1.StageIdle {
				return
			}
			must(t, c.Client.Patch(t.Context(), m, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"stage":"Drain"}}`))))
			if diff := cmp.Diff(ours, m.Finalizers); diff != "" {
				t.Errorf("finalizers when the stage has moved on (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheDrainPlanIsCompletedOnce(t *testing.T) {
	c := newAPI(t)
	m := sample.Maintenance(c.Pool(), "nobody")
	own := v1alpha1.DrainPlanEntry{PodType: v1alpha1.PodTypeDefault, PodPriority: 5000}
	m.Spec.DrainPlan = []v1alpha1.DrainPlanEntry{own}
	must(t, c.Client.Create(t.Context(), m))
	t.Cleanup(func() { must(t, c.Client.Delete(context.WithoutCancel(t.Context()), m)) })
	full := append([]v1alpha1.DrainPlanEntry{own}, drainplan.Defaults()...)
	if diff := cmp.Diff(full, m.Spec.DrainPlan); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}

	for name, plan := range map[string]string{
		"as it was written": `[{"podPriority":5000}]`,
		"as it is":          planJSON(t, full),
	} {
		patch := fmt.Sprintf(`{"spec":{"reason":%q,"drainPlan":%s}}`, name, plan)
		if err := c.Client.Patch(t.Context(), m, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Errorf("apply the plan again, %s: %v", name, err)
		}
		if diff := cmp.Diff(full, m.Spec.DrainPlan); diff != "" || m.Spec.Reason != name {
			t.Errorf("applied again, %s: reason %q, plan (-want +got):\n%s", name, m.Spec.Reason, diff)
		}
	}
	for name, plan := range map[string]string{
		"another entry": `[{"podPriority":6000}]`,
		"no entry":      `[]`,
	} {
		patch := fmt.Sprintf(`{"spec":{"drainPlan":%s}}`, plan)
		err := c.Client.Patch(t.Context(), m, client.RawPatch("application/merge-patch+json", []byte(patch)))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "drainPlan is immutable") {
			t.Errorf("%s: error %v, want that drainPlan is immutable", name, err)
		}
	}
}

func planJSON(t *testing.T, plan []v1alpha1.DrainPlanEntry) string {
	t.Helper()
	data, err := yaml.Marshal(plan)
	must(t, err)
	data, err = yaml.YAMLToJSON(data)
	must(t, err)
	return string(data)
}

func TestAManifestCanBeAppliedAgainOnTheServer(t *testing.T) {
	c := newAPI(t)
	for name, plan := range map[string]string{"without-plan": "", "with-plan": "drainPlan: [{podPriority: 5000}]"} {
		t.Run(name, func(t *testing.T) {
			manifest := `
apiVersion: ebbtide.dev/v1alpha1
kind: NodeMaintenance
metadata: {name: ` + c.Pool() + "-" + name + `}
spec:
  stage: STAGE
  nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: In, values: [none]}]}]}
  ` + plan
			idle := strings.ReplaceAll(manifest, "STAGE", "Idle")
			first := applied(t, c, idle)
			applied(t, c, idle)
			again := applied(t, c, strings.ReplaceAll(manifest, "STAGE", "Cordon"))
			if diff := cmp.Diff(first.Spec.DrainPlan, again.Spec.DrainPlan); diff != "" || again.Spec.Stage != v1alpha1.StageCordon {
				t.Errorf("applied again: stage %s, plan (-first +again):\n%s", again.Spec.Stage, diff)
			}
			if len(first.Spec.DrainPlan) < len(drainplan.Defaults()) {
				t.Errorf("the plan has %d entries", len(first.Spec.DrainPlan))
			}
		})
	}
}

// applied is a manifest after it was applied by the server.
func applied(t *testing.T, c *cluster.Cluster, manifest string) *v1alpha1.NodeMaintenance {
	t.Helper()
	object := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(manifest), &object.Object))
	must(t, c.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("somebody")))
	m := &v1alpha1.NodeMaintenance{}
	must(t, c.Client.Get(t.Context(), client.ObjectKey{Name: object.GetName()}, m))
	return m
}

func TestNobodyDrainsANodeThatTheyMayNotDelete(t *testing.T) {
	c := newAPI(t)
	nodes := newNodes(t, c, 40, nil)
	create := func(user client.Client, suffix string, nodes ...string) (*v1alpha1.NodeMaintenance, error) {
		m := sample.Maintenance(c.Pool()+suffix, nodes...)
		return m, user.Create(t.Context(), m)
	}

	t.Run("a user who may delete every node", func(t *testing.T) {
		_, user := c.User(t, maintains, deletes())
		m, err := create(user, "-all", nodes...)
		must(t, err)
		must(t, user.Delete(t.Context(), m))
	})
	t.Run("a user who may delete no node", func(t *testing.T) {
		name, user := c.User(t, maintains)
		_, err := create(user, "-none", nodes[:6]...)
		three := fmt.Sprintf(`user %q may not delete nodes %s, %s, %s and`, name, nodes[0], nodes[1], nodes[2])
		wantRefused(t, err, three+" 3 more", `ask for the verb "delete" on nodes`)
		_, err = create(user, "-none", nodes...)
		wantRefused(t, err, three+" at least 29 more of the 40 that are selected")
		_, err = create(user, "-nobody", "no-such-node")
		wantRefused(t, err, fmt.Sprintf(`user %q may not delete node no-such-node,`, name))
	})
	t.Run("a user who may delete two nodes", func(t *testing.T) {
		name, user := c.User(t, maintains, deletes(nodes[0], nodes[1]))
		m, err := create(user, "-two", nodes[:2]...)
		must(t, err)

		m.Spec.NodeSelector = sample.Maintenance("", nodes[1:3]...).Spec.NodeSelector
		wantRefused(t, user.Update(t.Context(), m.DeepCopy()), fmt.Sprintf("user %q may not delete node %s,", name, nodes[2]))

		must(t, c.Client.Update(t.Context(), m))
		m.Spec.NodeSelector = sample.Maintenance("", nodes[:2]...).Spec.NodeSelector
		wantRefused(t, user.Update(t.Context(), m.DeepCopy()), "may not delete node "+nodes[2]+",")
		wantRefused(t, user.Delete(t.Context(), m), "may not delete node "+nodes[2]+",")

		must(t, c.Client.Update(t.Context(), m))
		m.Spec.Stage = v1alpha1.StageCordon
		must(t, user.Update(t.Context(), m))
		must(t, user.Delete(t.Context(), m))
	})
	t.Run("a user whose nodes are gone", func(t *testing.T) {
		_, user := c.User(t, maintains)
		m, err := create(c.Client, "-gone", "no-such-node")
		must(t, err)
		must(t, user.Delete(t.Context(), m))
	})
}

// heard collects what an API server warns of.
type heard struct {
	mu   sync.Mutex
	text []string
}

func (h *heard) HandleWarningHeader(_ int, _, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, text)
}

// take returns what was said since it was called last.
func (h *heard) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	text := h.text
	h.text = nil
	return text
}
