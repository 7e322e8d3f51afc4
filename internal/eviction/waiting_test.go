package eviction

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/test/patience"
)

var (
	dawn  = time.Date(2026, time.March, 1, 8, 0, 0, 0, time.UTC)
	web   = types.NamespacedName{Namespace: "shop", Name: "web"}
	evict = evacuation.Outcome{Result: evacuation.Evicted}
	full  = evacuation.Outcome{Result: evacuation.Budgeted, Type: v1alpha1.BlockerPDBExhausted, Budget: "web", Message: "no"}
	deny  = evacuation.Outcome{Result: evacuation.Refused, Type: v1alpha1.BlockerWebhookDenied, Message: "not on a Friday"}
)

func testDispatcher() *Dispatcher {
	return NewDispatcher(DispatcherOptions{Now: time.Now, Jitter: func() float64 { return 0 }})
}

// pod is a pod under the budget web; a lower number is older.
func pod(number int) attempt {
	return attempt{
		key:    podKey{NamespacedName: types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("pod-%d", number)}},
		born:   dawn.Add(time.Duration(number) * time.Second),
		budget: web,
	}
}

func free(number int) attempt {
	v := pod(number)
	v.budget = types.NamespacedName{}
	return v
}

// arrive lets pods ask in this order and returns those that may try.
func arrive(r *Dispatcher, now time.Time, attempts ...attempt) (trying []string) {
	for _, v := range attempts {
		if mayTry, _, _ := r.begin(v, now); mayTry {
			trying = append(trying, v.key.Name)
		}
	}
	return trying
}

func names(keys []podKey) []string {
	var list []string
	for _, key := range keys {
		list = append(list, key.Name)
	}
	slices.Sort(list)
	return list
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestPodsOfABudgetTryOneAfterTheOtherTheOldestNext(t *testing.T) {
	t.Parallel()
	r := testDispatcher()
	expect(t, "trying", arrive(r, dawn, pod(5), pod(4), pod(3), pod(2), pod(1)), "pod-5")
	expect(t, "after a success", names(r.finish(pod(5).key, evict, dawn)), "pod-1")
	expect(t, "another one asks", arrive(r, dawn, pod(3)))
	expect(t, "the woken one asks", arrive(r, dawn, pod(1)), "pod-1")
	expect(t, "after another success", names(r.finish(pod(1).key, evict, dawn)), "pod-2")
}

func TestASlowTryLetsTheNextOneTry(t *testing.T) {
	t.Parallel()
	r := testDispatcher()
	var attempts []attempt
	for i := range maxTries + 2 {
		attempts = append(attempts, pod(i))
	}
	arrive(r, dawn, attempts...)
	for i := range maxTries - 1 {
		expect(t, "one is slow", names(r.slow(pod(i).key)), pod(i+1).key.Name)
	}
	expect(t, "too many are slow", names(r.slow(pod(maxTries-1).key)))
	expect(t, "one of them is back", names(r.finish(pod(0).key, evict, dawn)), pod(maxTries).key.Name)
	expect(t, "it is not slow any more", names(r.slow(pod(0).key)))
}

func TestAnExhaustedBudgetIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := testDispatcher()
	arrive(r, dawn, pod(1), pod(2), pod(3))
	expect(t, "one that was never refused tries too", names(r.finish(pod(1).key, full, dawn)), "pod-2")
	expect(t, "and the next", names(r.finish(pod(2).key, full, dawn)), "pod-3")
	expect(t, "then nobody", names(r.finish(pod(3).key, full, dawn)))
	expect(t, "asking again is no use", arrive(r, dawn.Add(time.Second), pod(1), pod(2), pod(3)))

	expect(t, "the budget allows two", names(r.budgetAllows(web, 2)), "pod-1")
	expect(t, "success lets the next one try", names(r.finish(pod(1).key, evict, dawn)), "pod-2")
	expect(t, "two are enough", names(r.finish(pod(2).key, evict, dawn)))
	expect(t, "the budget allows none", names(r.budgetAllows(web, 0)))
	expect(t, "the budget allows one", names(r.budgetAllows(web, 1)), "pod-3")
	expect(t, "a refusal wakes nobody", names(r.finish(pod(3).key, full, dawn)))
}

