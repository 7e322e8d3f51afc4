package kube_test

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"

	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/kube"
)

func TestEventsFitTheEventsAPI(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ message, want string }{
		"a short message stays as it is":      {message: "Drained.", want: "Drained."},
		"1,024 bytes are not too long":        {message: strings.Repeat("a", 1024), want: strings.Repeat("a", 1024)},
		"a longer one ends in an ellipsis":    {message: strings.Repeat("a", 1025), want: strings.Repeat("a", 1021) + "…"},
		"a character is never cut in the mid": {message: strings.Repeat("é", 600), want: strings.Repeat("é", 510) + "…"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := events.NewFakeRecorder(1)
			kube.Emitter(recorder)(event.Event{Type: "Normal", Reason: "Tested", Message: test.message})
			if got, want := <-recorder.Events, "Normal Tested "+test.want; got != want {
				t.Errorf("a message of %d bytes became %d bytes ending in %q, want %d bytes", len(test.message), len(got), got[len(got)-6:], len(want))
			}
		})
	}
}
