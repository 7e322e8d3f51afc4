package proof

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/test/cluster"
)

var (
	drains = flag.Int("drains", 8, "how many drains to prove")
	seed   = flag.Uint64("seed", 1, "what the drains are drawn from; 0 for a new one")
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// outcome is what was seen in one drain.
type outcome struct {
	// surged are the pods that were detached, least the ready endpoints at the
	// least, missing how many that is below the replicas.
	surged, least, missing int
	cancelled              bool
}

// tally is what was seen in all drains.
type tally struct {
	mu       sync.Mutex
	outcomes []outcome
}

func (a *tally) add(o outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outcomes = append(a.outcomes, o)
}

// String is the result in one line.
func (a *tally) String() string {
	surged, cancelled, undiminished, least := 0, 0, 0, math.MaxInt
	for _, o := range a.outcomes {
		surged += o.surged
		least = min(least, o.least)
		if o.cancelled {
			cancelled++
		}
		if o.missing <= 0 {
			undiminished++
		}
	}
	return fmt.Sprintf("%d drains, %d of them cancelled; %d pods surged; ready endpoints of a Service at the least: %d, and never below the replicas in %d drains",
		len(a.outcomes), cancelled, surged, least, undiminished)
}

// A Service whose application surges has a ready endpoint at all times, whatever
// its budget, whoever cancels and however often the manager is killed. When all
// is over, nothing tells that there was a drain.
func TestLongAServiceIsNeverDown(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	begin := time.Now()
	all := &tally{}
	crash := &crash{manager: cluster.Start(t, cluster.Spec{}).StartManager(t)}
	t.Run("drain", func(t *testing.T) {
		for number := 1; number <= *drains; number++ {
			t.Run(fmt.Sprint(number), func(t *testing.T) {
				t.Parallel()
				s := draw(*seed, number)
				t.Logf("drain %d of seed %d: %s", number, *seed, s)
				all.add(prove(t, s, crash))
			})
		}
	})
	fmt.Printf("seed %d, %s: %s; manager killed %d times\n", *seed, time.Since(begin).Round(time.Second), all, crash.count)
}

// prove drains as the story says.
func prove(t *testing.T, s story, crash *crash) outcome {
	t.Helper()
	w := newWorld(t, cluster.Spec{Nodes: nodes}, s)
	before, err := w.fingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	endpoints := w.cluster.WatchEndpoints(t, w.key())

	d := w.begin(w.drained(s.together), crash)
	cancelled := d.play(s)
	surged := d.end(before)

	if surged == 0 && !cancelled {
		t.Error("no pod was detached, although its node was drained")
	}
	least := endpoints.AssertAtLeast(t, 1)
	return outcome{surged, least, int(s.replicas) - least, cancelled}
}
