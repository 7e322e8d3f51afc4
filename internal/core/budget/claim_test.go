package budget_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
)

// noon is the time of every claim.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// bearing is a budget, last changed an hour ago, that bears this as its lock.
func bearing(annotation string) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
	}}
	if annotation != "" {
		b.Annotations = map[string]string{v1alpha1.LockAnnotation: annotation}
	}
	return b
}

// changed says that the budget was last changed that long before noon.
func changed(ago time.Duration, b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	b.CreationTimestamp = metav1.NewTime(noon.Add(-ago))
	return b
}

const (
	// annas is what TestClaimLock's anna gets, at noon.
	annas   = `{"holder":"user/anna","reason":"compaction","acquiredAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-01T13:30:00Z"}`
	garbage = "yes please"
)

// anna wants to lock for 90 minutes from noon on.
func anna(reason string) budget.Claim {
	return budget.Claim{Holder: "user/anna", Reason: reason, For: 90 * time.Minute, Now: noon}
}

// claiming is a claim and either the lock or the obstacle that comes of it.
type claiming struct {
	claim    budget.Claim
	budget   *policyv1.PodDisruptionBudget
	want     string
	obstacle string
}

func (c claiming) test(t *testing.T) {
	t.Parallel()
	if err := errors.Join(budget.CheckHolder(c.claim.Holder), c.claim.Check()); err != nil {
		t.Fatalf("Check: %v", err)
	}
	got, refused := "", ""
	lock, obstacle := c.claim.Lock(c.budget)
	if obstacle != nil {
		refused = obstacle.Describe(c.budget)
	} else {
		got = lock.Write()
		wantHeld(t, c.claim, got)
	}
	if diff := cmp.Diff([]string{c.want, c.obstacle}, []string{got, refused}); diff != "" {
		t.Errorf("lock and refusal (-want +got):\n%s", diff)
	}
}

func TestClaimLock(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]claiming{
		"a budget without a lock":        {claim: anna("compaction"), budget: bearing(""), want: annas},
		"parts of a second do not count": {claim: budget.Claim{Holder: "user/anna", Reason: "compaction", For: 90 * time.Minute, Now: noon.Add(999 * time.Millisecond)}, budget: bearing(""), want: annas},
		"no reason is no reason": {
			claim: anna(""), budget: bearing(""),
			want: `{"holder":"user/anna","acquiredAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-01T13:30:00Z"}`,
		},
		"one's own that has ended is taken anew": {
			claim:  anna(""),
			budget: bearing(`{"holder":"user/anna","reason":"backup","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T12:00:00Z"}`),
			want:   `{"holder":"user/anna","acquiredAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-01T13:30:00Z"}`,
		},
		"somebody else's that has ended is free": {
			claim:  anna("compaction"),
			budget: bearing(`{"holder":"user/bert","reason":"backup","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T11:59:59Z"}`),
			want:   annas,
		},
		"somebody else's that is older than any may be is free": {
			claim:  anna("compaction"),
			budget: bearing(`{"holder":"user/bert","acquiredAt":"2026-03-01T07:59:59Z","expiresAt":"2099-05-01T12:00:00Z"}`),
			want:   annas,
		},
		"one that nobody could read for long": {claim: anna("compaction"), budget: changed(10*time.Minute, bearing(garbage)), want: annas},
	} {
		t.Run(name, tt.test)
	}
}

