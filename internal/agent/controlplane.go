//go:build linux

package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/internal/agent/host"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	core "ebbtide.dev/ebbtide/internal/core/nodeagent"
)

// askAfter is the interval of API requests while parts of the control plane are away.
const askAfter = 10 * time.Second

// ControlPlane configures the treatment of control plane pods.
type ControlPlane struct {
	// Terminate allows to take them down. Host is true if the agent runs outside of a pod.
	Terminate, Host bool
	// RestoreAfter is the time without a response of any API server after which the static pods
	// return.
	RestoreAfter time.Duration
	// Hostname of the host, Address of the API URL, and Namespace of Ebbtide.
	Hostname, Address, Namespace string
}

// may reports whether they can be taken down at all. Otherwise nothing of the control plane is
// watched.
func (c ControlPlane) may() bool { return c.Terminate && c.Host }

// signs are the responses of the API by the clock of the kernel.
type signs struct {
	// asks is true while a response matters, since began.
	asks            atomic.Bool
	matters         chan struct{} // has something as soon as it does
	began, answered atomic.Int64
	// proved is true once the Lease of an API server was seen to change.
	proved atomic.Bool
}

// kernelUptime includes time in which the machine slept; 0 if unknown.
func kernelUptime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano())
}

// heard notes whether an API server responds. One that refuses does; one without etcd, or a proxy
// without one, does not.
func (a *Agent) heard(err error) {
	var status apierrors.APIStatus
	if err != nil && (!errors.As(err, &status) || status.Status().Code < 400 || status.Status().Code >= 500) {
		return
	}
	before := time.Duration(a.signs.answered.Swap(int64(a.uptime())))
	if a.signs.asks.Load() && a.uptime()-before > 2*askAfter {
		a.poke()
	}
}

// listen requests a sign of life from the API while that matters.
func (a *Agent) listen(ctx context.Context) {
	ticker := time.NewTicker(askAfter)
	defer ticker.Stop()
	for {
		if a.signs.asks.Load() {
			a.ask(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-a.signs.matters:
		case <-ticker.C:
		}
	}
}

// ask reads the Node, for which the API server needs etcd.
func (a *Agent) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	a.heard(a.Client.Get(ctx, client.ObjectKey{Name: a.Self.Node}, &corev1.Node{}))
}

func (a *Agent) observeControlPlane(s *core.Snapshot) {
	o := &a.ControlPlane
	if away := partsAway(*s); away != a.signs.asks.Load() {
		// Without earlier requests no silence is known.
		a.signs.began.Store(int64(a.uptime()))
		a.signs.asks.Store(away)
		select {
		case a.signs.matters <- struct{}{}:
		default:
		}
	}
	s.ControlPlane = core.ControlPlane{
		Terminate: o.Terminate, Host: o.Host, Hostname: o.Hostname, Address: o.Address, RestoreAfter: o.RestoreAfter,
		Signs: core.Signs{Uptime: a.uptime(), Began: time.Duration(a.signs.began.Load()), Answered: time.Duration(a.signs.answered.Load())},
	}
	f := &a.feeds
	if f.servers == nil || !f.servers.known() || !f.members.known() || !f.claim.known() {
		return
	}
	claim, _ := only[*coordinationv1.Lease](f.claim)
	a.show(s, host.Seen{
		Servers: objects[*coordinationv1.Lease](f.servers), Members: objects[*corev1.Pod](f.members), Claim: host.Holder(claim),
	})
}

func partsAway(s core.Snapshot) bool {
	for i := range s.Journal.Manifests {
		if s.Journal.Manifests[i].ControlPlane {
			return true
		}
	}
	for i := range s.Folder.Files {
		f := &s.Folder.Files[i]
		if _, held := core.HeldFile(f.Name); held && f.Manifest != nil && f.Manifest.ControlPlane {
			return true
		}
	}
	return false
}

// show adds the control plane to a snapshot. A Lease counts as renewed once the agent has seen it
// change.
func (a *Agent) show(s *core.Snapshot, seen host.Seen) {
	c := &s.ControlPlane
	c.Known, c.Etcd, c.Claim, c.Servers = true, seen.Members, seen.Claim, nil
	servers := map[string]core.APIServer{}
	for _, lease := range seen.Servers {
		if lease.Spec.RenewTime == nil {
			continue
		}
		one := core.APIServer{Host: lease.Labels[corev1.LabelHostname], Renewed: lease.Spec.RenewTime.Time}
		if before, known := a.servers[lease.Name]; known {
			one.Seen = before.Seen
			if !before.Renewed.Equal(one.Renewed) {
				one.Seen = time.Now()
			}
		}
		a.signs.proved.CompareAndSwap(false, !one.Seen.IsZero())
		servers[lease.Name] = one
		c.Servers = append(c.Servers, one)
	}
	a.servers = servers
}

func (f *feeds) followControlPlane(ctx context.Context, a *Agent) {
	if !a.ControlPlane.may() {
		return
	}
	leases := func() client.ObjectList { return &coordinationv1.LeaseList{} }
	// Leases change all the time, so only their first state wakes the agent.
	f.servers = follow(ctx, a.Client, topic{
		object: &coordinationv1.Lease{}, list: leases, namespace: metav1.NamespaceSystem, labels: host.Of(),
	}, func() {
		if !a.signs.proved.Load() {
			a.poke()
		}
	})
	f.members = follow(ctx, a.Client, topic{
		object: &corev1.Pod{}, list: func() client.ObjectList { return &corev1.PodList{} }, namespace: metav1.NamespaceSystem, labels: host.Members(),
	}, a.poke)
	f.claim = follow(ctx, a.Client, topic{
		object: &coordinationv1.Lease{}, list: leases, namespace: a.ControlPlane.Namespace, field: metav1.ObjectNameField, value: host.ClaimName,
	}, a.poke)
}

// claim changes the claim on the control plane, and returns true if everything must be decided
// again.
func (a *Agent) claim(ctx context.Context, claim core.Claim) bool {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	var err error
	switch claim {
	case core.ClaimTake:
		err = host.Take(ctx, a.Client, a.ControlPlane.Namespace, a.Self.Node)
	case core.ClaimRelease:
		err = host.Release(ctx, a.Client, a.ControlPlane.Namespace, a.Self.Node)
	default:
		return false
	}
	if err == nil {
		a.Log.Info("Changed the claim on the control plane", "taken", claim == core.ClaimTake)
	}
	a.logTrouble(unlessBehind(err))
	return err == nil
}

// heartbeat renews the Lease of an agent outside of a pod while it works.
func (a *Agent) heartbeat(ctx context.Context) {
	heartbeat := host.Heartbeat{Client: a.Client, Namespace: a.ControlPlane.Namespace, Name: maintenance.AgentLease(a.Self.Node)}
	for {
		next := time.Second
		if node, found := only[*corev1.Node](a.feeds.node); found && a.works() {
			a.renew(ctx, &heartbeat, node)
			next = host.RenewAfter
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

func (a *Agent) renew(ctx context.Context, heartbeat *host.Heartbeat, node *corev1.Node) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	err := heartbeat.Renew(ctx, node)
	a.heard(err)
	if err != nil && ctx.Err() == nil {
		a.Log.V(1).Info("Retrying to renew the Lease of the agent", "reason", err.Error())
	}
}
