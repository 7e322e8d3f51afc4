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

// askAfter is how often the API is asked for a sign of life while parts of the control
// plane are away.
const askAfter = 10 * time.Second

// ControlPlane is how an agent treats pods of the control plane.
type ControlPlane struct {
	// Terminate is true if it may take them down, and Host if it runs as a unit of its host.
	Terminate, Host bool
	// RestoreAfter is for how long no API server may answer while they are away.
	RestoreAfter time.Duration
	// Hostname is that of the host, Address the host in the URL of the API, and Namespace
	// that of Ebbtide.
	Hostname, Address, Namespace string
}

// may is true if they could ever be taken down: only then is anything of it watched.
func (c ControlPlane) may() bool { return c.Terminate && c.Host }

// signs are the signs of life of the API, by the clock of the kernel.
type signs struct {
	// asks is true while an answer matters, and began since when it does.
	asks            atomic.Bool
	matters         chan struct{} // has something as soon as it does
	began, answered atomic.Int64
	// proved is true when the Lease of an API server was seen to change.
	proved atomic.Bool
}

// kernelUptime is the time since the kernel began, in which it may have slept; 0 if nobody knows.
func kernelUptime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano())
}

// heard notes whether an API server has answered. One that refuses is there; one that has
// lost its etcd, or a proxy in front of none, is not.
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

// listen asks the API for a sign of life while that matters.
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

// ask reads the Node, for which the API server has to ask its etcd.
func (a *Agent) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	a.heard(a.Client.Get(ctx, client.ObjectKey{Name: a.Self.Node}, &corev1.Node{}))
}

// observeControlPlane is what the watches have shown of the control plane, and for how long
// no API server has answered, if anything of it is away.
func (a *Agent) observeControlPlane(s *core.Snapshot) {
	o := &a.ControlPlane
	if away := partsAway(*s); away != a.signs.asks.Load() {
		// Nobody has asked before, so nobody knows of any silence.
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

// partsAway is true if a part of the control plane is away.
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

// show adds the control plane to a snapshot. That a Lease was renewed is believed when the
// agent has seen it change.
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

// followControlPlane watches what pods of the control plane depend on.
func (f *feeds) followControlPlane(ctx context.Context, a *Agent) {
	if !a.ControlPlane.may() {
		return
	}
	leases := func() client.ObjectList { return &coordinationv1.LeaseList{} }
	// Leases change all the time; they are looked at with everything else, but for the first
	// time, for which pods that have to go may wait.
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

// claim does what was decided about the claim on the control plane. It returns true if it
// was, so that everything is to be decided again.
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
	a.trouble(unlessBehind(err))
	return err == nil
}

// heartbeat renews the Lease of an agent that has no pod, as long as it works.
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
		a.Log.V(1).Info("The Lease of the agent is not renewed; this is tried again", "error", err.Error())
	}
}
