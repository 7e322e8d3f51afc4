package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/workload/guard"
)

// Errors of Use, to be found with errors.Is.
var (
	// ErrConnecting means that the connection is being made for the first time.
	ErrConnecting = errors.New("not connected yet")
	// ErrUnreachable means that the cluster does not respond or its kubeconfig cannot be used.
	ErrUnreachable = errors.New("unreachable")
)

const (
	// DefaultRemoteMemory is enough for a remote cluster with 100,000 pods.
	DefaultRemoteMemory = 256 << 20
	// DefaultRemotesMemory is enough for one of the largest remote clusters while it is read,
	// or for a few hundred with a thousand pods.
	DefaultRemotesMemory = 1 << 30
)

// Local is the Identity of the cluster that Ebbtide runs in. All Clusters without a kubeconfig
// share its connection.
var Local types.NamespacedName

// Identity returns the cluster that a Cluster stands for: Local, or the key of the Cluster.
func Identity(cluster *v1alpha1.Cluster) types.NamespacedName {
	if cluster.Spec.KubeconfigSecretRef == nil {
		return Local
	}
	return client.ObjectKeyFromObject(cluster)
}

// Connection reads and writes a cluster. Call Use again before each use: a Connection fails for
// good when the cluster is lost.
type Connection struct {
	// Client reads kube.WorkloadKinds from a cache that is filled and never waits. The cache of
	// a remote cluster may be behind our own writes, and has no other kinds.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Now is the API server's clock.
	Now kube.Now
	// Evictions evicts the cluster's pods. It is empty after a reconnection.
	Evictions *eviction.Queue
}

// State is the condition of a cluster: whether it can be used.
type State struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
	// Since is the time when the reason began to hold; now for an unused cluster.
	Since   time.Time
	HoldOff HoldOff
}

// Options configures a Registry.
type Options struct {
	// Workers limits the pods of one cluster that are evicted at the same time.
	Workers int
	// Dispatcher serves the local cluster. Others have their own.
	Dispatcher *eviction.Dispatcher
	// RemoteMemory bounds the counted bytes of one remote cluster, and thereby those of all
	// Clusters of a namespace. Defaults to DefaultRemoteMemory.
	RemoteMemory int64
	// RemotesMemory bounds those of all remote clusters. Defaults to DefaultRemotesMemory.
	RemotesMemory int64
	// Skew is the clock of the local API server.
	Skew *kube.Skew
	// Fence delays writes to remote clusters; it may be nil.
	Fence *kube.Fence
	// Allowed are the fields of kubeconfigs that are not refused.
	Allowed Allowances
	// Pace defaults to UsualPace.
	Pace *Pace
	// Clock defaults to the clock of this machine.
	Clock clock.WithTickerAndDelayedExecution
}

// Registry keeps the connections of the leading manager.
type Registry struct {
	clock   clock.WithTickerAndDelayedExecution
	pace    Pace
	manager manager.Manager
	options Options
	ledger  *guard.Ledger
	kinds   guard.Kinds

	mu        sync.Mutex
	watches   []watch
	changed   []func(cluster types.NamespacedName)
	evictions []func(owner types.NamespacedName)
	members   map[types.NamespacedName]*member
	local     *link // shared by all Clusters without a kubeconfig
	launch    func(*link)
	running   sync.WaitGroup
}

// watch handles changes of a kind in every cluster.
type watch struct {
	kind   client.Object
	handle func(cluster types.NamespacedName, old, now client.Object)
}

// member is a Cluster that is in use, or was recently.
type member struct {
	source source
	users  map[types.NamespacedName]bool
	link   *link
	idle   clock.Timer // forgets the member; nil while it has users
}

// NewRegistry adds a Registry to a manager, whose cache has kube.CacheOptions, kube.IndexFields
// and kube.IndexMachines.
//
// Errors: the manager refuses it.
func NewRegistry(mgr manager.Manager, options Options) (*Registry, error) {
	kinds, err := guard.NewKinds(mgr.GetScheme())
	if err != nil {
		return nil, err
	}
	r := &Registry{
		clock: clock.RealClock{}, pace: UsualPace(), manager: mgr, options: options, kinds: kinds,
		ledger:  guard.NewLedger(cmp.Or(options.RemoteMemory, DefaultRemoteMemory), cmp.Or(options.RemotesMemory, DefaultRemotesMemory)),
		members: map[types.NamespacedName]*member{}, launch: func(*link) {},
	}
	if options.Clock != nil {
		r.clock = options.Clock
	}
	if options.Pace != nil {
		r.pace = *options.Pace
	}
	r.local = newLink(r, Local, HoldOff{}, r.connectLocal)
	if err := mgr.Add(r); err != nil {
		return nil, fmt.Errorf("add the registry of clusters: %w", err)
	}
	return r, nil
}

