package rollout_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/tier"
)

const (
	fewFleets = 50 // in the first tier
	unrest    = 40 // decisions during which everything may happen
	patience  = 3000
	// stillness is longer than the time between two windows.
	stillness = 5 * 24 * time.Hour
)

// fleets is the number in the second tier; make proof-rollouts simulates 20,000.
var fleets = flag.Uint64("fleets", 2000, "the number of fleets that TestLongSimulation simulates")

// A simulation lets things happen to a fleet at random and decides after each. What must hold after
// every decision is in invariant_test.go.
type simulation struct {
	*world
	t      *testing.T
	random *rand.Rand
	// cachedNodes and cachedMaintenances are what the cache of the manager has.
	cachedNodes        []*corev1.Node
	cachedMaintenances []*v1alpha1.NodeMaintenance
	// cachedBudgets are what the cache of the controller of NodeMaintenances has. Nodes that change their
	// selection twice in between are left out.
	cachedBudgets []*v1alpha1.NodeBudget
	// sticky nodes never drain, broken ones never come back, and forgetful ones require a reboot
	// again after each.
	sticky, broken, forgetful map[string]bool
	// tries are the attempts that were created, by rollout, node and number.
	tries map[string]string
	// jobKeys has the NodeMaintenances of Jobs that were refused.
	jobKeys map[string]types.UID
	targets targets
	seen    *seen
}

func TestSimulation(t *testing.T) { simulate(t, 0, 1, fewFleets) }

func TestLongSimulation(t *testing.T) {
	tier.Long(t)
	const shares = 4
	for share := range uint64(shares) {
		t.Run(fmt.Sprint("share-", share), func(t *testing.T) {
			t.Parallel()
			simulate(t, share, shares, *fleets)
		})
	}
}

// simulate simulates each of so many fleets, from the first one on.
func simulate(t *testing.T, first, each, count uint64) {
	t.Helper()
	all := &seen{waits: map[string]int{}, failures: map[string]int{}}
	for seed := first; seed < count; seed += each {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			all.fleets++
			s := newSimulation(t, seed, all)
			for range unrest {
				s.happen()
				s.work(40)
				s.step()
			}
			s.heal()
			s.end()
		})
		if t.Failed() {
			return
		}
	}
	if all.fleets > 20 { // -run asks for some.
		all.check(t)
	}
}

func newSimulation(t *testing.T, seed uint64, all *seen) *simulation {
	s := &simulation{
		world: newWorld(t), t: t, random: rand.New(rand.NewPCG(seed, 33)),
		sticky: map[string]bool{}, broken: map[string]bool{}, forgetful: map[string]bool{}, tries: map[string]string{}, jobKeys: map[string]types.UID{}, targets: targets{}, seen: all,
	}
	count := 5 + s.random.IntN(56)
	if s.chance(2) {
		count = 60 + s.random.IntN(241)
	}
	controlPlanes := pick(s, []int{0, 0, 1, 3})
	for n := range count {
		s.joinRandomly(fmt.Sprintf("n%03d", n), n < controlPlanes)
	}
	for range s.random.IntN(maxSimulatedBudgets + 1) {
		s.limitRandomly()
	}
	s.startRandomly()
	s.refresh()
	return s
}

func (s *simulation) chance(percent int) bool { return s.random.IntN(100) < percent }

func pick[T any](s *simulation, from []T) T { return from[s.random.IntN(len(from))] }

// refresh has the cache of the manager follow the API server.
func (s *simulation) refresh() {
	s.cachedNodes, s.cachedMaintenances, s.cachedBudgets = slices.Clone(s.nodes), slices.Clone(s.maintenances), slices.Clone(s.budgets)
}

// view is the snapshot as the manager sees it. Rollouts and budgets are up to date, as each is
// written under its resourceVersion.
func (s *simulation) view() *rollout.Snapshot {
	view := s.snapshot()
	view.Nodes, view.Maintenances = s.cachedNodes, slices.Clone(s.cachedMaintenances)
	view.Unknown, view.Refused, view.RefusedBudgets = map[string]bool{}, maps.Clone(s.refused), maps.Clone(s.refusedBudgets)
	view.RefusedJobs, view.JobNamespaces = maps.Clone(s.refusedJobs), map[string]bool{"ops": !s.chance(5)}
	for _, name := range s.recorded() {
		if _, at := find(view.Maintenances, name); at >= 0 {
			continue
		}
		if s.chance(5) {
			view.Unknown[name] = true
		} else if m, at := find(s.maintenances, name); at >= 0 {
			view.Maintenances = append(view.Maintenances, m)
		}
	}
	return view
}

