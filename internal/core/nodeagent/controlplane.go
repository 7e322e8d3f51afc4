package nodeagent

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	// serverSilence limits how long another API server may go without renewing its Lease.
	serverSilence = time.Minute
	members       = 3
)

// components are in stop order; they start in reverse.
var components = []string{"kube-scheduler", "kube-controller-manager", "kube-apiserver", etcd}

const etcd = "etcd"

// ControlPlane describes the control plane, and the allowed changes to its part on this node.
type ControlPlane struct {
	Terminate bool
	// Host is true if the agent runs outside of a pod and therefore starts without an API server.
	Host bool
	// Hostname names the host, Address the API server that the agent uses.
	Hostname, Address string
	Known             bool
	Servers           []APIServer
	Etcd              []*corev1.Pod
	// Claim is the node that alone may take its part down, if any.
	Claim string
	// RestoreAfter is the silence of all API servers after which parts are restored; 0 is forever.
	RestoreAfter time.Duration
	Signs        Signs
}

// APIServer is the Lease of an API server.
type APIServer struct {
	Host string
	// Renewed is the renew time by the clock of that host.
	Renewed time.Time
	// Seen is the time of the last observed change of the Lease; zero is never.
	Seen time.Time
}

// fresh reports whether and until when an API server counts as running. Both times must agree: one
// detects wrong clocks, the other hosts that were asleep.
func (s APIServer) fresh(now time.Time) (until time.Time, is bool) {
	if s.Renewed.After(now.Add(serverSilence)) {
		return time.Time{}, false
	}
	until = s.Seen.Add(serverSilence)
	if own := s.Renewed.Add(serverSilence); own.Before(until) {
		until = own
	}
	return until, until.After(now)
}

// Claim changes the right to stop a part of the control plane, which one node at a time has.
type Claim int

// The changes of the claim.
const (
	// ClaimKeep leaves the claim unchanged.
	ClaimKeep Claim = iota
	ClaimTake
	ClaimRelease
)

func (d *decider) part(it *item) bool {
	if m := it.held.manifest(); m != nil {
		return m.ControlPlane
	}
	return it.entry != nil && it.entry.ControlPlane
}

// rank returns the position of a component in the stop order, or -1.
func (m *Manifest) rank() int {
	if m == nil || !m.ControlPlane {
		return -1
	}
	return slices.Index(components, m.Component)
}

func (it *item) rank() int {
	if m := it.held.manifest(); m != nil {
		return m.rank()
	}
	return it.plain.manifest().rank()
}

func componentOf(pod *corev1.Pod) (component string) {
	names := []string{pod.Labels["component"]}
	for i := range pod.Spec.Containers {
		names = append(names, pod.Spec.Containers[i].Name)
	}
	for _, name := range names {
		if !slices.Contains(components, name) || name == component {
			continue
		}
		if component != "" {
			return ""
		}
		component = name
	}
	return component
}

func isControlPlane(pod *corev1.Pod) bool {
	if pod.Namespace != "kube-system" {
		return false
	}
	if pod.Labels["tier"] == "control-plane" || slices.Contains(components, pod.Labels["component"]) {
		return true
	}
	for key := range pod.Annotations {
		if strings.HasPrefix(key, "kubeadm.kubernetes.io/") {
			return true
		}
	}
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return slices.Contains(components, c.Name) })
}

// What is missing and may be known soon after the start of the agent.
const (
	unread   = "other API servers are not known yet"
	unproved = "no API server of another host has renewed its Lease since the agent started"
)

