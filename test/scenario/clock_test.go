package scenario

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/skew"
	"ebbtide.dev/ebbtide/test/cluster"
)

// The clocks of the manager and of the API server are four minutes apart. Drains go on,
// but no lock is promised, given up or taken for ended, which an event on the Lease of the leader
// and the node that waits say. When the clocks agree again it all happens, without anybody's help.
func TestLongTheClocksAreApart(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Spec{Replicas: true, Tapped: true})
	ns := c.Namespace(t)
	w := &world{t: t, ctx: context.WithoutCancel(t.Context()), client: c.Client, cluster: c, prefix: ns + "-", ns: ns}
	manager := c.StartReplica(t)
	w.eventually("the manager to lead", func() (bool, any) { return manager.Leads(t), manager.Tail(1) })
	w.awaitMetric(manager, "ebbtide_clock_skewed 0")
	nodes := w.nodes("one", "two", "three")
	w.guarded(nodes[0], "free", "closed")
	w.guarded(nodes[1], "old")
	w.pods(nodes[2], pod{name: "ordinary"})
	w.closeBudget("closed")

	if w.warnings() > 0 {
		t.Error("a clock that is right is reported as skewed")
	}

	c.SetServerClock(t, 4*time.Minute)
	w.awaitMetric(manager, "ebbtide_clock_skewed 1")
	w.awaitMetric(manager, "ebbtide_clock_skew_seconds -2")

	w.setLock("old", ownerLock(time.Now().Add(time.Second)))
	w.maintainInPlace("upgrade", impatient(v1alpha1.LockTimeoutEvict, 1), nodes[0])
	w.awaitBlocker("upgrade", nodes[0], v1alpha1.BlockerClockSkewed, skew.Message)
	w.awaitRecord(nodes[0], "False", v1alpha1.ReasonClockSkewed)
	w.eventually("a warning on the Lease of the leader", func() (bool, any) { return w.warnings() > 0, nil })
	w.maintain("drain", v1alpha1.StageDrain, nodes[2:])
	w.awaitDrained("drain")
	begin := time.Now()
	w.eventually("much more time than the maintenance has", func() (bool, any) { return time.Since(begin) > 5*time.Second, begin })
	w.assertStaysLocked("dba", "old")
	w.assertStaysLocked("", "free", "closed")
	w.awaitRecord(nodes[0], "False", v1alpha1.ReasonClockSkewed)
	w.awaitNoEvacuations()
	old := &corev1.Pod{}
	w.get(old, "old")
	if err := w.evict(old, metav1.DryRunAll); !apierrors.IsTooManyRequests(err) {
		t.Errorf("an eviction under a lock that seems to have ended: %v, want it to wait", err)
	}

	c.SetServerClock(t, 0)
	w.awaitMetric(manager, "ebbtide_clock_skewed 0")
	w.awaitLock("", "old")
	w.awaitWarning("NodeMaintenance", w.name("upgrade"), "LockTimedOut", w.ns+"/closed ")
	w.openBudget("closed")
	w.awaitGone("closed")
	w.awaitDrained("upgrade")
	w.awaitLock(w.holder("upgrade", nodes[0]), "free")
	w.sayBack(nodes[0])
	w.setStage("upgrade", v1alpha1.StageComplete)
	w.awaitNothingLocked(nodes[0])
}

// warnings is how often leaders have warned of their clock.
func (w *world) warnings() int {
	w.t.Helper()
	list := &eventsv1.EventList{}
	w.must("list events", w.client.List(w.ctx, list, client.MatchingFields{"reason": v1alpha1.EventClockSkewed, "regarding.kind": "Lease"}))
	return len(list.Items)
}

// awaitMetric waits until a manager shows a line that begins like this.
func (w *world) awaitMetric(manager cluster.Replica, begins string) {
	w.t.Helper()
	w.eventually("the metric "+begins, func() (bool, any) {
		status, text := manager.Metrics(w.t, w.cluster.Config.BearerToken)
		var shown []string
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "ebbtide_clock_") {
				shown = append(shown, line)
			}
		}
		return status == http.StatusOK && strings.Contains("\n"+text, "\n"+begins), shown
	})
}

// impatient is a maintenance that has given up to wait for a lock after this time.
func impatient(action v1alpha1.LockTimeoutAction, seconds int32) v1alpha1.InPlace {
	return v1alpha1.InPlace{ExpectedDowntimeSeconds: 120, LockTimeoutSeconds: seconds, OnLockTimeout: action}
}
