package helm_test

import (
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
)

// What helm lint says of the chart, with all values that people have.
func TestHelmHasNothingToSay(t *testing.T) {
	t.Parallel()
	for name, set := range sets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, message := range lint.RunAll("../ebbtide", read(t, set.values), set.namespace).Messages {
				if message.Severity > support.InfoSev {
					t.Error(message)
				}
			}
		})
	}
}