// retainedPart returns why a control-plane pod stays, and whether that is only not known yet.
func (d *decider) retainedPart(key podKey, mirror *corev1.Pod, makers []*item) (words string, unsure bool) {
	var m *Manifest
	if len(makers) > 0 {
		m = makers[0].plain.Manifest
	}
	switch {
	case !isControlPlane(mirror) && (m == nil || !m.ControlPlane):
		return "", false
	case !d.ControlPlane.Terminate:
		return fmt.Sprintf("%s is part of the control plane. To drain it, run the agent with --control-plane-pods=Terminate.", key), false
	}
	missing := d.missing(m)
	if len(missing) == 0 {
		return "", false
	}
	unsure = len(missing) == 1 && (missing[0] == unread || missing[0] == unproved)
	return fmt.Sprintf("%s is part of the control plane and stays: %s.", key, strings.Join(missing, "; ")), unsure
}

// missing returns what prevents a part from stopping.
func (d *decider) missing(m *Manifest) (missing []string) {
	c := &d.ControlPlane
	if m.rank() < 0 {
		missing = append(missing, "its manifest is not one of "+strings.Join(components, ", "))
	}
	if !c.Host {
		missing = append(missing, "the agent runs as a pod, which needs an API server to start; run it as a systemd unit (--host)")
	}
	if c.own(d.Node) {
		missing = append(missing, fmt.Sprintf("the agent uses the API server of its own node (%s); set the address of another one, or of a load balancer, in its kubeconfig", c.Address))
	}
	if !c.Known {
		return append(missing, unread)
	}
	missing = append(missing, d.missingServer()...)
	if m != nil && m.Component == etcd {
		missing = append(missing, d.missingMembers()...)
	}
	if c.Claim != "" && c.Claim != d.Self.Node {
		missing = append(missing, fmt.Sprintf("the control plane of %s is away or not Ready yet", c.Claim))
	}
	return missing
}

// own reports whether the agent uses the API server of its own node, judged by the address.
func (c *ControlPlane) own(node *corev1.Node) bool {
	if node == nil || c.Address == "" || c.Address == "localhost" || c.Address == c.Hostname || c.Address == node.Name {
		return true
	}
	ip, err := netip.ParseAddr(c.Address)
	if err != nil {
		return false
	}
	return ip.IsLoopback() || ip.IsUnspecified() || slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool {
		one, err := netip.ParseAddr(a.Address)
		return err == nil && one.Unmap() == ip.Unmap()
	})
}

func (d *decider) missingServer() []string {
	last, words := time.Time{}, "no API server of another host has renewed its Lease in kube-system in the last 60s"
	for _, s := range d.ControlPlane.Servers {
		own := s.Host == d.ControlPlane.Hostname || s.Host == d.Self.Node || d.Node != nil && s.Host == d.Node.Labels[corev1.LabelHostname]
		if own || s.Host == "" || d.ControlPlane.Hostname == "" {
			continue
		}
		until, fresh := s.fresh(d.Now)
		if fresh && until.After(last) {
			last = until
		}
		s.Seen = d.Now
		if _, may := s.fresh(d.Now); may {
			words = unproved
		}
	}
	if last.IsZero() {
		return []string{words}
	}
	d.until(last)
	return nil
}

func (d *decider) missingMembers() (missing []string) {
	ready, weak := map[string]bool{}, ""
	for _, pod := range d.ControlPlane.Etcd {
		switch {
		case !podclass.Mirror(pod) || pod.Namespace != "kube-system":
		case podclass.Ready(pod) && pod.DeletionTimestamp == nil && pod.Spec.NodeName != "":
			ready[pod.Spec.NodeName] = true
		case weak == "" || pod.Name < weak:
			weak = pod.Name
		}
	}
	if len(ready) < members || !ready[d.Self.Node] {
		missing = append(missing, fmt.Sprintf("%d Ready members of etcd are required including its own, and there are %d", members, len(ready)))
	}
	if weak != "" {
		missing = append(missing, fmt.Sprintf("etcd member %.253s is not Ready or is terminating", weak))
	}
	return missing
}