func TestClaimLockRenews(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]claiming{
		"one's own is renewed": {
			claim:  anna("compaction"),
			budget: bearing(`{"holder":"user/anna","reason":"backup","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T12:10:00Z"}`),
			want:   `{"holder":"user/anna","reason":"compaction","acquiredAt":"2026-03-01T11:00:00Z","renewedAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-01T13:30:00Z"}`,
		},
		"one's own keeps its reason": {
			claim:  anna(""),
			budget: bearing(`{"holder":"user/anna","reason":"backup","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T12:10:00Z"}`),
			want:   `{"holder":"user/anna","reason":"backup","acquiredAt":"2026-03-01T11:00:00Z","renewedAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-01T13:30:00Z"}`,
		},
		"one's own may become shorter": {
			claim:  anna("compaction"),
			budget: bearing(`{"holder":"user/anna","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T14:10:00Z"}`),
			want:   `{"holder":"user/anna","reason":"compaction","acquiredAt":"2026-03-01T11:00:00Z","renewedAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-01T13:30:00Z"}`,
		},
		"one's own from the future is from now on": {
			claim:  anna("compaction"),
			budget: bearing(`{"holder":"user/anna","acquiredAt":"2026-03-01T12:40:00Z","expiresAt":"2026-03-01T13:10:00Z"}`),
			want:   `{"holder":"user/anna","reason":"compaction","acquiredAt":"2026-03-01T12:00:00Z","renewedAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-01T13:30:00Z"}`,
		},
	} {
		t.Run(name, tt.test)
	}
}

func TestClaimLockIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]claiming{
		"somebody else's": {
			claim:    anna("compaction"),
			budget:   bearing(`{"holder":"user/bert","reason":"backup","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T12:00:01Z"}`),
			obstacle: "PodDisruptionBudget shop/web is locked by user/bert until 2026-03-01T12:00:01Z: backup",
		},
		"a drain's": {
			claim:    anna("compaction"),
			budget:   bearing(`{"holder":"nodemaintenance/reboot/node-1","acquiredAt":"2026-03-01T11:55:00Z","expiresAt":"2026-03-01T12:05:00Z"}`),
			obstacle: "PodDisruptionBudget shop/web is locked by nodemaintenance/reboot/node-1 until 2026-03-01T12:05:00Z",
		},
		"one that nobody can read": {
			claim:  anna("compaction"),
			budget: changed(9*time.Minute, bearing(garbage)),
			obstacle: "PodDisruptionBudget shop/web is locked by an unknown holder until 2026-03-01T12:01:00Z: " +
				"annotation ebbtide.dev/lock is no JSON of a lock: invalid character 'y' looking for beginning of value",
		},
		"one that nobody can read, by a holder of that name": {
			claim:  budget.Claim{Holder: "an unknown holder", For: time.Hour, Now: noon},
			budget: changed(9*time.Minute, bearing(garbage)),
			obstacle: "PodDisruptionBudget shop/web is locked by an unknown holder until 2026-03-01T12:01:00Z: " +
				"annotation ebbtide.dev/lock is no JSON of a lock: invalid character 'y' looking for beginning of value",
		},
	} {
		t.Run(name, tt.test)
	}
}

// wantHeld holds a lock to what the claim asked for, as everybody else reads it.
func wantHeld(t *testing.T, claim budget.Claim, lock string) {
	t.Helper()
	hold, locked := budget.LockOf(bearing(lock), claim.Now, 0)
	if !locked || hold.Holder != claim.Holder || !hold.Ends.Equal(noon.Add(claim.For)) {
		t.Errorf("LockOf = %+v, %t; want that %s holds it for %s", hold, locked, claim.Holder, claim.For)
	}
}

