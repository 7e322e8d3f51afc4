package eviction

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/test/patience"
)

// shop is the cache of one budget of the pods of web, and an API server that evicts
// them all. What happens at certain moments can be said.
type shop struct {
	client.Reader
	dispatcher *Caller
	clock      *clocktesting.FakeClock

	budget atomic.Pointer[policyv1.PodDisruptionBudget]
	// beforeRead and afterRead happen around a look into the cache, onRequest with a
	// request, before its answer. Each may be nil.
	beforeRead, afterRead, onRequest func()
	answer                           metav1.Status
	requests                         atomic.Int32
	woken                            func(...types.NamespacedName)
}

func newShop() *shop {
	s := &shop{
		clock: clocktesting.NewFakeClock(dawn), answer: metav1.Status{Status: metav1.StatusSuccess},
		woken: func(...types.NamespacedName) {},
	}
	s.budget.Store(budgetNamed("web", 100))
	s.dispatcher = NewDispatcher(DispatcherOptions{
		Reader: s, Clock: s.clock, Now: s.clock.Now, Jitter: func() float64 { return 0 },
	}).Caller(CallerOptions{Evictor: s, Wake: func(keys ...types.NamespacedName) { s.woken(keys...) }})
	return s
}

func (s *shop) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	happen(s.beforeRead)
	list.(*policyv1.PodDisruptionBudgetList).Items = []policyv1.PodDisruptionBudget{*s.budget.Load()}
	happen(s.afterRead)
	return nil
}

func (s *shop) Evict(context.Context, *corev1.Pod, *int64) metav1.Status {
	s.requests.Add(1)
	happen(s.onRequest)
	return s.answer
}

func happen(what func()) {
	if what != nil {
		what()
	}
}

// lock changes the cache, and returns what the dispatcher is to be told.
func (s *shop) lock(locked bool) (old, now *policyv1.PodDisruptionBudget) {
	now = budgetNamed("web", 100)
	if locked {
		metav1.SetMetaDataAnnotation(&now.ObjectMeta, v1alpha1.LockAnnotation, budget.Lock{
			Holder: "dba", AcquiredAt: metav1.Time{Time: dawn}, ExpiresAt: metav1.Time{Time: dawn.Add(time.Hour)},
		}.Write())
	}
	return s.budget.Swap(now), now
}

func webPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}}}
}

func (s *shop) evict(t *testing.T, name string) Answer {
	t.Helper()
	answer, err := s.dispatcher.Evict(t.Context(), types.NamespacedName{Namespace: "shop", Name: name}, webPod(name), nil)
	if err != nil {
		t.Errorf("evict %s: %v", name, err)
	}
	return answer
}

func expectBusy(t *testing.T, when string, caller *Caller, want ...types.NamespacedName) {
	t.Helper()
	var got []types.NamespacedName
	for one := range caller.Busy() {
		got = append(got, one)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("busy %s (-want +got):\n%s", when, diff)
	}
}

// TestNoEvictionOvertakesALock locks the budget at every moment of an eviction, as
// whoever confirms a lock does: it is in the cache before Busy is asked. Nobody
// asks the API server for a pod after Busy has said that its budget is not busy.
func TestNoEvictionOvertakesALock(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		moment   func(*shop) *func()
		requests int32
	}{
		"before the cache is read": {func(s *shop) *func() { return &s.beforeRead }, 0},
		"after the cache was read": {func(s *shop) *func() { return &s.afterRead }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop()
			busy := make(chan bool, 1)
			*tc.moment(s) = func() {
				s.lock(true)
				go func() { busy <- s.dispatcher.Busy()[web] }()
				// Who asks while somebody looks has to wait until that is noted.
				for range 1000 {
					runtime.Gosched()
				}
			}
			s.onRequest = func() {
				if !<-busy {
					t.Error("the budget is not busy, and then a pod is evicted")
				}
			}
			s.evict(t, "a")
			if s.requests.Load() != tc.requests {
				t.Errorf("%d requests, want %d", s.requests.Load(), tc.requests)
			}
			expectBusy(t, "when all is over", s.dispatcher)
		})
	}
}

