package webhook

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

// Who began a maintenance is noted by what the API server knows of them, whatever they, or
// others later, write themselves.
func TestWhoBeganAMaintenanceIsNoted(t *testing.T) {
	t.Parallel()
	c := newAPI(t)
	m := sample.Maintenance(c.Pool()+"-kernel", "no-such-node")
	m.Spec.Stage = v1alpha1.StageIdle
	m.Annotations = map[string]string{v1alpha1.RequestedByAnnotation: "somebody-else"}
	must(t, c.Mighty(t, "anna").Create(t.Context(), m))
	t.Cleanup(func() {
		end := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		must(t, c.Client.Patch(context.WithoutCancel(t.Context()), m, end))
		must(t, c.Client.Delete(context.WithoutCancel(t.Context()), m))
	})
	for _, step := range []struct {
		user   string
		change func()
		want   string
	}{
		{"anna", func() {}, "anna"},
		{"bert", func() { m.Spec.Stage = v1alpha1.StageDrain }, "bert"},
		{"carl", func() { m.Annotations[v1alpha1.RequestedByAnnotation] = "anna" }, "bert"},
		{"carl", func() { m.Annotations = nil }, "bert"},
		{"carl", func() { m.Labels = map[string]string{"a": "b"} }, "bert"},
		{"carl", func() { m.Spec.Stage = v1alpha1.StageComplete }, "bert"},
	} {
		step.change()
		must(t, c.Mighty(t, step.user).Update(t.Context(), m))
		if got := m.Annotations[v1alpha1.RequestedByAnnotation]; got != step.want {
			t.Errorf("after %s it says %q, want %q", step.user, got, step.want)
		}
	}
}
