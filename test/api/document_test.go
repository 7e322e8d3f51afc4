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
var ofCluster = []string{"NodeMaintenance", "NodeRollout"}

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
			example := object(t, string(block[1]))
			accepted[example.GetKind()]++
			if !slices.Contains(ofCluster, example.GetKind()) {
				example.SetNamespace(metav1.NamespaceDefault)
			}
			if err := c.Create(t.Context(), example, client.DryRunAll); err != nil {
				t.Errorf("the %s of %s is refused: %v", example.GetKind(), filepath.Base(page), err)
			}
		}
	}
	for _, kind := range []string{"NodeMaintenance", "NodeRollout", "Machine", "MachineDrainRule"} {
		if accepted[kind] == 0 {
			t.Errorf("no document shows a %s", kind)
		}
	}
}