// holdPart puts a part aside in order and with the claim, or returns what it waits for.
func (d *decider) holdPart(mirror *corev1.Pod, it *item, e *v1alpha1.Evacuation) (waits string) {
	if first := d.sooner(it); first != "" {
		waits = fmt.Sprintf("%s waits until %s is gone.", mirror.Name, first)
		d.reportProgress(mirror, &Entry{At: d.Now, GraceSeconds: int64(it.plain.Manifest.Grace.Seconds())}, waits)
		return waits
	}
	switch {
	case !d.Live:
		d.d.NeedsLive = true
	case d.ControlPlane.Claim != d.Self.Node:
		d.d.Claim = ClaimTake
	default:
		d.hold(mirror, it, e)
	}
	return ""
}

// sooner returns a part that must stop before another one and is not gone.
func (d *decider) sooner(than *item) string {
	for _, it := range d.parts() {
		if it.rank() >= than.rank() {
			continue
		}
		if it.held != nil {
			if e, there := d.entries[it.file]; there && e.State != v1alpha1.StaticPodHeld {
				return d.keyOf(it).name
			}
			continue
		}
		key := it.plain.Manifest.mirror(d.Self.Node)
		if mirror := d.mirrors[key]; mirror != nil && d.goes(key, mirror) || mirror == nil && d.comes(it, key) {
			return key.name
		}
	}
	return ""
}

func (d *decider) goes(key podKey, mirror *corev1.Pod) bool {
	makers := d.makers(key)
	if reason, _ := d.obstacle(key, mirror, makers); reason != "" || retained(mirror.Labels) || makers[0].plain.Manifest.retained() {
		return false
	}
	m := makers[0].plain.Manifest
	return d.unclear == nil && d.targets.Covers(asSubject(m.Labels, priorityOf(mirror, m)))
}

// comes reports whether a part that the API does not show must leave and is or will be there.
func (d *decider) comes(it *item, key podKey) bool {
	known := d.known[key]
	there := known.State == v1alpha1.StaticPodRunning || known.State == v1alpha1.StaticPodRestoring && known.Reason != v1alpha1.StaticPodNotStarted
	return there && d.unclear == nil && d.targets.Covers(asSubject(it.plain.Manifest.Labels, known.Priority))
}

func (d *decider) parts() (parts []*item) {
	for _, it := range d.items {
		if (it.held != nil || it.plain != nil) && it.rank() >= 0 {
			parts = append(parts, it)
		}
	}
	slices.SortFunc(parts, func(a, b *item) int { return cmp.Or(a.rank()-b.rank(), strings.Compare(a.file, b.file)) })
	return parts
}

// later returns a part that must start first and still can; empty if there is none.
func (d *decider) later(than *item) string {
	for _, it := range d.parts() {
		switch {
		case it.rank() <= than.rank() || d.Failures[it.file] != "":
		case it.held != nil && d.stays(it) == no:
			return d.keyOf(it).name
		case it.held == nil && it.entry != nil:
			key := it.plain.Manifest.mirror(d.Self.Node)
			if late := it.entry.At.Add(startWithin); d.mirrors[key] == nil && (it.entry.State != v1alpha1.StaticPodRestoring || late.After(d.Now)) {
				return key.name
			}
		}
	}
	return ""
}

// claim releases the claim once all parts are back and Ready.
func (d *decider) claim() {
	if d.ControlPlane.Claim != d.Self.Node || !d.ControlPlane.Known || d.Node == nil || !d.Folder.Known || d.Folder.Absent {
		return
	}
	for _, it := range d.items {
		if it.held != nil && d.part(it) || it.entry != nil && it.entry.ControlPlane {
			return
		}
		m := it.plain.manifest()
		if m == nil || !m.ControlPlane {
			continue
		}
		key := m.mirror(d.Self.Node)
		mirror := d.mirrors[key]
		if mirror == nil || !podclass.Ready(mirror) || d.goes(key, mirror) {
			return
		}
	}
	if !d.Live {
		d.d.NeedsLive = true
		return
	}
	d.d.Claim = ClaimRelease
}