func TestABudgetIsBusyFromTheLookToTheAnswer(t *testing.T) {
	t.Parallel()
	s := newShop()
	expectBusy(t, "before", s.dispatcher)
	s.onRequest = func() { expectBusy(t, "during the request", s.dispatcher, web) }
	s.evict(t, "a")
	expectBusy(t, "after the answer", s.dispatcher)
	s.lock(true)
	if answer := s.evict(t, "b"); answer.Outcome == nil || s.requests.Load() != 1 {
		t.Errorf("answer %+v after %d requests, want a lock and one request", answer, s.requests.Load())
	}
	expectBusy(t, "when it was locked", s.dispatcher)
	busy := s.dispatcher.Busy()
	busy[web] = true
	expectBusy(t, "when a caller has changed its map", s.dispatcher)
}

// A pod of a NodeMaintenance and one of a Machine are evicted at once.
func TestABudgetIsBusyUntilTheLastAnswer(t *testing.T) {
	t.Parallel()
	s, other := newShop(), newShop()
	other.dispatcher = s.dispatcher.Caller(CallerOptions{Evictor: other, Wake: func(...types.NamespacedName) {}})
	s.onRequest = func() {
		s.clock.Step(slowTry)
		other.evict(t, "b")
		expectBusy(t, "when one of two evictions is over", s.dispatcher, web)
	}
	s.evict(t, "a")
	expectBusy(t, "when both are over", s.dispatcher)
}

// Pods of a NodeMaintenance and of a Machine wait for the same budget.
func TestCallersShareTheQueueOfABudget(t *testing.T) {
	t.Parallel()
	s, other := newShop(), newShop()
	other.dispatcher = s.dispatcher.Caller(CallerOptions{Evictor: other, Wake: func(keys ...types.NamespacedName) { other.woken(keys...) }})
	var woken []string
	for name, one := range map[string]*shop{"maintenance": s, "machine": other} {
		one.answer = answered(429, "no", metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: exhausted})
		one.woken = func(keys ...types.NamespacedName) {
			for _, key := range keys {
				woken = append(woken, name+": "+key.Name)
			}
		}
	}
	for range 2 {
		s.evict(t, "a")
		other.evict(t, "b")
	}
	if s.requests.Load() != 1 || other.requests.Load() != 1 {
		t.Errorf("%d and %d requests, want one each: the budget is closed", s.requests.Load(), other.requests.Load())
	}
	opens := budgetNamed("web", 1)
	s.dispatcher.BudgetChanged(opens, opens)
	expect(t, "woken", woken, "maintenance: a")
	s.answer.Status = metav1.StatusSuccess
	s.evict(t, "a")
	expect(t, "woken by an eviction that has used the opening up", woken, "maintenance: a")
	s.dispatcher.BudgetChanged(opens, opens)
	expect(t, "woken by the next opening", woken, "maintenance: a", "machine: b")
}

// Nobody knows what becomes of a request that has no answer.
func TestARequestWithoutAnAnswerIsUnderWayForAWhile(t *testing.T) {
	t.Parallel()
	for code, late := range map[int32]bool{0: true, 502: true, 503: true, 504: true, 403: false, 404: false, 409: false, 429: false, 500: false} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			s := newShop()
			s.answer = answered(code, "no")
			s.evict(t, "a")
			if s.dispatcher.Busy()[web] != late {
				t.Errorf("busy %t, want %t", !late, late)
			}
			s.clock.Step(lateAnswer - 1)
			if s.dispatcher.Busy()[web] != late {
				t.Errorf("busy %t a minute later, want %t", !late, late)
			}
			s.clock.Step(1)
			expectBusy(t, "after the API server has given up", s.dispatcher)
		})
	}
}