func TestClaimCheck(t *testing.T) {
	t.Parallel()
	const long = "a lock is for 1s to 4h, not for "
	for name, tt := range map[string]struct {
		edit func(*budget.Claim)
		want string
	}{
		"an ordinary one":   {func(*budget.Claim) {}, ""},
		"the shortest":      {func(c *budget.Claim) { c.For = time.Second }, ""},
		"the longest":       {func(c *budget.Claim) { c.For = 4 * time.Hour }, ""},
		"too short":         {func(c *budget.Claim) { c.For = 999 * time.Millisecond }, long + "999ms; whoever needs it longer renews it before it ends"},
		"for no time":       {func(c *budget.Claim) { c.For = 0 }, long + "0s; whoever needs it longer renews it before it ends"},
		"backwards":         {func(c *budget.Claim) { c.For = -time.Hour }, long + "-1h; whoever needs it longer renews it before it ends"},
		"too long":          {func(c *budget.Claim) { c.For = 4*time.Hour + time.Minute }, long + "4h1m; whoever needs it longer renews it before it ends"},
		"for ever":          {func(c *budget.Claim) { c.For = 1<<63 - 1 }, long + "2562047h47m16.854775807s; whoever needs it longer renews it before it ends"},
		"no holder":         {func(c *budget.Claim) { c.Holder = " " }, "the holder of a lock needs a name"},
		"a drain":           {func(c *budget.Claim) { c.Holder = "nodemaintenance/m/n" }, `holder "nodemaintenance/m/n": names that begin with nodemaintenance/ are those of drains; choose another`},
		"almost a drain":    {func(c *budget.Claim) { c.Holder = "nodemaintenance/" }, `holder "nodemaintenance/": names that begin with nodemaintenance/ are those of drains; choose another`},
		"no drain":          {func(c *budget.Claim) { c.Holder = "nodemaintenance" }, ""},
		"a holder on lines": {func(c *budget.Claim) { c.Holder = "a\nb" }, `the holder "a\nb" is not one line of text; leave out line breaks and what does not show`},
		"an unseen holder":  {func(c *budget.Claim) { c.Holder = "\u200b" }, `the holder "\u200b" is not one line of text; leave out line breaks and what does not show`},
		"a long holder":     {func(c *budget.Claim) { c.Holder = strings.Repeat("é", 257) }, "the holder has 257 characters and may have 256; say it shorter"},
		"a reason on lines": {func(c *budget.Claim) { c.Reason = "a\x1b[2Jb" }, `the reason "a\x1b[2Jb" is not one line of text; leave out line breaks and what does not show`},
		"a reason in bytes": {func(c *budget.Claim) { c.Reason = "\xff" }, `the reason "\xff" is not one line of text; leave out line breaks and what does not show`},
		"the longest words": {func(c *budget.Claim) { c.Reason = strings.Repeat("é", 1024) }, ""},
		"too many words":    {func(c *budget.Claim) { c.Reason = strings.Repeat("é", 1025) }, "the reason has 1025 characters and may have 1024; say it shorter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := budget.Claim{Holder: "user/anna", Reason: "compaction", For: time.Hour, Now: noon}
			tt.edit(&claim)
			got := ""
			if err := errors.Join(budget.CheckHolder(claim.Holder), claim.Check()); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReleaseOf(t *testing.T) {
	t.Parallel()
	const (
		berts  = `{"holder":"user/bert","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T13:00:00Z"}`
		drains = `{"holder":"nodemaintenance/m/n","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T13:00:00Z"}`
		ended  = `{"holder":"user/anna","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T12:00:00Z"}`
	)
	for name, tt := range map[string]struct {
		budget       *policyv1.PodDisruptionBudget
		want, forced budget.Release
		holder       string
	}{
		"no lock":                             {bearing(""), budget.ReleaseNothing, budget.ReleaseNothing, ""},
		"one's own":                           {bearing(annas), budget.ReleaseGranted, budget.ReleaseGranted, "user/anna"},
		"somebody else's":                     {bearing(berts), budget.ReleaseRefused, budget.ReleaseGranted, "user/bert"},
		"a drain's":                           {bearing(drains), budget.ReleaseRefused, budget.ReleaseGranted, "nodemaintenance/m/n"},
		"one that has ended":                  {bearing(ended), budget.ReleaseEnded, budget.ReleaseGranted, "user/anna"},
		"one that nobody can read":            {changed(time.Minute, bearing(garbage)), budget.ReleaseRefused, budget.ReleaseGranted, "an unknown holder"},
		"one that nobody could read for long": {bearing(garbage), budget.ReleaseEnded, budget.ReleaseGranted, "an unknown holder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for force, want := range map[bool]budget.Release{false: tt.want, true: tt.forced} {
				got, hold := budget.ReleaseOf(tt.budget, "user/anna", noon, force)
				if got != want || hold.Holder != tt.holder {
					t.Errorf("force %t: ReleaseOf = %s, of %q; want %s, of %q", force, got, hold.Holder, want, tt.holder)
				}
			}
		})
	}
}
