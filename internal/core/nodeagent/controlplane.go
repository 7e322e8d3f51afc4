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
	// serverSilence is for how long another API server may not have renewed its Lease.
	serverSilence = time.Minute
	// members is how many members of etcd have to be there for one to go.
	members = 3
)

// components are the programs of a control plane, in the order in which they go: each
// before those that it needs. They come back the other way.
var components = []string{"kube-scheduler", "kube-controller-manager", "kube-apiserver", etcd}

const etcd = "etcd"

// ControlPlane is what is known of the control plane, and of what may be done to its part
// on this node.
type ControlPlane struct {
	// Terminate is true if the agent may take its pods down at all.
	Terminate bool
	// Host is true if the agent runs as a unit of its host, so that it starts without an
	// API server.
	Host bool
	// Hostname is that of the host, and Address that of the API server that the agent asks.
	Hostname, Address string
	// Known is true if Servers, Etcd and Claim have been read.
	Known bool
	// Servers are the API servers that have a Lease.
	Servers []APIServer
	// Etcd are the pods of its members, on whatever node.
	Etcd []*corev1.Pod
	// Claim is the node that alone may take its part of the control plane down; empty if
	// there is none.
	Claim string
	// RestoreAfter is for how long no API server may answer before the parts that are away
	// go back; 0 is for ever.
	RestoreAfter time.Duration
	// Signs are those of life of the API.
	Signs Signs
}

// APIServer is what the Lease of an API server says.
type APIServer struct {
	// Host is the name of its host; empty if the Lease does not say.
	Host string
	// Renewed is the time in the Lease, by the clock of that host.
	Renewed time.Time
	// Seen is when the agent last saw it change, by its own clock; zero is never.
	Seen time.Time
}

// fresh is until when an API server is taken to be there. Both times have to say so: no
// clock is wrong for the one, and the other is not fooled by a host that was asleep.
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

// Claim is what is done about the right to take a part of the control plane down, which one
// node at a time has.
type Claim int

const (
	// ClaimKeep leaves it as it is.
	ClaimKeep Claim = iota
	// ClaimTake takes it, if nobody has it.
	ClaimTake
	// ClaimRelease gives it back.
	ClaimRelease
)

// part is true if a file that is put aside is a part of the control plane.
func (d *decider) part(it *item) bool {
	if m := it.held.manifest(); m != nil {
		return m.ControlPlane
	}
	return it.entry != nil && it.entry.ControlPlane
}

// rank is the place of a component in the order of leaving; -1 if it is none.
func (m *Manifest) rank() int {
	if m == nil || !m.ControlPlane {
		return -1
	}
	return slices.Index(components, m.Component)
}

// rank is that of a manifest, wherever it is.
func (it *item) rank() int {
	if m := it.held.manifest(); m != nil {
		return m.rank()
	}
	return it.plain.manifest().rank()
}

// componentOf is which program of a control plane a pod runs, by its label and its
// containers; empty if they do not agree on one.
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

// What is missing and may be known in a moment, as the agent has just begun.
const (
	unread   = "it is not known yet which other API servers there are"
	unproved = "no API server of another host was seen to renew its Lease since the agent began"
)

// retainedPart is why a pod of the control plane is left alone, and whether that is for
// want of knowledge; empty if it may go, or is none.
func (d *decider) retainedPart(key podKey, mirror *corev1.Pod, makers []*item) (words string, unsure bool) {
	var m *Manifest
	if len(makers) > 0 {
		m = makers[0].plain.Manifest
	}
	switch {
	case !isControlPlane(mirror) && (m == nil || !m.ControlPlane):
		return "", false
	case !d.ControlPlane.Terminate:
		return fmt.Sprintf("%s is part of the control plane. The agent leaves it alone unless it runs with --control-plane-pods=Terminate.", key), false
	}
	missing := d.missing(m)
	if len(missing) == 0 {
		return "", false
	}
	unsure = len(missing) == 1 && (missing[0] == unread || missing[0] == unproved)
	return fmt.Sprintf("%s is part of the control plane and stays: %s.", key, strings.Join(missing, "; ")), unsure
}

