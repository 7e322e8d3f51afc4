package budget

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	// LongestLock is the default maximum duration of a lock (skip-drain-on-upgrade).
	LongestLock = 4 * time.Hour
	// UnreadableLock is the duration of an unreadable lock after the last change of its budget.
	UnreadableLock = 10 * time.Minute
	// clockSkew is the tolerated lead of a lock writer's clock.
	clockSkew = time.Minute
	maxWords  = 1024
)

// Lock is the content of v1alpha1.LockAnnotation.
type Lock struct {
	// Holder is the result of the function Holder for a node, otherwise free text.
	Holder     string       `json:"holder"`
	Reason     string       `json:"reason,omitempty"`
	AcquiredAt metav1.Time  `json:"acquiredAt"`
	RenewedAt  *metav1.Time `json:"renewedAt,omitempty"`
	ExpiresAt  metav1.Time  `json:"expiresAt"`
}

// Write renders the lock for the annotation.
func (l Lock) Write() string {
	text, _ := json.Marshal(l)
	return string(text)
}

// Hold is a lock that is in force.
type Hold struct {
	Lock
	// Ends is the effective end, whatever the lock itself contains.
	Ends time.Time
	// Unreadable is nil if the lock can be read.
	Unreadable error
	// drain is true if it is written as only drains may write one.
	drain bool
}

// Drain returns the drain that has taken the lock; ok is false for any other lock, also if its
// holder only looks like one. An admission policy reserves the first bytes that a drain writes for
// the manager. It cannot read JSON, so any other spelling is not a lock of a drain.
func (h Hold) Drain() (maintenance, node string, ok bool) {
	if !h.drain {
		return "", "", false
	}
	return HolderOf(h.Holder)
}

// FirstLocked returns the first locked budget and its lock; nil if none is. Now and longest are
// those of LockOf.
func FirstLocked(budgets []*policyv1.PodDisruptionBudget, now time.Time, longest time.Duration) (*policyv1.PodDisruptionBudget, Hold) {
	for _, b := range budgets {
		if hold, locked := LockOf(b, now, longest); locked {
			return b, hold
		}
	}
	return nil, Hold{}
}

// Besides returns the budgets without those that the drain of this node has locked.
func Besides(node string, budgets []*policyv1.PodDisruptionBudget) []*policyv1.PodDisruptionBudget {
	var others []*policyv1.PodDisruptionBudget
	for _, b := range budgets {
		hold, _ := LockOf(b, time.Time{}, 0)
		if _, of, drain := hold.Drain(); !drain || of != node {
			others = append(others, b)
		}
	}
	return others
}

// LockOf returns the lock of the budget that is in force. A lock that cannot be read is in force for
// UnreadableLock after the last change of the budget, any other until its end, but no longer than
// longest after it was taken or renewed; 0 is LongestLock. Times in the future are not trusted.
// Callers that must not miss a lock pass skew.Earliest.
func LockOf(b *policyv1.PodDisruptionBudget, now time.Time, longest time.Duration) (hold Hold, locked bool) {
	text, present := b.Annotations[v1alpha1.LockAnnotation]
	if !present {
		return Hold{}, false
	}
	if longest <= 0 {
		longest = LongestLock
	}
	changed := lastChanged(b)
	lock, err := readLock(text)
	if err != nil {
		hold = Hold{Lock: Lock{Holder: "an unknown holder"}, Unreadable: err, Ends: changed.Add(UnreadableLock)}
		return hold, now.Before(hold.Ends)
	}
	begun := lock.AcquiredAt.Time
	if lock.RenewedAt != nil {
		begun = lock.RenewedAt.Time
	}
	if begun.IsZero() || begun.After(now.Add(clockSkew)) {
		begun = changed
	}
	hold = Hold{Lock: lock, Ends: lock.ExpiresAt.Time, drain: strings.HasPrefix(text, drainPrefix)}
	if latest := begun.Add(longest); hold.Ends.After(latest) {
		hold.Ends = latest
	}
	return hold, now.Before(hold.Ends)
}

func readLock(text string) (Lock, error) {
	var lock Lock
	if len(text) > v1alpha1.MaxLockBytes {
		return Lock{}, fmt.Errorf("annotation %s has more than %d bytes", v1alpha1.LockAnnotation, v1alpha1.MaxLockBytes)
	}
	if err := json.Unmarshal([]byte(text), &lock); err != nil {
		return Lock{}, errors.New("annotation " + v1alpha1.LockAnnotation + " is not valid JSON: " + brief(err.Error()))
	}
	switch {
	case brief(lock.Holder) == "":
		return Lock{}, errors.New("annotation " + v1alpha1.LockAnnotation + " names no holder")
	case lock.ExpiresAt.IsZero():
		return Lock{}, errors.New("annotation " + v1alpha1.LockAnnotation + " has no expiresAt")
	}
	return lock, nil
}

func lastChanged(b *policyv1.PodDisruptionBudget) time.Time {
	last := b.CreationTimestamp.Time
	for _, entry := range b.ManagedFields {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// Describe describes the lock of a budget in one line of at most three kilobytes.
func (h Hold) Describe(b *policyv1.PodDisruptionBudget) string {
	what := fmt.Sprintf("PodDisruptionBudget %s/%s is locked by %s until %s",
		b.Namespace, b.Name, brief(h.Holder), h.Ends.UTC().Format(time.RFC3339))
	switch {
	case h.Unreadable != nil:
		return what + ": " + brief(h.Unreadable.Error())
	case h.Reason != "":
		return what + ": " + brief(h.Reason)
	}
	return what
}

// brief returns the beginning of a foreign text in one line.
func brief(text string) string {
	cut := ""
	if len(text) > maxWords {
		text, cut = text[:maxWords], "…"
	}
	words := strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	return strings.Join(words, " ") + cut
}

const holderPrefix = "nodemaintenance/"

// drainPrefix starts the annotation that Write makes for such a holder. The policy
// ebbtide-drain-locks contains the same text.
const drainPrefix = `{"holder":"` + holderPrefix

// Holder returns the holder of a lock for the pods that stay on a node.
func Holder(maintenance, node string) string { return holderPrefix + maintenance + "/" + node }

// HolderOf is the reverse of Holder; ok is false for any other holder.
func HolderOf(holder string) (maintenance, node string, ok bool) {
	rest, drain := strings.CutPrefix(holder, holderPrefix)
	maintenance, node, two := strings.Cut(rest, "/")
	if !drain || !two || !isName(maintenance) || !isName(node) {
		return "", "", false
	}
	return maintenance, node, true
}

func isName(text string) bool { return len(validation.IsDNS1123Subdomain(text)) == 0 }
