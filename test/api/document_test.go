package api

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ofCluster are the kinds of examples that have no namespace.
var ofCluster = []string{"NodeMaintenance", "NodeRollout", "NodeBudget"}

func TestExamplesOfDocumentsAreAccepted(t *testing.T) {
	t.Parallel()
	c := server(t)
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	accepted := map[string]int{}
	blocks := regexp.MustCompile("(?s)<!-- example: accepted by the API server in test/api -->\n```yaml\n(.*?)```")
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks.FindAllSubmatch(text, -1) {
			kind, err := tryExample(t, c, string(block[1]))
			if accepted[kind]++; err != nil {
				t.Errorf("the %s of %s is refused: %v", kind, filepath.Base(page), err)
			}
		}
	}
	for _, kind := range []string{"NodeMaintenance", "NodeRollout", "NodeBudget", "Machine", "MachineDrainRule"} {
		if accepted[kind] == 0 {
			t.Errorf("no document shows a %s", kind)
		}
	}
}

// tryExample returns the kind of an example, and why it is refused.
func tryExample(t *testing.T, c client.Client, text string) (kind string, err error) {
	t.Helper()
	example := object(t, text)
	if !slices.Contains(ofCluster, example.GetKind()) {
		example.SetNamespace(metav1.NamespaceDefault)
	}
	return example.GetKind(), c.Create(t.Context(), example, client.DryRunAll)
}
