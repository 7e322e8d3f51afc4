package helm_test

import (
	"testing"

	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/test/golden"
)

// docs/reference/values.md has the values of the chart with their comments; make generate writes it.
func TestReferencePageOfValues(t *testing.T) {
	t.Parallel()
	values, err := charts.Files.ReadFile("ebbtide/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "../../../docs/reference/values.md", "<!-- Made by TestReferencePageOfValues; make generate writes it. -->\n\n# Values of the chart\n\n```yaml\n"+string(values)+"```\n")
}
