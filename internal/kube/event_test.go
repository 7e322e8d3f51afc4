package kube_test

import (
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/internal/kube"
)

func TestNoteFitsTheEventsAPI(t *testing.T) {
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
			if got := kube.Note(test.message); got != test.want {
				t.Errorf("Note of %d bytes = %d bytes ending in %q, want %d bytes", len(test.message), len(got), got[len(got)-6:], len(test.want))
			}
		})
	}
}
