package webhook

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestCallersAreRememberedForAMoment(t *testing.T) {
	t.Parallel()
	known, now := newCallers(), time.Now()
	jane := caller{"jane", types.NamespacedName{Namespace: "shop", Name: "db-0"}}
	joe := caller{"joe", jane.pod}
	known.note(jane, "first", now)
	for name, tc := range map[string]struct {
		who  caller
		at   time.Time
		want types.UID
	}{
		"a moment later": {jane, now.Add(20 * time.Second), "first"},
		"much later":     {jane, now.Add(40 * time.Second), ""},
		"another user":   {joe, now, ""},
	} {
		if got := known.recall(tc.who, tc.at); got != tc.want {
			t.Errorf("%s: waits for %q, want %q", name, got, tc.want)
		}
	}
	known.note(joe, "second", now.Add(time.Minute))
	if len(known.known) != 1 {
		t.Errorf("remembered: %v, want only who has called last", known.known)
	}
	known.forget(joe)
	if got := known.recall(joe, now.Add(time.Minute)); got != "" {
		t.Errorf("joe waits for %q after being told", got)
	}
}
