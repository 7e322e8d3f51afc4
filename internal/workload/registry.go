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

// Why there is no connection, to be found with errors.Is.
var (
	// ErrConnecting: the connection is being made for the first time.
	ErrConnecting = errors.New("not connected yet")
	// ErrUnreachable: the cluster does not answer or its kubeconfig cannot be used.
	ErrUnreachable = errors.New("unreachable")
)

const (
	// DefaultRemoteMemory is how many bytes of memory one remote cluster may take by
	// default: enough for 100,000 pods.
	DefaultRemoteMemory = 256 << 20
	// DefaultRemotesMemory is how many bytes all remote clusters may take by default: one
	// of the largest while it is read, or a few hundred of a thousand pods.
	DefaultRemotesMemory = 1 << 30
)

// Local is what handlers of Watch get as the cluster that Ebbtide runs in. All
// Clusters without a kubeconfig share its connection.
var Local types.NamespacedName

// Identity is what handlers of Watch get as the cluster that a Cluster stands
// for: Local, or the key of the Cluster.
func Identity(cluster *v1alpha1.Cluster) types.NamespacedName {
	if cluster.Spec.KubeconfigSecretRef == nil {
		return Local
	}
	return client.ObjectKeyFromObject(cluster)
}

// Connection is how a cluster is read and written. It is to be asked for anew
// whenever something is done: it fails for good when the cluster is lost.
type Connection struct {
	// Client reads kube.WorkloadKinds from a cache that is filled and never waits.
	// Except in the cluster that Ebbtide runs in it may be behind our own writes,
	// and knows no other kinds.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Now is what time it is there, and why that is not believed.
	Now kube.Now
	// Evictions evicts the cluster's pods. It is empty after a reconnection.
	Evictions *eviction.Queue
}

// State is whether a cluster can be used, in the form of a condition.
type State struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
	// Since is when the reason began to hold; now if nobody uses the cluster.
	Since time.Time
	// HoldOff is for how long the cluster is left alone.
	HoldOff HoldOff
}

// Options configures a Registry.
type Options struct {
	// Workers is how many pods of one cluster are evicted at the same time.
	Workers int
	// Dispatcher is that of the cluster that Ebbtide runs in. Others have their own.
	Dispatcher *eviction.Dispatcher
	// RemoteMemory is how many bytes of memory one remote cluster may take, as far as
	// that is counted; what all Clusters of a namespace may take, and how many objects
	// they may have, follows from that. Defaults to DefaultRemoteMemory.
	RemoteMemory int64
	// RemotesMemory is how many bytes all remote clusters of all namespaces may take
	// together, as far as that is counted. Defaults to DefaultRemotesMemory.
	RemotesMemory int64
	// Skew knows what time it is in the cluster that Ebbtide runs in.
	Skew *kube.Skew
	// Fence holds back what is written to remote clusters; it may be nil.
	Fence *kube.Fence
	// Allowed is what a kubeconfig may have that is refused otherwise.
	Allowed Allowances
	// Pace is how long things take. Defaults to UsualPace.
	Pace *Pace
	// Clock is what that is measured by. Defaults to the clock of this machine.
	Clock clock.WithTickerAndDelayedExecution
}

// Registry keeps the connections of the manager that leads.
type Registry struct {
	clock   clock.WithTickerAndDelayedExecution
	pace    Pace
	manager manager.Manager
	options Options
	ledger  *guard.Ledger
	kinds   guard.Kinds

	mu      sync.Mutex
	watches []watch
	changed []func(cluster types.NamespacedName)
	news    []func(owner types.NamespacedName)
	members map[types.NamespacedName]*member
	here    *link // the connection that Clusters without a kubeconfig share
	launch  func(*link)
	running sync.WaitGroup
}

// watch is what follows the objects of a kind in every cluster.
type watch struct {
	kind   client.Object
	handle func(cluster types.NamespacedName, old, now client.Object)
}

// member is a Cluster that is in use, or was a while ago.
type member struct {
	source source
	users  map[types.NamespacedName]bool
	link   *link
	// idle forgets the member; nil while it has users.
	idle clock.Timer
}

