package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// TestLongSeveralManagers plays one after the other what happens to managers that share a
// lease, each in the middle of drains, surges and locks. They end as if nothing had been.
func TestLongSeveralManagers(t *testing.T) {
	t.Parallel()
	t.Run("another one goes on where the leader was killed", goesOnAfterAKill)
	t.Run("a leader that was paused does nothing any more", doesNothingAfterAPause)
	t.Run("they are replaced one by one", areReplaced)
	t.Run("leadership is taken away every few seconds", areRobbed)
	if *prove {
		for range 5 {
			t.Run("all of it again and again", areTroubledAllTheTime)
		}
	}
}

func (f *fleet) awaitLeads(one cluster.Replica) {
	f.t.Helper()
	f.eventually("a manager to lead", func() (bool, any) { return one.Leads(f.t), one.Tail(1) })
}

// assertServes wants each manager to answer the API server, whether it leads or not.
func (f *fleet) assertServes(managers ...cluster.Replica) {
	f.t.Helper()
	first := f.reboots[0]
	for _, one := range managers {
		undo := f.cluster.OnlyTo(f.t, one)
		f.awaitAnswer(f.replica(myApp, f.name("three")), "is locked by "+f.holder(first.maintenance, first.node))
		undo()
	}
}

func goesOnAfterAKill(t *testing.T) {
	f := newFleet(t)
	leader, other := f.managers[0], f.managers[1]
	if status, text := leader.Metrics(t, f.cluster.Config.BearerToken); status != http.StatusOK || !strings.Contains(text, "ebbtide_") {
		t.Errorf("an administrator who asks for metrics is answered with status %d", status)
	}
	if status, text := leader.Metrics(t, "made up"); status == http.StatusOK {
		t.Errorf("somebody who asks for metrics is answered: %.100s", text)
	}
	f.begins()
	f.assertServes(leader, other)
	leader.Kill()
	f.goesOn() // while nobody leads
	f.awaitLeads(other)
	f.ends()
}

// A leader is paused for longer than its lease lasts, as on a machine that is
// suspended. When it goes on another one leads, and it does nothing any more.
func doesNothingAfterAPause(t *testing.T) {
	f := newFleet(t)
	leader, other := f.managers[0], f.managers[1]
	f.begins()
	f.must("pause the leader", leader.Pause())
	seen := leader.LogSize(t)
	f.awaitLeads(other)
	f.pods(f.held, pod{name: "late"})
	f.awaitGone("late")
	// Now its caches say something else than the API server does.
	f.goesOn()
	f.must("let it go on", leader.Resume())
	f.awaitEnd(leader)
	if acted := leader.Acted(t, seen); len(acted) > 0 {
		t.Errorf("a manager that has lost its lease has acted:\n%s", acted)
	}
	f.late++
	f.ends()
}

func (f *fleet) awaitEnd(one cluster.Replica) {
	f.t.Helper()
	patience.Receive(f.t, "the end of a manager that has lost its lease", one.Done())
}

// A rolling replacement asks the leader to end, and it gives its lease back at once.
func areReplaced(t *testing.T) {
	f := newFleet(t)
	leader, other := f.managers[0], f.managers[1]
	f.begins()
	leader.Stop()
	f.awaitLeads(other)
	third := f.cluster.StartReplica(t)
	f.assertServes(other, third)
	f.goesOn()
	other.Stop()
	f.awaitLeads(third)
	f.ends()
}

// Somebody writes the Lease again and again, so that another manager takes it while the
// one before does not know yet. Who has lost it ends, and is replaced as by a Deployment.
func areRobbed(t *testing.T) {
	f := newFleet(t)
	f.leaders = 2
	robber := f.haunt(2, f.rob)
	f.begins()
	robber.awaitStrikes(2)
	f.goesOn()
	robber.awaitStrikes(3)
	f.ends()
	robber.stop()
}

// Managers are killed, paused and robbed all the time, whatever they are about.
func areTroubledAllTheTime(t *testing.T) {
	f := newFleet(t)
	f.leaders = 2
	storm := f.haunt(2, f.rob, f.strike)
	f.begins()
	storm.awaitStrikes(3)
	f.goesOn()
	storm.awaitStrikes(6)
	storm.stop()
	f.ends()
}

// haunting is what befalls managers until it is stopped.
type haunting struct {
	*fleet
	strikes atomic.Int32
	stop    func()
}

// haunt does one of these after the other until it is stopped, each of which ends when
// managers have suffered by it. Until the test ends it keeps so many managers running.
func (f *fleet) haunt(managers int, acts ...func(context.Context) error) *haunting {
	f.t.Helper()
	h := &haunting{fleet: f}
	f.until(func(ctx context.Context) { f.keep(ctx, managers) })
	h.stop = f.until(func(ctx context.Context) {
		for ctx.Err() == nil {
			if err := acts[rand.IntN(len(acts))](ctx); err != nil && ctx.Err() == nil {
				f.t.Errorf("haunt: %v", err)
				return
			}
			h.strikes.Add(1)
			wait(ctx, 3*time.Second)
		}
	})
	return h
}

// until does something beside the test until that is stopped, or ends.
func (f *fleet) until(do func(context.Context)) (stop func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(ctx)
	}()
	stop = func() { cancel(); <-done }
	f.t.Cleanup(stop)
	return stop
}

func wait(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

func (h *haunting) awaitStrikes(n int32) {
	h.t.Helper()
	patience.Eventually(h.t, fmt.Sprintf("%d strikes", n), func(context.Context) (string, bool) {
		return fmt.Sprint(h.strikes.Load()), h.strikes.Load() >= n
	})
}

// keep starts a manager for each that has ended.
func (f *fleet) keep(ctx context.Context, managers int) {
	running := slices.Clone(f.managers)
	for ctx.Err() == nil {
		running = slices.DeleteFunc(running, ended)
		for len(running) < managers && ctx.Err() == nil {
			one, err := f.cluster.AddReplica(f.t)
			if err != nil {
				f.t.Errorf("start another manager: %v", err)
				return
			}
			running = append(running, one)
		}
		f.mu.Lock()
		f.managers = slices.Clone(running)
		f.mu.Unlock()
		wait(ctx, 200*time.Millisecond)
	}
}

func ended(one cluster.Replica) bool {
	select {
	case <-one.Done():
		return true
	default:
		return false
	}
}

// rob takes the Lease of the leader away until another manager has it.
func (f *fleet) rob(ctx context.Context) error {
	key := client.ObjectKey{Namespace: cluster.Account.Namespace, Name: kube.LeaderLease}
	leader := ""
	for ctx.Err() == nil {
		lease := &coordinationv1.Lease{}
		if err := f.client.Get(ctx, key, lease); err != nil {
			return err
		}
		holder := *lease.Spec.HolderIdentity
		switch {
		case leader != "" && holder != "" && holder != leader:
			return nil
		case holder != "":
			leader = holder
			lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new(""), new(int32(1))
			if err := client.IgnoreNotFound(f.client.Update(ctx, lease)); err != nil && !apierrors.IsConflict(err) {
				return err
			}
		}
		wait(ctx, 200*time.Millisecond)
	}
	return nil
}

// strike kills one of the managers, or pauses it for longer than its lease lasts.
func (f *fleet) strike(ctx context.Context) error {
	f.mu.Lock()
	one := f.managers[rand.IntN(len(f.managers))]
	f.mu.Unlock()
	if rand.IntN(2) == 0 {
		one.Kill()
		return nil
	}
	if err := one.Pause(); err != nil {
		return nil // It has just ended.
	}
	wait(ctx, 20*time.Second)
	_ = one.Resume()
	return nil
}