// TestLocksAndEvictionsMeet has many pods evicted while the budget is locked and
// unlocked. Whoever has confirmed a lock is alone.
func TestLocksAndEvictionsMeet(t *testing.T) {
	t.Parallel()
	const evictors, rounds = 4, 300
	s := newShop()
	var confirmed atomic.Bool
	check := func() {
		if confirmed.Load() {
			t.Error("a pod is evicted under a confirmed lock")
		}
	}
	s.onRequest = func() { check(); runtime.Gosched(); check() }
	var running sync.WaitGroup
	var over atomic.Bool
	for i := range evictors {
		running.Go(func() {
			name := fmt.Sprintf("pod-%d", i)
			for !over.Load() {
				s.evict(t, name)
				s.dispatcher.Forget(types.NamespacedName{Namespace: "shop", Name: name})
			}
		})
	}
	confirmations := 0
	for range rounds {
		s.dispatcher.BudgetChanged(s.lock(true))
		if !s.dispatcher.Busy()[web] {
			confirmations++
			confirmed.Store(true)
			runtime.Gosched()
			confirmed.Store(false)
		}
		s.dispatcher.BudgetChanged(s.lock(false))
	}
	over.Store(true)
	running.Wait()
	if confirmations == 0 || s.requests.Load() == 0 {
		t.Errorf("%d locks were confirmed and %d pods evicted, want some of both", confirmations, s.requests.Load())
	}
}

// The watch may tell of an unlocking before the pod waits for it.
func TestAnUnlockingDuringTheLookIsNotMissed(t *testing.T) {
	t.Parallel()
	s := newShop()
	s.lock(true)
	s.afterRead = func() {
		s.afterRead = nil
		s.dispatcher.BudgetChanged(s.lock(false))
	}
	if answer := s.evict(t, "a"); answer.Outcome != nil || answer.Again != time.Nanosecond {
		t.Errorf("answer %+v, want to look again at once", answer)
	}
	if answer := s.evict(t, "a"); s.requests.Load() != 1 {
		t.Errorf("answer %+v, want the pod to be evicted", answer)
	}
}

// TestNoUnlockingIsLost locks and unlocks while many workers look. Time stands
// still, so that a single lost wake-up would leave pods behind for ever.
func TestNoUnlockingIsLost(t *testing.T) {
	t.Parallel()
	const pods, workers, rounds = 100, 6, 200
	ctx, cancel := patience.Context(t)
	defer cancel()
	s := newShop()
	s.lock(true)
	// Every pod is woken at most once for every try and every change.
	queue := make(chan types.NamespacedName, pods*(rounds+pods))
	s.woken = func(keys ...types.NamespacedName) {
		for _, key := range keys {
			queue <- key
		}
	}
	var left sync.WaitGroup
	left.Add(pods)
	var gone sync.Map
	var busy keyedMutex
	work := func(key types.NamespacedName) {
		defer busy.lock(key)()
		if _, is := gone.Load(key); is {
			return
		}
		switch answer := s.evict(t, key.Name); {
		case answer.Outcome == nil && answer.Again > 0:
			queue <- key
		case answer.Outcome != nil && answer.Outcome.Result == "evicted":
			gone.Store(key, true)
			left.Done()
		}
	}
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { serve(ctx, queue, work) })
	}
	for i := range rounds {
		if i < pods {
			queue <- types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("pod-%d", i)}
		}
		s.dispatcher.BudgetChanged(s.lock(i%2 == 0))
	}
	done := make(chan struct{})
	go func() { left.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		t.Error("pods are left although nothing is locked")
	}
	cancel()
	running.Wait()
}

func TestALockIsWaitedForInTheOrderOfAge(t *testing.T) {
	t.Parallel()
	s := newShop()
	s.lock(true)
	var woken []string
	s.woken = func(keys ...types.NamespacedName) {
		for _, key := range keys {
			woken = append(woken, key.Name)
		}
	}
	for _, name := range []string{"b", "c", "a"} {
		s.evict(t, name)
	}
	s.dispatcher.BudgetChanged(s.lock(false))
	if want := []string{"a", "b", "c"}; !slices.Equal(woken, want) {
		t.Errorf("woken %v, want %v", woken, want)
	}
	woken = nil
	s.dispatcher.BudgetChanged(s.lock(false))
	if len(woken) > 0 {
		t.Errorf("woken %v by a change that is none", woken)
	}
}