// step decides and writes, perhaps not all of it.
func (s *simulation) step() {
	if s.chance(70) {
		s.refresh()
	} else {
		s.seen.stale++
	}
	view := s.view()
	d := s.decideTwice(view)
	s.check(view, d)
	s.refuseSome(d)
	s.checkJobs(view, d)
	stop := never
	if s.chance(10) {
		stop = stopAfter(s.random.IntN(8))
		s.seen.crashes++
	}
	before := slices.Clone(s.budgets)
	s.apply(d, stop)
	s.checkAttempts()
	s.checkTruth(view, d)
	s.checkAdmissions(view, before)
	if s.chance(10) {
		s.refresh()
		s.checkRest()
	}
	s.countAll()
}

// decideTwice decides by the cache, and then by the nodes of the API server if that is asked for.
func (s *simulation) decideTwice(view *rollout.Snapshot) *rollout.Decision {
	view.Live = false
	d := s.decide(view)
	if !d.NeedsLive {
		return d
	}
	s.seen.confirmed++
	s.cachedNodes = slices.Clone(s.nodes)
	view.Nodes, view.Live = s.cachedNodes, true
	return s.decide(view)
}

// decide decides, and checks sometimes that the order of the snapshot makes no difference and that
// nothing in it is changed.
func (s *simulation) decide(view *rollout.Snapshot) *rollout.Decision {
	if !s.chance(5) {
		return rollout.Decide(view)
	}
	before := copied(view)
	d := rollout.Decide(view)
	if !reflect.DeepEqual(before, view) {
		difference.None(s.t, "snapshot after the decision", before, view)
	}
	shuffled := *view
	shuffled.Rollouts, shuffled.Nodes, shuffled.Maintenances = shuffle(s, view.Rollouts), shuffle(s, view.Nodes), shuffle(s, view.Maintenances)
	shuffled.Budgets = shuffle(s, view.Budgets)
	shuffled.Jobs = shuffle(s, view.Jobs)
	if again := rollout.Decide(&shuffled); !reflect.DeepEqual(d, again) {
		s.t.Fatalf("the order of the snapshot makes a difference:\n%s", cmp.Diff(d, again))
	}
	return d
}

func copied(view *rollout.Snapshot) *rollout.Snapshot {
	before := *view
	before.Rollouts, before.Nodes, before.Maintenances = deepCopies(view.Rollouts), deepCopies(view.Nodes), deepCopies(view.Maintenances)
	before.Budgets, before.RefusedBudgets = deepCopies(view.Budgets), maps.Clone(view.RefusedBudgets)
	before.Unknown, before.Refused = maps.Clone(view.Unknown), maps.Clone(view.Refused)
	return &before
}

func deepCopies[T object[T]](all []T) []T {
	copies := slices.Clone(all)
	for i, one := range all {
		copies[i] = one.DeepCopy()
	}
	return copies
}