// NewRegistry has the manager run a Registry. The manager's cache has
// kube.CacheOptions, kube.IndexFields and kube.IndexMachines.
//
// Errors: the manager does not take it.
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
	r.here = newLink(r, Local, HoldOff{}, r.connectLocal)
	if err := mgr.Add(r); err != nil {
		return nil, fmt.Errorf("add the registry of clusters: %w", err)
	}
	return r, nil
}

// NeedLeaderElection is true: only the leader works on Machines.
func (r *Registry) NeedLeaderElection() bool { return true }

// Watch calls handle for every change of a kind of kube.WorkloadKinds in every
// connected cluster; old is nil for an object that is new and now for one that
// is gone. What went while a cluster was unreachable is not told: OnChange says
// that it is back. Call it before the first Use. Handle must not block.
func (r *Registry) Watch(kind client.Object, handle func(cluster types.NamespacedName, old, now client.Object)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watches = append(r.watches, watch{kind, handle})
}

// OnChange calls handle when the State of a Cluster that is in use has changed.
// Handle must not block.
func (r *Registry) OnChange(handle func(cluster types.NamespacedName)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = append(r.changed, handle)
}

// OnNews calls handle when the answers of an owner of evictions have changed.
// Handle must not block.
func (r *Registry) OnNews(handle func(owner types.NamespacedName)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.news = append(r.news, handle)
}

// Start connects what is used until the context ends, and returns when all
// connections have ended.
func (r *Registry) Start(ctx context.Context) error {
	r.mu.Lock()
	r.launch = func(l *link) {
		own, cancel := context.WithCancel(ctx)
		l.started, l.cancel = true, cancel
		r.running.Go(func() { l.run(own) })
	}
	for _, m := range r.members {
		r.begin(m.link)
	}
	r.mu.Unlock()

	<-ctx.Done()
	r.mu.Lock()
	r.launch = func(*link) {}
	r.mu.Unlock()
	r.running.Wait()
	return nil
}

// Use returns the connection to a Cluster for a user, who has it until Release.
// It never blocks: while there is no connection the error says why, and
// OnChange tells when that has changed. Call it again at any time; a Cluster
// whose kubeconfig is another one now is connected anew.
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

// member finds the Cluster's, and connects it if that is not so already. What its
// status remembers of an earlier connection is of none that we had since.
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
	m.source, m.link = source, r.here
	if source.remote() {
		m.link = newLink(r, source.cluster, hold, func(ctx context.Context) (*session, error) { return r.connectRemote(ctx, source) })
	}
	r.begin(m.link)
	return m
}

func (r *Registry) begin(l *link) {
	if !l.started {
		r.launch(l)
	}
}

// leave ends the connection of a member, unless others may share it.
func (r *Registry) leave(m *member) {
	if m.link != nil && m.link != r.here {
		m.link.cancel()
	}
}

// Release says that a user needs a Cluster no more. When that was the last one
// the connection ends after a while.
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

// forget ends what is not in use.
func (r *Registry) forget(cluster types.NamespacedName, m *member) {
	r.mu.Lock()
	unused := r.members[cluster] == m && len(m.users) == 0
	if unused {
		r.leave(m)
		delete(r.members, cluster)
	}
	r.mu.Unlock()
	if unused {
		r.tell(cluster)
	}
}

// State returns whether a Cluster can be used.
func (r *Registry) State(cluster types.NamespacedName) State {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.members[cluster]; m != nil {
		return m.link.seen()
	}
	return State{
		Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotInUse, Message: "No Machine needs the cluster.", Since: r.clock.Now(),
	}
}

// tellOf tells of every Cluster that a connection serves.
func (r *Registry) tellOf(l *link) {
	var served []types.NamespacedName
	r.mu.Lock()
	for key, m := range r.members {
		if m.link == l {
			served = append(served, key)
		}
	}
	r.mu.Unlock()
	for _, cluster := range served {
		r.tell(cluster)
	}
}

func (r *Registry) tell(cluster types.NamespacedName) { r.call(&r.changed, cluster) }

func (r *Registry) tellNews(owner types.NamespacedName) { r.call(&r.news, owner) }

func (r *Registry) call(handles *[]func(types.NamespacedName), key types.NamespacedName) {
	r.mu.Lock()
	all := slices.Clone(*handles)
	r.mu.Unlock()
	for _, handle := range all {
		handle(key)
	}
}
