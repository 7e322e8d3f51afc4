package api

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Together these set every field of every spec.

// An agent must not keep managers from reading the NodeAgents of all other nodes. A list in place of
// a time would.
func TestTimeInStatusThatIsAListIsRefused(t *testing.T) {
	t.Parallel()
	c := server(t)
	o := create(t, c, "{apiVersion: ebbtide.dev/v1alpha1, kind: NodeAgent, metadata: {name: hostile}}")
	for field, status := range map[string]string{
		"status.staticPods[0].sinceTime":          `{"staticPods": [{"namespace": "a", "name": "b", "state": "Held", "sinceTime": [true]}]}`,
		"status.conditions[0].lastTransitionTime": `{"conditions": [{"type": "A", "status": "True", "reason": "B", "message": "", "lastTransitionTime": [true]}]}`,
	} {
		err := c.Status().Patch(t.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status": `+status+`}`)))
		refusal{field: "must be a time"}.expect(t, err)
	}
}

// tooSmall and tooLarge are what the API server says of a field beyond its bounds.
