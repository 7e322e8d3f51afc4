package blocker_test

import (
	"fmt"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/budget"
)

// Attack: whoever runs a webhook, writes the status of an Evacuation or locks a budget has
// the person who looks for help run a command.
func TestSuggestedCommandHasNoTextOfOthers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x'; touch owned; echo '", "$(touch owned)", "x owned", "owned\n", "--owned", "`owned`"} {
		for what, f := range map[string]*blocker.Facts{
			"a webhook's name in an answer": facts(refused(v1alpha1.BlockerWebhookDenied, fmt.Sprintf("admission webhook %q denied the request: no", text))),
			"the same, as it is":            facts(refused(v1alpha1.BlockerWebhookDenied, `admission webhook "`+text+`" denied the request: no`)),
			"the budget that refused":       facts(by(text, refused(v1alpha1.BlockerPDBExhausted, "no"))),
			"the budget that is locked":     facts(by(text, refused(v1alpha1.BlockerPDBLocked, "no"))),
			"the holder of a lock": facts(by("web", refused(v1alpha1.BlockerPDBLocked, "no")),
				locked("web", budget.Holder(text, text), asItIs)),
		} {
			b, found := blocker.Of(f)
			if !found || b.Suggestion == "" || strings.Contains(b.Suggestion, "owned") {
				t.Errorf("%s is %q: suggested is %q", what, text, b.Suggestion)
			}
		}
	}
}