func shuffle[T any](s *simulation, all []T) []T {
	all = slices.Clone(all)
	s.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// refuseSome has the API server refuse some creations.
func (s *simulation) refuseSome(d *rollout.Decision) {
	for i := range d.Rollouts {
		d.Rollouts[i].Starts = slices.DeleteFunc(slices.Clone(d.Rollouts[i].Starts), func(m *v1alpha1.NodeMaintenance) bool {
			if !s.chance(3) {
				return false
			}
			s.refused[m.Name] = "quota exceeded"
			return true
		})
	}
}

// checkRest expects that a few decisions come to rest, and that time changes nothing before the
// time that the last one names.
func (s *simulation) checkRest() {
	for range 4 {
		s.apply(rollout.Decide(s.snapshot()), never)
		s.checkAttempts()
	}
	s.refresh()
	s.checkIdle()
	wake := rollout.Decide(s.snapshot()).WakeTime
	if !wake.IsZero() && !wake.After(s.now) {
		s.t.Errorf("seems to wake at %s, which is not after %s", wake, s.now)
	}
	if wake.IsZero() {
		wake = s.now.Add(30 * 24 * time.Hour)
	}
	now := s.now
	s.now = now.Add(time.Duration(s.random.Int64N(int64(wake.Sub(now)))))
	s.checkIdleButForEstimates()
	s.now = now
}

// checkIdleButForEstimates is checkIdle, but an estimate may follow the time.
func (s *simulation) checkIdleButForEstimates() {
	s.t.Helper()
	d := rollout.Decide(s.snapshot())
	for i := range d.Rollouts {
		r := &d.Rollouts[i]
		r.Status.EstimatedCompletionTime = r.Rollout.Status.EstimatedCompletionTime
		if len(r.Starts)+len(r.Changes) > 0 || !equality.Semantic.DeepEqual(r.Status, r.Rollout.Status) {
			s.t.Errorf("%s changes before the time that it names: %d starts, %d changes\n%s", r.Rollout.Name, len(r.Starts), len(r.Changes), cmp.Diff(r.Rollout.Status, r.Status))
		}
	}
}

// end lets the rollouts end, or name the reason why they do not.
func (s *simulation) end() {
	last, progress := s.now, s.progress
	for range patience {
		before := s.version
		s.work(100)
		s.uncordon()
		s.refresh()
		view := s.snapshot()
		d := s.decideTwice(view)
		if slices.ContainsFunc(d.Rollouts, func(r rollout.RolloutDecision) bool { return len(r.Starts) > 0 }) || s.chance(10) {
			s.check(view, d)
		}
		s.apply(d, never)
		if s.progress > progress {
			s.checkAttempts()
			s.countAll()
		}
		if s.progress > progress {
			last, progress = s.now, s.progress
		}
		next := s.nextTime(d)
		switch {
		case s.version > before:
		case next.IsZero() || next.Sub(last) > stillness:
			s.checkEnds()
			s.checkRequests()
			s.deleteAll()
			return
		default:
			s.now = next
		}
	}
	for _, r := range s.rollouts {
		s.t.Logf("%s %+v\n%+v", r.Name, r.Spec, r.Status)
	}
	s.t.Fatalf("the rollouts do not end until %s", s.now)
}

// nextTime returns when time alone changes something; zero is never.
func (s *simulation) nextTime(d *rollout.Decision) time.Time {
	next := d.WakeTime
	for _, m := range s.maintenances {
		deadline := m.Spec.Deadline
		if deadline == nil || maintenance.Stage(m) != v1alpha1.StageDrain || isDrained(m) {
			continue
		}
		if next.IsZero() || deadline.Time.Time.Before(next) {
			next = deadline.Time.Time
		}
	}
	return next
}

// checkEnds expects that a rollout is complete, or that its nodes wait for what only a user can do.
func (s *simulation) checkEnds() {
	held := slices.ContainsFunc(s.maintenances, isLive)
	for _, r := range s.rollouts {
		status := &r.Status
		complete := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionRolloutComplete)
		switch {
		case complete.Status == "True":
			s.seen.complete++
			continue
		case complete.Reason == v1alpha1.ReasonNoNodes, complete.Reason == v1alpha1.ReasonRolloutIdle:
			continue
		case complete.Reason == v1alpha1.ReasonRolloutNodesFailed:
			continue
		}
		s.seen.stuck++
		for _, group := range status.Waiting {
			if group.Reason != v1alpha1.RolloutWaitsForFailures && !held || group.Message == "" {
				s.t.Errorf("%s ends with nodes that wait: %+v\n%+v", r.Name, group, r.Spec)
			}
		}
		if len(status.Waiting)+len(status.Working) == 0 {
			s.t.Errorf("%s does not end: %+v\n%+v", r.Name, status, r.Spec)
		}
	}
}

// deleteAll deletes the rollouts, which leaves nothing of them behind.
func (s *simulation) deleteAll() {
	for _, r := range slices.Clone(s.rollouts) {
		s.deleteRollout(r.Name)
	}
	for range 10 {
		s.apply(rollout.Decide(s.snapshot()), never)
		s.work(100)
	}
	for _, r := range s.rollouts {
		s.t.Errorf("rollout %s is not gone: %v", r.Name, r.Finalizers)
	}
	for _, m := range s.maintenances {
		if m.Labels[v1alpha1.RolloutLabel] != "" || slices.Contains(m.Finalizers, v1alpha1.RolloutFinalizer) {
			s.t.Errorf("NodeMaintenance %s is not released", m.Name)
		}
	}
}
