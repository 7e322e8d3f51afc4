package budget

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	// shortestClaim is the precision of the end of a lock.
	shortestClaim = time.Second
	// longestHolder and longestReason are in characters; a NodeMaintenance has the same limit for
	// its reason.
	longestHolder = 256
	longestReason = 1024
)

// Claim is a request of a user or program, not of a drain, to lock a budget.
type Claim struct {
	// Holder locks the budget. An empty Reason keeps that of a lock that is renewed.
	Holder, Reason string
	For            time.Duration
	Now            time.Time
}

// Check returns an error in the duration or reason. CheckHolder checks the holder.
func (c Claim) Check() error {
	if c.For < shortestClaim || c.For > LongestLock {
		return fmt.Errorf("a lock is for %s to %s, not for %s; renew it before it ends if you need it longer",
			shortestClaim, plain(LongestLock), plain(c.For))
	}
	return checkWords("the reason", c.Reason, longestReason)
}

// CheckHolder returns an error if only a drain may hold a lock under this name.
func CheckHolder(holder string) error {
	switch {
	case strings.TrimSpace(holder) == "":
		return fmt.Errorf("the holder of a lock needs a name")
	case strings.HasPrefix(holder, holderPrefix):
		return fmt.Errorf("holder %q: names that begin with %s are those of drains; choose another", holder, holderPrefix)
	}
	return checkWords("the holder", holder, longestHolder)
}

// checkWords refuses texts that break the lines in which they are shown.
func checkWords(what, words string, longest int) error {
	switch {
	case utf8.RuneCountInString(words) > longest:
		return fmt.Errorf("%s has %d characters and may have %d; say it shorter", what, utf8.RuneCountInString(words), longest)
	case !utf8.ValidString(words) || strings.ContainsFunc(words, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%s %q is not one line of text; leave out line breaks and what does not show", what, words)
	}
	return nil
}

// plain formats a duration without units that are 0: 4h, not 4h0m0s.
func plain(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Lock returns the lock of the budget if the claim is granted. Obstacle is set while another
// holder's lock is in force, or one that cannot be read. The holder's own lock is renewed from now
// on, perhaps to an earlier end; it keeps its acquisition time and, unless the claim has one, its
// reason.
func (c Claim) Lock(b *policyv1.PodDisruptionBudget) (lock Lock, obstacle *Hold) {
	now := metav1.NewTime(c.Now.Truncate(time.Second))
	lock = Lock{Holder: c.Holder, Reason: c.Reason, AcquiredAt: now, ExpiresAt: metav1.NewTime(now.Add(c.For))}
	hold, locked := LockOf(b, c.Now, 0)
	switch {
	case !locked:
		return lock, nil
	case !hold.by(c.Holder):
		return Lock{}, &hold
	}
	lock.RenewedAt = &now
	if !hold.AcquiredAt.IsZero() && hold.AcquiredAt.Before(&now) {
		lock.AcquiredAt = hold.AcquiredAt
	}
	lock.Reason = cmp.Or(lock.Reason, hold.Reason)
	return lock, nil
}

func (h Hold) by(holder string) bool { return h.Unreadable == nil && h.Holder == holder }

// Release is the answer to a request to unlock a budget.
type Release string

const (
	// ReleaseNothing means that the budget has no lock.
	ReleaseNothing Release = "Nothing"
	// ReleaseEnded means that its lock has ended.
	ReleaseEnded Release = "Ended"
	// ReleaseGranted means that the annotation has to be removed.
	ReleaseGranted Release = "Granted"
	// ReleaseRefused means that another holder's lock is in force.
	ReleaseRefused Release = "Refused"
)

// ReleaseOf reports whether this holder may remove the lock. With force any holder may.
func ReleaseOf(b *policyv1.PodDisruptionBudget, holder string, now time.Time, force bool) (Release, Hold) {
	if _, present := b.Annotations[v1alpha1.LockAnnotation]; !present {
		return ReleaseNothing, Hold{}
	}
	hold, locked := LockOf(b, now, 0)
	switch {
	case force, locked && hold.by(holder):
		return ReleaseGranted, hold
	case !locked:
		return ReleaseEnded, hold
	}
	return ReleaseRefused, hold
}
