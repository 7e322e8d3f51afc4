package blocker

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/golden"
)

// Agents are not in the namespace of the manager, so their pods are looked for in all.
func TestSilentAgentIsFoundInEveryNamespace(t *testing.T) {
	t.Parallel()
	b := Agent{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-one"}}}.Down()
	if b.Type != v1alpha1.BlockerNodeAgentDown || !strings.Contains(b.Suggestion, "kubectl get pods -A -l app.kubernetes.io/name=ebbtide-agent --field-selector spec.nodeName=node-one") {
		t.Errorf("blocker %s suggests %s, want the agent's pod to be found", b.Type, b.Suggestion)
	}
	golden.Message(t, string(b.Type), b.Message)
	golden.Message(t, b.Suggestion)
}
