package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/skew"
)

// Now returns what time it is by the API server, as far as that is certain, and whether
// our clock is skewed, so that nothing ends by it.
type Now func() (now time.Time, skewed bool)

// Earliest is the earliest time that it may be.
func (n Now) Earliest() time.Time { return skew.Earliest(n()) }

// startup is when a manager that has started has had enough dates at the latest.
const startup = 10 * time.Second

// Skew compares our clock with that of an API server, by the dates of the answers
// that come anyway. A nil Skew knows nothing.
type Skew struct {
	clock func() instant

	mu      sync.Mutex
	answers []dated // the last ones, the newest last
	verdict skew.Verdict
	changed map[*func()]bool
}

// instant is a moment by our clock, which may be set, and by one that cannot.
type instant struct {
	wall time.Time
	runs time.Duration
}

// dated is what one answer has said, and when.
type dated struct {
	skew.Bounds
	at instant
}

// NewSkew returns a Skew that knows nothing yet.
func NewSkew() *Skew {
	began := time.Now()
	return &Skew{changed: map[*func()]bool{}, clock: func() instant {
		now := time.Now()
		return instant{wall: now.Round(0), runs: now.Sub(began)}
	}}
}

// Measure has it see all answers to requests by the config.
func (s *Skew) Measure(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return measured{s, next} })
}

// measured notes the dates of answers.
type measured struct {
	skew *Skew
	next http.RoundTripper
}

// RoundTrip is an http.RoundTripper.
func (m measured) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := m.skew.clock()
	response, err := m.next.RoundTrip(request)
	// What says that it could not ask the API server is somebody on the way.
	if err == nil && response.StatusCode < http.StatusInternalServerError {
		if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			m.skew.note(sent, m.skew.clock(), date)
		}
	}
	return response, err
}

// freshness is how long the newest answer keeps others out, so that a burst of them
// does not count for more than others.
const freshness = time.Second

// note takes an answer to account.
func (s *Skew) note(sent, received instant, date time.Time) {
	bounds, ok := skew.BoundsOf(sent.wall, received.wall, date)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if full := len(s.answers) >= skew.Window; full && received.runs-s.answers[len(s.answers)-1].at.runs < freshness {
		return
	} else if full {
		s.answers = s.answers[1:]
	}
	s.answers = append(s.answers, dated{bounds, received})
	s.think(received)
}

// think brings the verdict up to date, and tells of it if the clock is skewed now, or is not
// any more. An
// answer counts by the clock that cannot be set: ours is ahead by as much more as it
// was put forward since, or as the machine has slept.
func (s *Skew) think(now instant) {
	for len(s.answers) > 0 && now.runs-s.answers[0].at.runs > skew.Lifetime {
		s.answers = s.answers[1:]
	}
	before := s.verdict
	s.verdict = before.Next(s.bounds(now))
	if s.verdict.Skewed() == before.Skewed() {
		return
	}
	for tell := range s.changed {
		go (*tell)()
	}
}

func (s *Skew) bounds(now instant) []skew.Bounds {
	all := make([]skew.Bounds, len(s.answers))
	for i, one := range s.answers {
		all[i] = one.Shift(now.wall.Sub(one.at.wall) - (now.runs - one.at.runs))
	}
	return all
}

// Now is a Now.
func (s *Skew) Now() (now time.Time, skewed bool) {
	if s == nil {
		return time.Now(), true
	}
	at, verdict := s.judge()
	return verdict.Correct(at.wall), verdict.Skewed()
}

// judge is what is thought of our clock now.
func (s *Skew) judge() (instant, skew.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.clock()
	s.think(at)
	return at, s.verdict
}

// Report has the leader emit an event on its Lease whenever our clock gets skewed.
func (s *Skew) Report(mgr manager.Manager, namespace string) error {
	emit := Emitter(mgr.GetEventRecorder("ebbtide"))
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		s.warn(ctx, func(why string) { emit(event.ClockSkewed(namespace, LeaderLease, why)) })
		return nil
	}))
}

// warn calls report whenever our clock gets skewed, until the context ends. That a manager which
// has just started has too few dates is no reason to warn.
func (s *Skew) warn(ctx context.Context, report func(why string)) {
	check := func() {
		if _, verdict := s.judge(); verdict.Skewed() {
			report(verdict.String())
		}
	}
	defer s.OnChange(check)()
	select {
	case <-ctx.Done():
	case <-time.After(startup):
		check()
		<-ctx.Done()
	}
}

// Server is what time it is by the API server, for what it compares with its own clock: a
// second too early at the most, and never too late, so that nobody has to report before its
// turn has begun. Without any answer it is our time.
func (s *Skew) Server() time.Time {
	if s == nil {
		return time.Now()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.clock()
	s.think(at)
	ahead, _ := skew.AtMost(s.bounds(at))
	return at.wall.Add(-ahead)
}

// OnChange calls tell, in a goroutine of its own, whenever our clock gets skewed or is not
// any more, until it is told to stop.
func (s *Skew) OnChange(tell func()) (stop func()) {
	if s == nil {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed[&tell] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.changed, &tell)
	}
}

// AllOf returns a function that asks for all objects of the kind of a list, as the cache has
// them.
func AllOf(reader client.Reader, list client.ObjectList) func(context.Context) []reconcile.Request {
	return func(ctx context.Context) (all []reconcile.Request) {
		list := list.DeepCopyObject().(client.ObjectList)
		err := reader.List(ctx, list, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
		err = errors.Join(err, apimeta.EachListItem(list, func(object runtime.Object) error {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object.(client.Object))})
			return nil
		}))
		if err != nil {
			// The cache itself never fails; it does when the manager stops.
			log.FromContext(ctx).Error(err, "Objects cannot be listed", "kind", fmt.Sprintf("%T", list))
		}
		return all
	}
}

// OnSkew is the source of a controller that has to look again at what it held
// back when our clock is trusted again.
func OnSkew[R comparable](s *Skew, held func(context.Context) []R) source.TypedSource[R] {
	return source.TypedFunc[R](func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[R]) error {
		stop := s.OnChange(func() {
			for _, request := range held(ctx) {
				queue.Add(request)
			}
		})
		context.AfterFunc(ctx, stop)
		return nil
	})
}

var (
	skewSeconds = prometheus.NewDesc("ebbtide_clock_skew_seconds",
		"How far the manager's clock is ahead of the API server's for certain; less than 0 is behind. Absent while nobody knows.", nil, nil)
	skewed = prometheus.NewDesc("ebbtide_clock_skewed",
		"1 while nothing that cannot be undone is done because of the time, since the manager's clock is not trusted; else 0.", nil, nil)
)

// Describe says what Collect collects.
func (s *Skew) Describe(all chan<- *prometheus.Desc) {
	all <- skewSeconds
	all <- skewed
}

// Collect shows the skew to Prometheus.
func (s *Skew) Collect(all chan<- prometheus.Metric) {
	at, verdict := s.judge()
	s.mu.Lock()
	ahead, known := skew.Median(s.bounds(at))
	s.mu.Unlock()
	if known {
		all <- prometheus.MustNewConstMetric(skewSeconds, prometheus.GaugeValue, ahead.Seconds())
	}
	value := 0.0
	if verdict.Skewed() {
		value = 1
	}
	all <- prometheus.MustNewConstMetric(skewed, prometheus.GaugeValue, value)
}
