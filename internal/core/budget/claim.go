package budget

import (
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
	// shortestClaim is the unit in which a lock says when it ends.
	shortestClaim = time.Second
	// longestHolder and longestReason keep what shows a lock readable; a
	// NodeMaintenance has the same limit for its reason. In characters.
	longestHolder = 256
	longestReason = 1024
)

// Claim is the wish of a person, or of a program that is no drain, to lock a
// budget. Drains take their locks by rules of their own.
type Claim struct {
	// Holder is who wants it, and Reason what for. No reason keeps the one of a
	// lock that is renewed.
	Holder, Reason string
	// For is how long, from Now.
	For time.Duration
	Now time.Time
}

// Check returns what is wrong with the time or the reason, nil if nothing. The
// holder is for CheckHolder.
func (c Claim) Check() error {
	if c.For < shortestClaim || c.For > LongestLock {
		return fmt.Errorf("a lock is for %s to %s, not for %s; whoever needs it longer renews it before it ends",
			shortestClaim, plain(LongestLock), plain(c.For))
	}
	return checkWords("the reason", c.Reason, longestReason)
}

// CheckHolder returns why nobody but a drain may be the holder of a lock under
// this name, nil if anybody may.
func CheckHolder(holder string) error {
	switch {
	case strings.TrimSpace(holder) == "":
		return fmt.Errorf("the holder of a lock needs a name")
	case strings.HasPrefix(holder, holderPrefix):
		return fmt.Errorf("holder %q: names that begin with %s are those of drains; choose another", holder, holderPrefix)
	}
	return checkWords("the holder", holder, longestHolder)
}

// checkWords keeps out what would spread over the lines of whoever shows it.
func checkWords(what, words string, longest int) error {
	switch {
	case utf8.RuneCountInString(words) > longest:
		return fmt.Errorf("%s has %d characters and may have %d; say it shorter", what, utf8.RuneCountInString(words), longest)
	case !utf8.ValidString(words) || strings.ContainsFunc(words, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%s %q is not one line of text; leave out line breaks and what does not show", what, words)
	}
	return nil
}

// plain is a duration without the units that are 0: 4h, not 4h0m0s.
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

// Lock returns the lock that the budget is to bear if the claim is granted. It is
// refused, and obstacle is why, while somebody else's lock is in force, or one
// that nobody can read. A lock of the holder's own is renewed from now on, which
// may also make it shorter: it keeps when it was acquired and, unless the claim
// has one, its reason. A lock that has ended is nobody's.
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
	if lock.Reason == "" {
		lock.Reason = hold.Reason
	}
	return lock, nil
}

func (h Hold) by(holder string) bool { return h.Unreadable == nil && h.Holder == holder }

// Release is the answer to somebody who wants a budget not to be locked.
type Release string

const (
	// ReleaseNothing says that the budget bears no lock.
	ReleaseNothing Release = "Nothing"
	// ReleaseEnded says that it bears one that has ended and holds nobody up.
	ReleaseEnded Release = "Ended"
	// ReleaseGranted says that the annotation is to be removed.
	ReleaseGranted Release = "Granted"
	// ReleaseRefused says that the lock is in force and not the holder's own.
	ReleaseRefused Release = "Refused"
)

// ReleaseOf says whether this holder may remove the lock of the budget, and which
// lock that is. With force anybody may, also one that has ended.
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
