package budget_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

// midday is the time of every look at a lock.
var midday = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) metav1.Time { return metav1.Time{Time: midday.Add(d)} }

// annotated is the budget web, made two days ago and changed an hour ago, with an
// annotation. Its status was written a second ago, as always.
func annotated(annotation string) *policyv1.PodDisruptionBudget {
	made, changed, counted := after(-48*time.Hour), after(-time.Hour), after(-time.Second)
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", CreationTimestamp: made,
		Annotations: map[string]string{v1alpha1.LockAnnotation: annotation},
		ManagedFields: []metav1.ManagedFieldsEntry{
			{Time: &made}, {Time: &changed}, {Time: nil}, {Time: &counted, Subresource: "status"},
		},
	}}
}

func lockText(change func(*budget.Lock)) string {
	lock := budget.Lock{Holder: "dba@example.com", Reason: "defragmentation", AcquiredAt: after(-time.Minute), ExpiresAt: after(time.Hour)}
	change(&lock)
	return lock.Write()
}

func acquired(at metav1.Time) func(*budget.Lock) { return func(l *budget.Lock) { l.AcquiredAt = at } }

func TestLockHoldsUntilItsEndWithinABound(t *testing.T) {
	t.Parallel()
	renewed := func(acquired, at, expires time.Duration) string {
		return lockText(func(l *budget.Lock) {
			moment := after(at)
			l.AcquiredAt, l.RenewedAt, l.ExpiresAt = after(acquired), &moment, after(expires)
		})
	}
	tests := map[string]struct {
		text    string
		longest time.Duration
		// ends is after midday; it is over by then if it is not positive.
		ends time.Duration
	}{
		"until it says":                             {lockText(func(*budget.Lock) {}), 0, time.Hour},
		"it ended a second ago":                     {lockText(func(l *budget.Lock) { l.ExpiresAt = after(-time.Second) }), 0, -time.Second},
		"it ends now":                               {lockText(func(l *budget.Lock) { l.ExpiresAt = after(0) }), 0, 0},
		"years ahead":                               {lockText(func(l *budget.Lock) { l.ExpiresAt = after(24 * 365 * 10 * time.Hour) }), 0, 4*time.Hour - time.Minute},
		"longer than the manager lets":              {lockText(func(*budget.Lock) {}), 30 * time.Minute, 29 * time.Minute},
		"the manager lets it be longer":             {lockText(func(l *budget.Lock) { l.ExpiresAt = after(10 * time.Hour) }), 24 * time.Hour, 10 * time.Hour},
		"the manager was told nonsense":             {lockText(func(l *budget.Lock) { l.ExpiresAt = after(10 * time.Hour) }), -time.Hour, 4*time.Hour - time.Minute},
		"taken too long ago":                        {lockText(acquired(after(-5 * time.Hour))), 0, -time.Hour},
		"taken long ago and renewed":                {renewed(-72*time.Hour, -time.Minute, time.Hour), 0, time.Hour},
		"renewed too long ago":                      {renewed(-72*time.Hour, -5*time.Hour, time.Hour), 0, -time.Hour},
		"a clock that is a little ahead":            {lockText(func(l *budget.Lock) { l.AcquiredAt, l.ExpiresAt = after(time.Minute), after(9*time.Hour) }), 0, 4*time.Hour + time.Minute},
		"taken in the future, so since the change":  {lockText(func(l *budget.Lock) { l.AcquiredAt, l.ExpiresAt = after(time.Hour), after(9*time.Hour) }), 0, 3 * time.Hour},
		"renewed in the future":                     {renewed(-time.Minute, 2*time.Minute, 9*time.Hour), 0, 3 * time.Hour},
		"nobody says since when":                    {`{"holder":"dba","expiresAt":"2030-01-01T00:00:00Z"}`, 0, 3 * time.Hour},
		"renewed at no time":                        {`{"holder":"dba","renewedAt":"0001-01-01T00:00:00Z","expiresAt":"2030-01-01T00:00:00Z"}`, 0, 3 * time.Hour},
		"another time zone":                         {`{"holder":"dba","acquiredAt":"2026-03-01T13:00:00+01:00","expiresAt":"2026-03-01T14:00:00+01:00"}`, 0, time.Hour},
		"more than we know of":                      {`{"holder":"dba","acquiredAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-01T13:00:00Z","ticket":4711}`, 0, time.Hour},
		"taken in another century":                  {`{"holder":"dba","acquiredAt":"1999-12-31T20:00:00Z","expiresAt":"9999-01-01T00:00:00Z"}`, 0, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Sub(midday)},
		"no JSON at all, since the change":          {"mine!", 0, -50 * time.Minute},
		"no JSON at all, however long locks may be": {"mine!", time.Second, -50 * time.Minute},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hold, locked := budget.LockOf(annotated(tc.text), midday, tc.longest)
			if ends := hold.Ends.Sub(midday); ends != tc.ends || locked != (tc.ends > 0) {
				t.Errorf("LockOf ends after %s, locked %t; want %s", ends, locked, tc.ends)
			}
		})
	}
	b := annotated("")
	b.Annotations = nil
	if hold, locked := budget.LockOf(b, midday, 0); locked || !hold.Ends.IsZero() {
		t.Errorf("a budget that bears none is locked: %+v", hold)
	}
}