// missing is what has to be otherwise for a part to go.
func (d *decider) missing(m *Manifest) (missing []string) {
	c := &d.ControlPlane
	if m.rank() < 0 {
		missing = append(missing, "its manifest does not make it one of "+strings.Join(components, ", "))
	}
	if !c.Host {
		missing = append(missing, "the agent runs as a pod, which does not start without an API server; run it as a unit of the host (--host)")
	}
	if c.own(d.Node) {
		missing = append(missing, fmt.Sprintf("the agent asks the API server of its own node (%s); give its kubeconfig the address of another, or of all", c.Address))
	}
	if !c.Known {
		return append(missing, unread)
	}
	missing = append(missing, d.missingServer()...)
	if m != nil && m.Component == etcd {
		missing = append(missing, d.missingMembers()...)
	}
	if c.Claim != "" && c.Claim != d.Self.Node {
		missing = append(missing, fmt.Sprintf("the control plane of %s is away or not Ready again, and one goes at a time", c.Claim))
	}
	return missing
}

// own is true if the agent's way to the API is the API server of its own node, as far as
// an address tells.
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

// missingServer is what is missing of an API server of another host.
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

// missingMembers is what is missing of the members of etcd.
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
		missing = append(missing, fmt.Sprintf("of %d members of etcd that have to be Ready, its own among them, %d are", members, len(ready)))
	}
	if weak != "" {
		missing = append(missing, fmt.Sprintf("etcd member %.253s is not Ready or is going", weak))
	}
	return missing
}

// holdPart puts a part of the control plane aside: after those that need it, and after the
// node has claimed to be the only one that does so. It returns what it waits for.
func (d *decider) holdPart(mirror *corev1.Pod, it *item, e *v1alpha1.Evacuation) (waits string) {
	if first := d.sooner(it); first != "" {
		waits = fmt.Sprintf("%s goes after %s, which is not gone yet.", mirror.Name, first)
		d.tell(mirror, &Entry{At: d.Now, GraceSeconds: int64(it.plain.Manifest.Grace.Seconds())}, waits)
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

// sooner is a part of the control plane that goes before another and is not gone; empty if
// there is none.
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

// goes is true if a part of the control plane has to leave and may.
func (d *decider) goes(key podKey, mirror *corev1.Pod) bool {
	makers := d.makers(key)
	if reason, _ := d.obstacle(key, mirror, makers); reason != "" || retained(mirror.Labels) || makers[0].plain.Manifest.retained() {
		return false
	}
	m := makers[0].plain.Manifest
	return d.unclear == nil && d.targets.Covers(asSubject(m.Labels, priorityOf(mirror, m)))
}

// comes is true if a part of the control plane that the API does not show has to leave and
// is there, or will be.
func (d *decider) comes(it *item, key podKey) bool {
	known := d.known[key]
	there := known.State == v1alpha1.StaticPodRunning || known.State == v1alpha1.StaticPodRestoring && known.Reason != v1alpha1.StaticPodNotStarted
	return there && d.unclear == nil && d.targets.Covers(asSubject(it.plain.Manifest.Labels, known.Priority))
}

// parts are the parts of the control plane whose place in the order is known.
func (d *decider) parts() (parts []*item) {
	for _, it := range d.items {
		if (it.held != nil || it.plain != nil) && it.rank() >= 0 {
			parts = append(parts, it)
		}
	}
	slices.SortFunc(parts, func(a, b *item) int { return cmp.Or(a.rank()-b.rank(), strings.Compare(a.file, b.file)) })
	return parts
}

// later is a part of the control plane that comes back before another and has yet to start;
// empty if there is none. One that cannot come back is not waited for.
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

// claim gives the claim back when nothing of the control plane is away, or asked to go, and
// all of it is Ready again: until then it counts for as little as if it were gone.
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