func TestATurnThatWasNoUseIsGivenOn(t *testing.T) {
	t.Parallel()
	outcomes := map[string]func(*Dispatcher) []podKey{
		"denied by a webhook": func(r *Dispatcher) []podKey { return r.finish(pod(1).key, deny, dawn) },
		"gone": func(r *Dispatcher) []podKey {
			return r.finish(pod(1).key, evacuation.Outcome{Result: evacuation.Gone}, dawn)
		},
		"a read failed":          func(r *Dispatcher) []podKey { return r.yield(pod(1).key, dawn) },
		"an evacuator came back": func(r *Dispatcher) []podKey { return r.forget(pod(1).key) },
		"the API server is busy": func(r *Dispatcher) []podKey {
			return r.finish(pod(1).key, evacuation.Outcome{Result: evacuation.Throttled}, dawn)
		},
	}
	for name, end := range outcomes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testDispatcher()
			arrive(r, dawn, pod(1), pod(2))
			r.finish(pod(1).key, full, dawn)
			r.finish(pod(2).key, full, dawn)
			expect(t, "the budget allows one", names(r.budgetAllows(web, 1)), "pod-1")
			expect(t, name, names(end(r)), "pod-2")
		})
	}
}

func TestABudgetThatOpensDuringATryIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := testDispatcher()
	arrive(r, dawn, pod(1))
	expect(t, "nobody waits yet", names(r.budgetAllows(web, 1)))
	expect(t, "the refusal is older than the opening", names(r.finish(pod(1).key, full, dawn)), "pod-1")
	arrive(r, dawn, pod(1))
	expect(t, "this one is not", names(r.finish(pod(1).key, full, dawn)))
}

func TestATurnThatIsNotUsedIsTakenBackOnce(t *testing.T) {
	t.Parallel()
	r := testDispatcher()
	arrive(r, dawn, pod(1), pod(2), pod(3))
	expect(t, "a read failed", names(r.yield(pod(1).key, dawn)), "pod-2")
	expect(t, "nothing is taken back twice", names(r.yield(pod(1).key, dawn)))
	expect(t, "the one that failed rests", arrive(r, dawn, pod(1)))
	expect(t, "nobody is unknown", names(r.forget(pod(9).key)))
}

func TestReplacedBudgetHoldsBackNoPods(t *testing.T) {
	t.Parallel()
	r := testDispatcher()
	arrive(r, dawn, pod(1), pod(2), pod(3))
	r.finish(pod(1).key, full, dawn)
	r.finish(pod(2).key, full, dawn)
	r.finish(pod(3).key, full, dawn)
	expect(t, "those that wait ask again", names(r.budgetReplaced(web)), "pod-1", "pod-2", "pod-3")
	expect(t, "without the budget", arrive(r, dawn, free(1), free(2)), "pod-1", "pod-2")
	expect(t, "an unknown budget", names(r.budgetReplaced(types.NamespacedName{Name: "unknown"})))
}

func TestAPodWithAnotherBudgetLeavesItsTurnToTheNextOne(t *testing.T) {
	t.Parallel()
	r := testDispatcher()
	arrive(r, dawn, pod(1), pod(2), pod(3))
	expect(t, "the next one tries", names(r.finish(pod(1).key, evict, dawn)), "pod-2")
	mayTry, _, next := r.begin(free(2), dawn)
	if !mayTry {
		t.Error("a pod that has no single budget any more may try at any time")
	}
	expect(t, "the turn goes on", names(next), "pod-3")
}

func TestARefusalNamesTheBudgetToWaitFor(t *testing.T) {
	t.Parallel()
	r := testDispatcher()
	arrive(r, dawn, free(1))
	r.finish(free(1).key, full, dawn)
	expect(t, "the cache did not know the budget yet", arrive(r, dawn, pod(1)))
	expect(t, "now it does", names(r.budgetAllows(web, 1)), "pod-1")
}