func TestUnreadableLockHoldsForTenMinutes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text string }{
		"empty":                {""},
		"words":                {"mine!"},
		"two locks":            {lockText(func(*budget.Lock) {}) + "{}"},
		"a list":               {"[]"},
		"a number":             {"1e999999"},
		"null":                 {"null"},
		"no holder":            {lockText(func(l *budget.Lock) { l.Holder = "" })},
		"a holder of spaces":   {lockText(func(l *budget.Lock) { l.Holder = " \t" })},
		"an invisible holder":  {lockText(func(l *budget.Lock) { l.Holder = "\x00\u200b" })},
		"a holder of its own":  {`{"holder":{"name":"dba"}}`},
		"no end":               {`{"holder":"dba"}`},
		"null as its end":      {`{"holder":"dba","expiresAt":null}`},
		"a time that is none":  {`{"holder":"dba","expiresAt":"tomorrow"}`},
		"a number as its end":  {`{"holder":"dba","expiresAt":1770000000}`},
		"a date without a day": {`{"holder":"dba","acquiredAt":"2026-02-30T00:00:00Z","expiresAt":"2026-03-01T13:00:00Z"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := annotated(tc.text)
			hold, locked := budget.LockOf(b, midday.Add(-50*time.Minute-time.Second), 0)
			if !locked || hold.Unreadable == nil {
				t.Errorf("%+v, locked %t; want an unreadable lock in force", hold, locked)
			}
			golden.Message(t, hold.Describe(b))
			if _, locked := budget.LockOf(b, midday.Add(-50*time.Minute), 0); locked {
				t.Error("it should have ended ten minutes after the last change")
			}
		})
	}
}

func TestDescribeNamesHolderEndAndReason(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 5000)
	for name, tc := range map[string]struct {
		change func(*budget.Lock)
	}{
		"with a reason":    {func(*budget.Lock) {}},
		"without a reason": {func(l *budget.Lock) { l.Reason = "" }},
		"a drain":          {func(l *budget.Lock) { l.Holder = budget.Holder("kernel", "node-1") }},
		"many lines":       {func(l *budget.Lock) { l.Reason = "first\n* second\r\n\tthird\x1b[31m" }},
		"a long story": {
			func(l *budget.Lock) { l.Holder, l.Reason = long, long },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := annotated(lockText(tc.change))
			hold, _ := budget.LockOf(b, midday, 0)
			golden.Message(t, hold.Describe(b))
		})
	}
}

func TestAnAnnotationOfKilobytesIsNotQuoted(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("2026", 60_000)
	for _, text := range []string{
		huge, `"` + huge + `"`, "{" + huge, `{"holder":"dba","expiresAt":"` + huge + `"}`, `{"holder":` + huge + `}`,
		lockText(func(l *budget.Lock) { l.Holder, l.Reason = huge, huge }), strings.Repeat("[", 200_000),
	} {
		hold, _ := budget.LockOf(annotated(text), midday, 0)
		if told := hold.Describe(annotated(text)); len(told) > 3072 {
			t.Errorf("%d bytes are told of the lock %.40s", len(told), text)
		}
		if hold.Unreadable != nil && len(hold.Unreadable.Error()) > 1200 {
			t.Errorf("%d bytes are the error of the lock %.40s", len(hold.Unreadable.Error()), text)
		}
	}
}

func TestFirstLockedSkipsEndedLocks(t *testing.T) {
	t.Parallel()
	free, over, first, second := annotated(""), annotated(""), annotated(lockText(func(*budget.Lock) {})), annotated(lockText(func(*budget.Lock) {}))
	free.Annotations, first.Name, second.Name = nil, "first", "second"
	over.Annotations[v1alpha1.LockAnnotation] = lockText(func(l *budget.Lock) { l.ExpiresAt = after(-time.Minute) })
	budgets := []*policyv1.PodDisruptionBudget{free, over, first, second}
	if b, hold := budget.FirstLocked(budgets, midday, 0); b != first || !hold.Ends.Equal(midday.Add(time.Hour)) {
		t.Errorf("FirstLocked = %+v, %+v; want the first that is locked", b, hold)
	}
	if b, hold := budget.FirstLocked(budgets, midday, 30*time.Second); b != nil || hold.Holder != "" {
		t.Errorf("FirstLocked = %+v, %+v; want none", b, hold)
	}
}

func TestHolderOfDrainsNamesMaintenanceAndNode(t *testing.T) {
	t.Parallel()
	type answer struct {
		Maintenance, Node string
		Drain             bool
	}
	for holder, want := range map[string]answer{
		budget.Holder("kernel", "node-1"):     {"kernel", "node-1", true},
		"nodemaintenance/kernel":              {},
		"nodemaintenance/":                    {},
		"nodemaintenance//node-1":             {},
		"nodemaintenance/kernel/":             {},
		"nodemaintenance/a; reboot/node-1":    {},
		"nodemaintenance/kernel/$(reboot)":    {},
		"nodemaintenance/k.8s/node-1.example": {"k.8s", "node-1.example", true},
		"dba@example.com":                     {},
		"":                                    {},
		"NodeMaintenance/kernel/node-1":       {},
		"nodemaintenance/kernel/node-1/other": {},
	} {
		var got answer
		got.Maintenance, got.Node, got.Drain = budget.HolderOf(holder)
		difference.None(t, fmt.Sprintf("HolderOf(%q)", holder), want, got)
	}
}

// FuzzLockOf has LockOf read what anybody may write: it never panics, never holds
// for longer than it may, and never tells more than fits into a message.
func FuzzLockOf(f *testing.F) {
	for _, text := range []string{"", "mine!", "null", "[]", `{"holder":"a"}`, lockText(func(*budget.Lock) {}), lockText(acquired(after(time.Hour)))} {
		f.Add(text, int64(0), int64(-3600), int64(0))
		f.Add(text, int64(60), int64(30), int64(1<<40))
	}
	f.Add(`{"holder":"a","acquiredAt":"9999-12-31T23:59:59Z","expiresAt":"9999-12-31T23:59:59Z"}`, int64(1), int64(0), int64(0))
	f.Fuzz(func(t *testing.T, text string, longest, changed, seconds int64) {
		allowed := time.Duration(longest%86400) * time.Second
		now := time.Unix(midday.Unix()+seconds%(1<<33), 0)
		last := metav1.Time{Time: now.Add(time.Duration(changed%(1<<31)) * time.Second)}
		b := annotated(text)
		b.CreationTimestamp, b.ManagedFields = last, nil
		hold, locked := budget.LockOf(b, now, allowed)
		if allowed <= 0 {
			allowed = budget.LongestLock
		}
		if hold.Unreadable != nil {
			allowed = budget.UnreadableLock
		}
		latest := last.Add(allowed)
		if ours := now.Add(time.Minute + allowed); latest.Before(ours) && hold.Unreadable == nil {
			latest = ours
		}
		if hold.Ends.After(latest) || locked != now.Before(hold.Ends) {
			t.Errorf("locked %t until %s, want %s at the latest", locked, hold.Ends, latest)
		}
		told := hold.Describe(b)
		if len(told) > 3072 || strings.ContainsAny(told, "\n\r") || !utf8.ValidString(told) {
			t.Errorf("it is told as %q", told)
		}
	})
}