// NeedLeaderElection returns true: only the leader works on Machines.
func (r *Registry) NeedLeaderElection() bool { return true }

// Watch calls handle for every change of a kind of kube.WorkloadKinds in every connected
// cluster; old is nil for a new object, now for a deleted one. Deletions while a cluster was
// unreachable are not reported: OnChange reports that it is back. Call it before the first Use.
// Handle must not block.
func (r *Registry) Watch(kind client.Object, handle func(cluster types.NamespacedName, old, now client.Object)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watches = append(r.watches, watch{kind, handle})
}

// OnChange calls handle when the State of a Cluster that is in use has changed. Handle must not
// block.
func (r *Registry) OnChange(handle func(cluster types.NamespacedName)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = append(r.changed, handle)
}

// OnEvictions calls handle when the evictions of an owner have changed. Handle must not block.
func (r *Registry) OnEvictions(handle func(owner types.NamespacedName)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.evictions = append(r.evictions, handle)
}

// Start keeps the connections until the context ends, and returns when all have ended.
func (r *Registry) Start(ctx context.Context) error {
	r.mu.Lock()
	r.launch = func(l *link) {
		if l.started {
			return
		}
		own, cancel := context.WithCancel(ctx)
		l.started, l.cancel = true, cancel
		r.running.Go(func() { l.run(own) })
	}
	for _, m := range r.members {
		r.launch(m.link)
	}
	r.mu.Unlock()

	<-ctx.Done()
	r.mu.Lock()
	r.launch = func(*link) {}
	r.mu.Unlock()
	r.running.Wait()
	return nil
}

// Use returns the connection to a Cluster for a user, until Release. It never blocks: while
// there is no connection the error holds the reason, and OnChange reports when that changes. A
// Cluster with another kubeconfig is connected again.
//
// Errors: ErrConnecting, ErrUnreachable.
func (r *Registry) Use(cluster *v1alpha1.Cluster, user types.NamespacedName) (*Connection, error) {
	key := client.ObjectKeyFromObject(cluster)
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.member(key, sourceOf(cluster), holdOf(cluster, r.clock.Now(), r.pace))
	m.users[user] = true
	if m.idle != nil {
		m.idle.Stop()
		m.idle = nil
	}
	return m.link.use(key)
}

// member returns the member of a Cluster, and connects it if its source is new. A hold-off
// from the status applies to the first connection only.
func (r *Registry) member(key types.NamespacedName, source source, hold HoldOff) *member {
	m := r.members[key]
	if m == nil {
		m = &member{users: map[types.NamespacedName]bool{}}
		r.members[key] = m
	}
	if m.link != nil && m.source == source {
		return m
	}
	if m.link != nil {
		hold = HoldOff{}
	}
	r.leave(m)
	m.source, m.link = source, r.local
	if source.secret != "" {
		m.link = newLink(r, source.cluster, hold, func(ctx context.Context) (*session, error) { return r.connectRemote(ctx, source) })
	}
	r.launch(m.link)
	return m
}

// leave ends the connection of a member, unless it is shared.
func (r *Registry) leave(m *member) {
	if m.link != nil && m.link != r.local {
		m.link.cancel()
	}
}

// Release ends the use of a Cluster by a user. After the last one the connection is kept for
// Pace.Idle.
func (r *Registry) Release(cluster, user types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[cluster]
	if m == nil || !m.users[user] {
		return
	}
	delete(m.users, user)
	if len(m.users) == 0 {
		m.idle = r.clock.AfterFunc(r.pace.Idle, func() { r.forget(cluster, m) })
	}
}

// forget ends the connection of an unused member.
func (r *Registry) forget(cluster types.NamespacedName, m *member) {
	r.mu.Lock()
	unused := r.members[cluster] == m && len(m.users) == 0
	if unused {
		r.leave(m)
		delete(r.members, cluster)
	}
	r.mu.Unlock()
	if unused {
		r.notify(&r.changed, cluster)
	}
}

// State returns whether a Cluster can be used.
func (r *Registry) State(cluster types.NamespacedName) State {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.members[cluster]; m != nil {
		return m.link.current()
	}
	return State{
		Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotInUse, Message: "No Machine needs the cluster.", Since: r.clock.Now(),
	}
}

// changedLink reports the change of every Cluster that uses a link.
func (r *Registry) changedLink(l *link) {
	var served []types.NamespacedName
	r.mu.Lock()
	for key, m := range r.members {
		if m.link == l {
			served = append(served, key)
		}
	}
	r.mu.Unlock()
	for _, cluster := range served {
		r.notify(&r.changed, cluster)
	}
}

func (r *Registry) notify(handles *[]func(types.NamespacedName), key types.NamespacedName) {
	r.mu.Lock()
	all := slices.Clone(*handles)
	r.mu.Unlock()
	for _, handle := range all {
		handle(key)
	}
}
