package proof

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/preflight"
	"ebbtide.dev/ebbtide/test/cluster"
)

var clusters = flag.Int("clusters", 10, "how many clusters to forecast drains of")

// manyClusters is from how many clusters on a share of their pods says something.
const manyClusters = 100

// score compares forecasts with what happened.
type score struct {
	// stayed are pods that did not leave, missed those of them of which nobody had said so.
	stayed, missed int
	// named are pods that were said to be held up, or that they may be, false those of them that
	// left; expected is how many were expected not to leave, excess how many more that was than did not.
	named, false, expected, excess int
	// homeless are replacements that fitted nowhere, unseen those of them that nobody expected; told and
	// wrong those that were expected, and those of them that did not come.
	homeless, unseen, told, wrong int
	leaving                       int
}

func (s *score) add(o score) {
	s.stayed, s.missed, s.named, s.false = s.stayed+o.stayed, s.missed+o.missed, s.named+o.named, s.false+o.false
	s.expected, s.excess = s.expected+o.expected, s.excess+o.excess
	s.homeless, s.unseen, s.told, s.wrong = s.homeless+o.homeless, s.unseen+o.unseen, s.told+o.told, s.wrong+o.wrong
	s.leaving += o.leaving
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 1
	}
	return float64(part) / float64(whole)
}

// recall is the share of the pods that stayed that had been named, precision of those
// that were expected to stay the share that did.
func (s *score) recall() float64    { return share(s.stayed-s.missed, s.stayed) }
func (s *score) precision() float64 { return share(s.expected-s.excess, s.expected) }

func (s *score) String() string {
	return fmt.Sprintf("%d pods left, %d did not; recall of these %.1f %%, precision %.1f %% (%.1f %% of all that were named, also as one of several); "+
		"%d replacements fitted nowhere: recall %.1f %%, precision %.1f %%",
		s.leaving, s.stayed, 100*s.recall(), 100*s.precision(), 100*share(s.named-s.false, s.named),
		s.homeless, 100*share(s.homeless-s.unseen, s.homeless), 100*share(s.told-s.wrong, s.told))
}

// A forecast names every pod that does not leave, and hardly any other.
func TestLongForecastsComeTrue(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	begin := time.Now()
	var mu sync.Mutex
	all := &score{}
	cluster.Start(t, cluster.Spec{}).StartManager(t)
	t.Run("cluster", func(t *testing.T) {
		for number := 1; number <= *clusters; number++ {
			t.Run(fmt.Sprint(number), func(t *testing.T) {
				t.Parallel()
				o := play(t, *seed, number)
				mu.Lock()
				defer mu.Unlock()
				all.add(o)
			})
		}
	})
	fmt.Printf("seed %d, %s, %d clusters: %s\n", *seed, time.Since(begin).Round(time.Second), *clusters, all)
	least := 0.95
	if *clusters < manyClusters {
		// One pod too many of a few is more than that.
		least = 0.8
	}
	if all.recall() < 1 || all.precision() < least {
		t.Errorf("recall %.4f and precision %.4f of pods that do not leave, want 1 and %.2f", all.recall(), all.precision(), least)
	}
}

// play forecasts a drain, drains, and compares.
func play(t *testing.T, seed uint64, number int) score {
	t.Helper()
	p := imagine(seed, number)
	t.Logf("cluster %d of seed %d: %s", number, seed, p)
	s := setUp(t, p)
	changed := s.follow()
	before := s.rest(changed, nil)
	m := s.maintenance(s.names[:p.drained])
	m.Spec.DrainPlan = p.plan
	forecast := s.forecast(before, m)

	s.try("the maintenance is created", func(ctx context.Context) error { return s.client.Create(ctx, m.DeepCopy()) })
	t.Cleanup(func() { (&drain{world: s.world, maintenance: m}).delete() })
	drained := map[string]bool{}
	for _, name := range s.names[:p.drained] {
		drained[name] = true
	}
	changed.see("", nil)
	after := s.rest(changed, drained)
	o, errors := compare(&forecast, before, after)
	if errors != "" {
		t.Logf("%s\n%s", forecast.Verdict, errors)
	}
	if o.missed > 0 {
		// Only what fails is told of many clusters.
		t.Errorf("%d pods did not leave of which nobody had said so: %s", o.missed, (&drain{world: s.world}).state())
	}
	return o
}

// compare counts what of a forecast has come true, and tells of what has not.
func compare(f *preflight.Forecast, before, after *still) (o score, errors string) {
	var wrong []string
	left := map[string]bool{}
	for _, pod := range after.pods {
		left[pod.Name+string(pod.UID)] = !podclass.Terminal(pod)
	}
	uids := map[string]types.UID{}
	for _, pod := range before.pods {
		uids[pod.Name] = pod.UID
	}
	// Of some pods it is only said how many of them do not leave.
	some, someStayed := 0, 0
	for _, node := range f.Nodes {
		for _, pod := range node.Pods {
			if pod.Outcome == preflight.OutcomeStays {
				continue
			}
			stays := left[pod.Name+string(uids[pod.Name])]
			chance := pod.Outcome == preflight.OutcomeMayBeBlocked
			named := pod.Outcome != preflight.OutcomeLeaves
			o.count(stays, named, chance)
			some, someStayed = some+one(chance), someStayed+one(chance && stays)
			if stays != named && !chance {
				wrong = append(wrong, fmt.Sprintf("pod %s on %s was to be %s, stays %t", pod.Name, node.Name, pod.Outcome, stays))
			}
		}
	}
	o.expected = f.Total.Held + f.Total.Complete
	someHeld := o.expected - (o.named - some)
	o.excess += max(0, someHeld-someStayed)
	o.homeless, o.told = homeless(before, after), f.Total.Unplaceable
	o.unseen, o.wrong = max(0, o.homeless-o.told), max(0, o.told-o.homeless)
	if o.unseen+o.wrong > 0 || someHeld != someStayed {
		wrong = append(wrong, fmt.Sprintf("%d replacements were to fit nowhere, %d do; of %d pods %d were not to leave, %d did not", o.told, o.homeless, some, someHeld, someStayed))
	}
	return o, strings.Join(wrong, "\n")
}

// count counts a pod that stays or leaves, and of which it was said that it stays, or may.
func (s *score) count(stays, named, chance bool) {
	s.stayed += one(stays)
	s.leaving += one(!stays)
	s.named += one(named)
	s.missed += one(stays && !named)
	s.false += one(!stays && named)
	s.excess += one(!stays && named && !chance)
}

// homeless counts the pods that are new and fit nowhere. Of those that a pod waits for it is
// said that this one is held up.
func homeless(before, after *still) int {
	waited := map[types.UID]bool{}
	for _, pod := range before.pods {
		waited[pod.UID] = true
	}
	found := 0
	for _, pod := range after.pods {
		found += one(pod.Spec.NodeName == "" && !waited[pod.UID])
	}
	for _, e := range after.evacuations {
		found -= one(blocker.Unplaced(e) != nil)
	}
	return found
}

func one(counts bool) int {
	if counts {
		return 1
	}
	return 0
}
