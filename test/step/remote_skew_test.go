package step

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/workload"
	"ebbtide.dev/ebbtide/test/patience"
)

// A remote cluster has a clock of its own, by which the times of its pods are measured:
// one that is wrong concerns nobody else, and its Machines are told when it is right.
func TestARemoteClusterHasAClockOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newRemotes(t, workload.Options{Pace: &quick})
	var told atomic.Int32
	w.registry.OnChange(func(types.NamespacedName) { told.Add(1) })
	w.start(t)
	var ahead atomic.Int64
	ahead.Store(int64(time.Hour))
	_, kubeconfig := w.dated(t, &ahead)
	c := w.remote(t, "east", kubeconfig)
	east := w.connect(t, c)

	awaitSkew(t, east, true)
	if now, _ := east.Now(); time.Until(now) < 59*time.Minute {
		t.Errorf("there it is %s, want it an hour later than here", now)
	}
	before := told.Load()
	ahead.Store(0)
	awaitSkew(t, east, false)
	if now, _ := east.Now(); time.Until(now).Abs() > time.Minute {
		t.Errorf("there it is %s, want it as late as here", now)
	}
	patience.Eventually(t, "somebody told", func(context.Context) (string, bool) { return "nobody", told.Load() > before })
}

// awaitSkew waits until the clock of a cluster is skewed, or is not any more.
func awaitSkew(t *testing.T, connection *workload.Connection, want bool) {
	t.Helper()
	patience.Eventually(t, fmt.Sprintf("skewed: %t", want), func(context.Context) (string, bool) {
		now, skewed := connection.Now()
		return now.String(), skewed == want
	})
}

// dated hands everything to the API server and dates its answers.
func (w *remotes) dated(t *testing.T, ahead *atomic.Int64) (server string, kubeconfig []byte) {
	t.Helper()
	proxy := w.proxy(t)
	proxy.ModifyResponse = func(response *http.Response) error {
		response.Header.Set("Date", time.Now().Add(time.Duration(ahead.Load())).UTC().Format(http.TimeFormat))
		return nil
	}
	front, kubeconfig := serve(t, proxy.ServeHTTP)
	return front.URL, kubeconfig
}
