package evictionrequest_test

import (
	"testing"

	"ebbtide.dev/ebbtide/internal/controller/evictionrequest"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
)

// Of two Ebbtides the first one has the Lease, as long as it renews it; whose managers
// change has it at once.
func TestExpiredLeaseIsTakenOver(t *testing.T) {
	t.Parallel()
	s := newMemory(t)
	has := func(l *evictionrequest.Lease, force bool, want string) {
		t.Helper()
		holder, err := l.Take(s.Ctx, force)
		s.Must(err)
		s.Expect("who has the Lease, to "+l.Holder(), holder, want)
	}
	first, second := evictionrequest.NewLease(s.Client, "Ebbtide in namespace a"), evictionrequest.NewLease(s.Client, "Ebbtide in namespace b")
	has(first, false, "")
	has(second, false, "Ebbtide in namespace a")
	// The other one has a new leader, which knows nothing of the one before.
	has(evictionrequest.NewLease(s.Client, "Ebbtide in namespace a"), false, "")
	second.Age(core.LeaseDuration)
	has(second, false, "Ebbtide in namespace a")
	// Nobody renews it any more. Its times are those of a clock that is an hour behind.
	second.Age(core.LeaseDuration)
	has(second, false, "")
	has(first, false, "Ebbtide in namespace b")
	has(first, true, "")
	has(second, false, "Ebbtide in namespace a")
}
