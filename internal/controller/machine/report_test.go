package machine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
)

// A cluster by kubeconfig has objects and errors with whatever text it likes. The
// owner of a hook answers for its own.
func TestMessagesOfMachinesArePrintableAndBounded(t *testing.T) {
	t.Parallel()
	says := func(message string) metav1.Condition { return metav1.Condition{Type: "Drained", Message: message} }
	tests := map[string]struct {
		before, now, want string
	}{
		"plain":                       {now: "Pod shop/web is left.", want: "Pod shop/web is left."},
		"an escape of terminals":      {now: "Pod \x1b[2Jweb\u202e is left.", want: "Pod [2Jweb is left."},
		"no text":                     {now: "Pod \xff", want: "Pod"},
		"more than can be stored":     {now: strings.Repeat("ä", 20_000), want: strings.Repeat("ä", 4094) + "…"},
		"what is there already":       {before: "\x1b[2J", now: "\x1b[2J", want: "\x1b[2J"},
		"another than what was there": {before: "one", now: "\x1b[2J", want: "[2J"},
		"a list of pods":              {now: "Pods:\n* shop/web", want: "Pods:\n* shop/web"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			decision := &lifecycle.Decision{Events: []event.Event{{Message: test.now}}}
			decision.Status.Conditions = []metav1.Condition{says(test.now)}
			fit([]metav1.Condition{says(test.before)}, decision)
			if diff := cmp.Diff(test.want, decision.Status.Conditions[0].Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			if test.before == "" {
				if diff := cmp.Diff(test.want, decision.Events[0].Message); diff != "" {
					t.Errorf("event (-want +got):\n%s", diff)
				}
			}
		})
	}
}
