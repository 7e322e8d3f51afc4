package kube

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// askServedEvery is the interval of reading discovery, which cannot be watched.
	askServedEvery = 5 * time.Minute
	// failedServedPause is the pause before failed parts restart.
	failedServedPause = 30 * time.Second
)

// ServedAPI is an API that a cluster may lack.
type ServedAPI struct {
	// GroupVersion counts as served if it serves all of Resources.
	GroupVersion schema.GroupVersion
	Resources    []string
	Kinds        []client.Object
	// Unserved is the interval of checking while it is not served or unknown. Defaults to that while
	// it is served.
	Unserved time.Duration
}

// Served runs parts of the manager only while an API is served, without watches or messages
// otherwise. Every replica checks; some parts run in every replica, others only in the leader.
type Served struct {
	api       ServedAPI
	mgr       manager.Manager
	discovery discovery.ServerResourcesInterface
	leading   portion
	all       portion
	served    atomic.Bool
	answer    atomic.Pointer[bool]
	answered  []func()
	every     time.Duration
}

// portion starts together.
type portion struct {
	indexes []index
	parts   []func(context.Context) error
}

func (p *portion) index(one index) {
	if !p.has(one) {
		p.indexes = append(p.indexes, one)
	}
}

func (p portion) has(one index) bool {
	return slices.ContainsFunc(p.indexes, func(other index) bool {
		return other.field == one.field && reflect.TypeOf(other.object) == reflect.TypeOf(one.object)
	})
}

// NewServed returns a Served without parts, run by the manager. It fails if the config is invalid
// or the manager is stopping.
func NewServed(mgr manager.Manager, api ServedAPI) (*Served, error) {
	asks, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client that discovers APIs: %w", err)
	}
	s := &Served{api: api, mgr: mgr, discovery: asks, every: askServedEvery}
	return s, mgr.Add(s)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: some parts run everywhere.
func (s *Served) NeedLeaderElection() bool { return false }

// Index adds a field index for the parts of the leader, once for each field. Call it before the
// manager starts.
func (s *Served) Index(object client.Object, field string, extract client.IndexerFunc) {
	s.leading.index(index{object, field, extract})
}

// IndexEverywhere is Index for all parts.
func (s *Served) IndexEverywhere(object client.Object, field string, extract client.IndexerFunc) {
	s.all.index(index{object, field, extract})
}

// Part adds what runs in the leader while the API is served, until its context ends. If one returns
// earlier, all are restarted. Call it before the manager starts.
func (s *Served) Part(run func(context.Context) error) {
	s.leading.parts = append(s.leading.parts, run)
}

// PartEverywhere adds what runs in every replica, otherwise like Part.
func (s *Served) PartEverywhere(run func(context.Context) error) {
	s.all.parts = append(s.all.parts, run)
}

// Now reports whether the API was served at the last check.
func (s *Served) Now() bool { return s.served.Load() }

// Asked reports whether the API server serves the API, whether or not the parts run; known is false
// before the first answer.
func (s *Served) Asked() (served, known bool) {
	answer := s.answer.Load()
	return answer != nil && *answer, answer != nil
}

// OnAnswer adds a function to call when Asked changes. Call it before the manager starts.
func (s *Served) OnAnswer(changed func()) { s.answered = append(s.answered, changed) }

func (s *Served) note(served bool) {
	if before := s.answer.Swap(&served); before != nil && *before == served {
		return
	}
	for _, changed := range s.answered {
		changed()
	}
}

// Start implements manager.Runnable.
func (s *Served) Start(ctx context.Context) error {
	logger := s.mgr.GetLogger().WithValues("api", s.api.GroupVersion.String())
	var running *session
	defer func() { running.end() }()
	for {
		pause := s.every
		served, err := s.ask()
		if err == nil {
			s.note(served)
		}
		switch {
		case err != nil:
			// An unknown answer changes nothing.
			logger.V(1).Info("Failed to check whether an API is served", "reason", err.Error())
		case served && running == nil:
			logger.V(1).Info("Started the parts of an API", "reason", "the API is served")
			running = s.begin(ctx, logger)
		case !served && running != nil:
			logger.Info("Stopped the parts of an API", "reason", "the API is no longer served")
			running.end()
			running = nil
		}
		if running == nil && s.api.Unserved > 0 {
			pause = s.api.Unserved
		}
		s.served.Store(running != nil)
		select {
		case <-ctx.Done():
			return nil
		case <-running.failed():
			running.end()
			running, pause = nil, failedServedPause
			s.served.Store(false)
			if Wait(ctx, pause) {
				continue
			}
			return nil
		case <-time.After(pause):
		}
	}
}

// Wait returns false if the context ends before the time is over.
func Wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (s *Served) ask() (bool, error) {
	list, err := s.discovery.ServerResourcesForGroupVersion(s.api.GroupVersion.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, name := range s.api.Resources {
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name }) {
			return false, nil
		}
	}
	return true, nil
}

// session is the parts while an API is served.
type session struct {
	cancel context.CancelFunc
	logger logr.Logger
	parts  sync.WaitGroup
	broken chan struct{}
	forget func()
}

func (s *Served) begin(ctx context.Context, logger logr.Logger) *session {
	ctx, cancel := context.WithCancel(ctx)
	running := &session{cancel: cancel, logger: logger, broken: make(chan struct{}, 1)}
	running.forget = func() {
		for _, kind := range s.api.Kinds {
			if err := s.mgr.GetCache().RemoveInformer(context.WithoutCancel(ctx), kind); err != nil {
				logger.Error(err, "Failed to stop a watch")
			}
		}
	}
	running.join(ctx, s.mgr.GetFieldIndexer(), s.all)
	leading := portion{parts: s.leading.parts}
	for _, one := range s.leading.indexes {
		if !s.all.has(one) {
			leading.indexes = append(leading.indexes, one)
		}
	}
	running.parts.Go(func() {
		select {
		case <-ctx.Done():
		case <-s.mgr.Elected():
			running.join(ctx, s.mgr.GetFieldIndexer(), leading)
		}
	})
	return running
}

func (s *session) join(ctx context.Context, indexer client.FieldIndexer, more portion) {
	if err := addIndexes(ctx, indexer, more.indexes); err != nil {
		s.logger.Error(err, "Failed to index an API")
		s.fail()
		return
	}
	for _, part := range more.parts {
		s.parts.Go(func() {
			err := part(ctx)
			if ctx.Err() != nil {
				return
			}
			s.logger.Error(errors.Join(err, errors.New("the part has ended")), "Restarting the parts of an API")
			s.fail()
		})
	}
}

func (s *session) fail() {
	select {
	case s.broken <- struct{}{}:
	default:
	}
}

// failed is closed or sent to when a part has ended.
func (s *session) failed() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.broken
}

func (s *session) end() {
	if s == nil {
		return
	}
	s.cancel()
	s.parts.Wait()
	s.forget()
}