func TestPause(t *testing.T) {
	t.Parallel()
	outcome := func(result evacuation.Result, retryAfter time.Duration) evacuation.Outcome {
		return evacuation.Outcome{Result: result, RetryAfter: retryAfter}
	}
	tests := map[string]struct {
		outcome  evacuation.Outcome
		failures int
		jitter   float64
		want     time.Duration
	}{
		"the first refusal":            {outcome(evacuation.Refused, 0), 1, 0, time.Second},
		"the fourth":                   {outcome(evacuation.Refused, 0), 4, 0, 8 * time.Second},
		"the hundredth":                {outcome(evacuation.Refused, 0), 100, 0, 20 * time.Second},
		"jitter takes off":             {outcome(evacuation.Refused, 0), 4, 1, 6 * time.Second},
		"a refusal that says when":     {outcome(evacuation.Refused, 30*time.Second), 1, 0, 30 * time.Second},
		"one that says too late":       {outcome(evacuation.Refused, time.Hour), 1, 0, time.Minute},
		"throttling for too long":      {outcome(evacuation.Throttled, time.Hour), 1, 1, time.Minute},
		"a lost race":                  {outcome(evacuation.Contended, 10*time.Second), 1, 0, 100 * time.Millisecond},
		"many lost races":              {outcome(evacuation.Contended, 0), 20, 0, 10 * time.Second},
		"throttling":                   {outcome(evacuation.Throttled, 3*time.Second), 1, 0, 3 * time.Second},
		"throttling never comes early": {outcome(evacuation.Throttled, 4*time.Second), 1, 1, 5 * time.Second},
		"postponed by a webhook":       {outcome(evacuation.Postponed, 0), 1, 0, time.Second},
		"postponed for long":           {outcome(evacuation.Postponed, 0), 50, 0, 30 * time.Second},
		"postponed, and told for how":  {outcome(evacuation.Postponed, time.Minute), 1, 0, time.Minute},
		"throttling that says nothing": {outcome(evacuation.Throttled, 0), 7, 0, time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := pause(tc.outcome, tc.failures, tc.jitter); got != tc.want {
				t.Errorf("pause = %s, want %s", got, tc.want)
			}
		})
	}
}

// apiServer is one budget as the API server and the disruption controller treat
// it: an eviction takes a disruption, and a while later it is given back.
type apiServer struct {
	mu      sync.Mutex
	allowed int32
	left    sync.WaitGroup
}

func (s *apiServer) evict() evacuation.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.allowed == 0 {
		return full
	}
	s.allowed--
	s.left.Done()
	return evict
}

// giveBack returns what the budget allows now. Nobody orders the events of two
// openings, so that the dispatcher may hear of the later one first.
func (s *apiServer) giveBack() int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed++
	return s.allowed
}

// TestNoOpeningIsLost has many workers evict many pods of one budget, while it
// opens at any moment. Time stands still, so that a single lost wake-up would
// leave pods behind for ever.
func TestNoOpeningIsLost(t *testing.T) {
	t.Parallel()
	const pods, workers, allowed = 300, 8, 1
	ctx, cancel := patience.Context(t)
	defer cancel()
	r := testDispatcher()
	server := &apiServer{allowed: allowed}
	server.left.Add(pods)
	// Every pod is woken at most once for every try and every opening.
	queue := make(chan podKey, pods*pods)
	wake := func(keys []podKey) {
		for _, key := range keys {
			queue <- key
		}
	}
	attempts := map[podKey]attempt{}
	for i := range pods {
		attempts[pod(i).key] = pod(i)
		queue <- pod(i).key
	}
	// A work queue never hands out the same pod twice at the same time.
	var busy keyedMutex
	var openings sync.WaitGroup
	work := func(key podKey) {
		defer busy.lock(key)()
		mayTry, _, _ := r.begin(attempts[key], dawn)
		if !mayTry {
			return
		}
		outcome := server.evict()
		runtime.Gosched() // An answer takes a while, in which the budget may open.
		if outcome.Result == evacuation.Evicted {
			openings.Go(func() {
				wake(r.budgetAllows(web, server.giveBack()))
			})
		}
		wake(r.finish(key, outcome, dawn))
	}
	for range workers {
		openings.Go(func() { serve(ctx, queue, work) })
	}
	done := make(chan struct{})
	go func() { server.left.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		t.Errorf("pods are left although the budget allows %d", server.allowed)
	}
	cancel()
	openings.Wait()
}

func serve[K any](ctx context.Context, queue <-chan K, work func(K)) {
	for {
		select {
		case key := <-queue:
			work(key)
		case <-ctx.Done():
			return
		}
	}
}

// keyedMutex is one lock for every key.
type keyedMutex struct{ locks sync.Map }

func (m *keyedMutex) lock(key any) (unlock func()) {
	one, _ := m.locks.LoadOrStore(key, &sync.Mutex{})
	mutex, _ := one.(*sync.Mutex)
	mutex.Lock()
	return mutex.Unlock
}
