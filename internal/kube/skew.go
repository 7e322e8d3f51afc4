package kube

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/skew"
)

// Now returns the time of the API server, and whether our clock is skewed, so that nothing must
// expire by it.
type Now func() (now time.Time, skewed bool)

// Earliest returns the earliest possible time.
func (n Now) Earliest() time.Time { return skew.Earliest(n()) }

// startup bounds the time in which a new manager may lack enough dates.
const startup = 10 * time.Second

// Skew compares our clock with that of an API server by the dates of its responses. A nil Skew
// knows nothing.
type Skew struct {
	clock func() instant

	mu      sync.Mutex
	answers []dated // the last ones, the newest last
	verdict skew.Verdict
	changed map[*func()]bool
}

// instant is a time by our clock, and by one that cannot be set.
type instant struct {
	wall time.Time
	runs time.Duration
}

// dated is the date of one response.
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

// Measure observes all responses to requests by the config.
func (s *Skew) Measure(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return measured{s, next} })
}

type measured struct {
	skew *Skew
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (m measured) RoundTrip(request *http.Request) (*http.Response, error) {
	sent := m.skew.clock()
	response, err := m.next.RoundTrip(request)
	// Such errors come from a proxy.
	if err == nil && response.StatusCode < http.StatusInternalServerError {
		if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			m.skew.note(sent, m.skew.clock(), date)
		}
	}
	return response, err
}

// freshness bounds the time in which the newest response excludes others, so that a burst does not
// outweigh the rest.
const freshness = time.Second

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
	s.update(received)
}

// update updates the verdict and reports a change. A response counts by the monotonic clock: ours
// is ahead by as much more as it was set forward, or as the machine slept.
func (s *Skew) update(now instant) {
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

func (s *Skew) judge() (instant, skew.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.clock()
	s.update(at)
	return at, s.verdict
}

// Report makes the leader emit an event on its Lease whenever our clock becomes skewed.
func (s *Skew) Report(mgr manager.Manager, namespace string) error {
	emit := Emitter(mgr.GetEventRecorder("ebbtide"))
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		s.warn(ctx, func(why string) { emit(event.ClockSkewed(namespace, LeaderLease, why)) })
		return nil
	}))
}

// warn calls report whenever our clock becomes skewed, until the context ends. Too few dates after
// a start are no reason to warn.
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

// Server returns the time of the API server for comparisons with its clock: at most a second early
// and never late, so that no turn is reported too soon. Without any response it is our time.
func (s *Skew) Server() time.Time {
	if s == nil {
		return time.Now()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.clock()
	s.update(at)
	ahead, _ := skew.AtMost(s.bounds(at))
	return at.wall.Add(-ahead)
}

// OnChange calls changed in a goroutine whenever our clock becomes skewed or trusted, until stop is
// called.
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

// AllOf returns a function that requests all cached objects of the kind of a list.
func AllOf(reader client.Reader, list client.ObjectList) func(context.Context) []reconcile.Request {
	return func(ctx context.Context) (all []reconcile.Request) {
		for _, object := range Cached[client.Object](ctx, reader, list.DeepCopyObject().(client.ObjectList)) {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
		}
		return all
	}
}

// OnSkew is the source of a controller that repeats held decisions when our clock is trusted again.
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
		"Seconds by which the manager's clock is certainly ahead of the API server's, negative if behind. Absent while unknown.", nil, nil)
	skewed = prometheus.NewDesc("ebbtide_clock_skewed",
		"1 while nothing that cannot be undone is done because of the time, since the manager's clock is not trusted; else 0.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Skew) Describe(all chan<- *prometheus.Desc) {
	all <- skewSeconds
	all <- skewed
}

// Collect implements prometheus.Collector.
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
