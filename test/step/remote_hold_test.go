package step

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/workload"
	"ebbtide.dev/ebbtide/test/patience"
)

// tooLong is a cluster whose first word is already too much. It counts how often
// it is asked.
func tooLong(t *testing.T) (asked *atomic.Int32, kubeconfig []byte) {
	t.Helper()
	asked = &atomic.Int32{}
	_, kubeconfig = serve(t, func(answer http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(answer, strings.Repeat("x", 1<<20))
	})
	return asked, kubeconfig
}

// A cluster that attacks is asked rarely: after one minute, two, four, and never
// less than twice an hour.
func TestAClusterThatExceedsABoundIsLeftAlone(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(time.Now())
	w := startRemotes(t, workload.Options{Clock: clock})
	asked, kubeconfig := tooLong(t)
	c := w.remote(t, "east", kubeconfig)
	_, _ = w.registry.Use(c, usingMachine)
	for attempt, pause := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		patience.Eventually(t, "the next attempt, and that it waits", func(context.Context) (string, bool) {
			return fmt.Sprintf("asked %d times", asked.Load()), asked.Load() == int32(attempt+1) && clock.HasWaiters()
		})
		state := w.awaitReason(t, c, v1alpha1.ReasonLimitExceeded)
		if want := (workload.HoldOff{Count: int32(attempt + 1), End: clock.Now().Add(pause * time.Minute)}); state.HoldOff != want {
			t.Fatalf("after attempt %d it is left alone for %+v, want %+v", attempt+1, state.HoldOff, want)
		}
		clock.Step(pause*time.Minute - time.Second)
		if got := asked.Load(); got != int32(attempt+1) {
			t.Fatalf("asked %d times before the time, want %d", got, attempt+1)
		}
		clock.Step(2 * time.Second)
	}
}

// The manager was killed or replaced. It knows from the status that the cluster is to
// be left alone, and until when; another Secret is tried at once.
func TestAClusterIsLeftAloneAfterARestart(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(time.Now())
	w := startRemotes(t, workload.Options{Clock: clock})
	told := make(chan types.NamespacedName, 1000)
	w.registry.OnChange(func(at types.NamespacedName) { told <- at })
	asked, kubeconfig := tooLong(t)
	c := w.remote(t, "east", kubeconfig)
	c.Status.HoldOff = &v1alpha1.ClusterHoldOff{BreachCount: 3, EndTime: metav1.NewTime(clock.Now().Add(4 * time.Minute))}

	_, err := w.registry.Use(c, usingMachine)

	want := "is unreachable since " + clock.Now().UTC().Format(time.RFC3339) +
		": The cluster has exceeded a bound. Will connect again at " + c.Status.HoldOff.EndTime.UTC().Format(time.RFC3339)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("use = %v, want %q", err, want)
	}
	if at := <-told; at != client.ObjectKeyFromObject(c) {
		t.Errorf("told of %s, want of the Cluster", at)
	}
	patience.Eventually(t, "that it waits", func(context.Context) (string, bool) { return "", clock.HasWaiters() })
	clock.Step(4*time.Minute - time.Second)
	if got := asked.Load(); got != 0 {
		t.Errorf("asked %d times before the time, want none", got)
	}
	clock.Step(2 * time.Second)
	patience.Eventually(t, "a longer pause", func(context.Context) (string, bool) {
		hold := w.registry.State(client.ObjectKeyFromObject(c)).HoldOff
		return fmt.Sprint(hold), hold.Count == 4
	})

	repaired := c.DeepCopy()
	repaired.Spec.KubeconfigSecretRef.Name = "repaired"
	w.secret(t, "repaired", map[string][]byte{"value": w.kubeconfig(t, same)})
	w.connect(t, repaired)
}
