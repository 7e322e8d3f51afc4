package rollout

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/kube"
)

// outdatedFor is the time for which a write that was refused as stale is not retried on the same
// state. The watch shows a newer one much earlier.
const outdatedFor = time.Minute

// outdated holds the states of objects that the API server no longer has, so that a cache that is
// behind causes no stream of writes. It is safe for concurrent use.
type outdated struct {
	clock clock.PassiveClock

	mu  sync.Mutex
	all map[version]time.Time
}

type version struct {
	uid     types.UID
	version string
}

func newOutdated(clk clock.PassiveClock) *outdated {
	return &outdated{clock: clk, all: map[version]time.Time{}}
}

// add remembers the state of an object if the error of a write says that it is stale.
func (o *outdated) add(object client.Object, err error) {
	if !kube.IsStale(err) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	maps.DeleteFunc(o.all, func(_ version, until time.Time) bool { return !now.Before(until) })
	o.all[versionOf(object)] = now.Add(outdatedFor)
}

func (o *outdated) has(object client.Object) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.clock.Now().Before(o.all[versionOf(object)])
}

func versionOf(object client.Object) version {
	return version{object.GetUID(), object.GetResourceVersion()}
}
