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
	"ebbtide.dev/ebbtide/test/golden"
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
	claim   budget.Claim
	budget  *policyv1.PodDisruptionBudget
	want    string
	refused bool
}

func (c claiming) test(t *testing.T) {
	t.Parallel()
	if err := errors.Join(budget.CheckHolder(c.claim.Holder), c.claim.Check()); err != nil {
		t.Fatalf("Check: %v", err)
	}
	got := ""
	lock, obstacle := c.claim.Lock(c.budget)
	if obstacle != nil {
		golden.Message(t, obstacle.Describe(c.budget))
	} else {
		got = lock.Write()
		wantHeld(t, c.claim, got)
	}
	if diff := cmp.Diff(c.want, got); diff != "" || (obstacle != nil) != c.refused {
		t.Errorf("refused: %t, want %t; lock (-want +got):\n%s", obstacle != nil, c.refused, diff)
	}
}

func TestClaimLock(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]claiming{
		"a budget without a lock":             {claim: anna("compaction"), budget: bearing(""), want: annas},
		"parts of a second do not count":      {claim: budget.Claim{Holder: "user/anna", Reason: "compaction", For: 90 * time.Minute, Now: noon.Add(999 * time.Millisecond)}, budget: bearing(""), want: annas},
		"one that nobody could read for long": {claim: anna("compaction"), budget: changed(10*time.Minute, bearing(garbage)), want: annas},
		"somebody else's that has ended is free": {
			claim:  anna("compaction"),
			budget: bearing(`{"holder":"user/bert","reason":"backup","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T11:59:59Z"}`),
			want:   annas,
		},
		"one's own keeps its reason": {
			claim:  anna(""),
			budget: bearing(`{"holder":"user/anna","reason":"backup","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T12:10:00Z"}`),
			want:   `{"holder":"user/anna","reason":"backup","acquiredAt":"2026-03-01T11:00:00Z","renewedAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-01T13:30:00Z"}`,
		},
		"one's own from the future is from now on": {
			claim:  anna("compaction"),
			budget: bearing(`{"holder":"user/anna","acquiredAt":"2026-03-01T12:40:00Z","expiresAt":"2026-03-01T13:10:00Z"}`),
			want:   `{"holder":"user/anna","reason":"compaction","acquiredAt":"2026-03-01T12:00:00Z","renewedAt":"2026-03-01T12:00:00Z","expiresAt":"2026-03-01T13:30:00Z"}`,
		},
		"somebody else's": {
			claim:   anna("compaction"),
			budget:  bearing(`{"holder":"user/bert","reason":"backup","acquiredAt":"2026-03-01T11:00:00Z","expiresAt":"2026-03-01T12:00:01Z"}`),
			refused: true,
		},
		"a drain's": {
			claim:   anna("compaction"),
			budget:  bearing(`{"holder":"nodemaintenance/reboot/node-1","acquiredAt":"2026-03-01T11:55:00Z","expiresAt":"2026-03-01T12:05:00Z"}`),
			refused: true,
		},
		"one that nobody can read": {
			claim:   anna("compaction"),
			budget:  changed(9*time.Minute, bearing(garbage)),
			refused: true,
		},
		"one that nobody can read, by a holder of that name": {
			claim:   budget.Claim{Holder: "an unknown holder", For: time.Hour, Now: noon},
			budget:  changed(9*time.Minute, bearing(garbage)),
			refused: true,
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
	for name, tt := range map[string]struct {
		edit    func(*budget.Claim)
		refused bool
	}{
		"an ordinary one":   {func(*budget.Claim) {}, false},
		"the shortest":      {func(c *budget.Claim) { c.For = time.Second }, false},
		"the longest":       {func(c *budget.Claim) { c.For = 4 * time.Hour }, false},
		"too short":         {func(c *budget.Claim) { c.For = 999 * time.Millisecond }, true},
		"for no time":       {func(c *budget.Claim) { c.For = 0 }, true},
		"backwards":         {func(c *budget.Claim) { c.For = -time.Hour }, true},
		"too long":          {func(c *budget.Claim) { c.For = 4*time.Hour + time.Minute }, true},
		"for ever":          {func(c *budget.Claim) { c.For = 1<<63 - 1 }, true},
		"no holder":         {func(c *budget.Claim) { c.Holder = " " }, true},
		"a drain":           {func(c *budget.Claim) { c.Holder = "nodemaintenance/m/n" }, true},
		"almost a drain":    {func(c *budget.Claim) { c.Holder = "nodemaintenance/" }, true},
		"no drain":          {func(c *budget.Claim) { c.Holder = "nodemaintenance" }, false},
		"a holder on lines": {func(c *budget.Claim) { c.Holder = "a\nb" }, true},
		"an unseen holder":  {func(c *budget.Claim) { c.Holder = "\u200b" }, true},
		"a long holder":     {func(c *budget.Claim) { c.Holder = strings.Repeat("é", 257) }, true},
		"a reason on lines": {func(c *budget.Claim) { c.Reason = "a\x1b[2Jb" }, true},
		"a reason in bytes": {func(c *budget.Claim) { c.Reason = "\xff" }, true},
		"the longest words": {func(c *budget.Claim) { c.Reason = strings.Repeat("é", 1024) }, false},
		"too many words":    {func(c *budget.Claim) { c.Reason = strings.Repeat("é", 1025) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := budget.Claim{Holder: "user/anna", Reason: "compaction", For: time.Hour, Now: noon}
			tt.edit(&claim)
			err := errors.Join(budget.CheckHolder(claim.Holder), claim.Check())
			if err != nil {
				golden.Message(t, err.Error())
			}
			if (err != nil) != tt.refused {
				t.Errorf("refused with %v, want it refused: %t", err, tt.refused)
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
