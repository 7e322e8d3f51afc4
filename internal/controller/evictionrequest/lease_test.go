package evictionrequest

import (
	"testing"
	"time"

	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// Of two Ebbtides the first one has the Lease, as long as it renews it; whose managers
// change has it at once.
func TestALeaseGoesOverWhenNobodyRenewsIt(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	has := func(l *lease, force bool, want string) {
		t.Helper()
		holder, err := l.take(s.ctx, force)
		s.must(err)
		s.expect("who has the Lease, to "+l.holder, holder, want)
	}
	first, second := &lease{client: s.client, holder: "Ebbtide in namespace a", now: time.Now}, &lease{client: s.client, holder: "Ebbtide in namespace b", now: time.Now}
	has(first, false, "")
	has(second, false, "Ebbtide in namespace a")
	// The other one has a new leader, which knows nothing of the one before.
	has(&lease{client: s.client, holder: "Ebbtide in namespace a", now: time.Now}, false, "")
	second.since = second.since.Add(-core.LeaseDuration)
	has(second, false, "Ebbtide in namespace a")
	// Nobody renews it any more. Its times are those of a clock that is an hour behind.
	second.since = second.since.Add(-core.LeaseDuration)
	has(second, false, "")
	has(first, false, "Ebbtide in namespace b")
	has(first, true, "")
	has(second, false, "Ebbtide in namespace a")
}
