package nodeagent

import (
	"cmp"
	"fmt"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
)

func (d *decider) aside(it *item) {
	e := d.entry(it)
	stays, part := d.stays(it), d.part(it)
	later := ""
	if part && stays == no && it.plain == nil {
		later = d.later(it)
	}
	e.ControlPlane, e.Unanswered = part, false
	switch {
	case part && d.abandoned():
		d.abandon(it, &e)
	case later != "":
	case stays == no && it.plain != nil:
		d.supersede(it)
	case stays == no:
		d.move(Move{File: it.file, From: it.held.Name, To: it.file})
	case stays == yes && it.plain != nil:
		d.replace(it, &e)
	}
	d.follow(it, &e)
	if pod, told := d.pods[d.keyOf(it)]; told && later != "" {
		waiting(&pod, later)
		d.pods[d.keyOf(it)] = pod
	}
	d.entries[it.file] = e
}

// entry returns the journal entry, or what the file itself tells if the journal is lost.
func (d *decider) entry(it *item) Entry {
	if it.entry != nil {
		e := *it.entry
		if e.State == v1alpha1.StaticPodRestoring {
			// Someone else restored it and put it aside again.
			e.State, e.At = v1alpha1.StaticPodHolding, it.held.Changed
		}
		return e
	}
	e := Entry{
		File: it.file, Held: it.held.Name, SHA256: it.held.Sum, BootID: d.Self.BootID,
		State: v1alpha1.StaticPodHolding, At: it.held.Changed,
	}
	if e.At.IsZero() {
		e.At = d.Now
	}
	if key := d.keyOf(it); key.name != "" {
		e.Pod, e.GraceSeconds = key.String(), int64(it.held.Manifest.Grace.Seconds())
		e.Maintenance = d.known[key].MaintenanceName
	}
	if priority := d.priority(it); priority != leastPriority {
		e.Priority = &priority
	}
	return e
}

// supersede keeps a new manifest and moves the one that was put aside out of the way.
func (d *decider) supersede(it *item) {
	name := "." + it.file + supersededSuffix
	for n := 2; d.names[name]; n++ {
		name = fmt.Sprintf(".%s.%d%s", it.file, n, supersededSuffix)
	}
	d.move(Move{File: it.file, From: it.held.Name, To: name, Events: event.ManifestSuperseded(d.Node, fmt.Sprintf(
		"%s was rewritten while it was put aside and is kept (%s). The earlier version is now %s (%s).",
		it.file, sum(it.plain.Sum), name, sum(it.held.Sum)))})
}

// replace puts a new manifest aside in place of the old one once it is written.
func (d *decider) replace(it *item, e *Entry) {
	if settled := it.plain.Changed.Add(quiet); settled.After(d.Now) {
		d.until(settled)
		return
	}
	if !d.Live {
		d.d.NeedsLive = true
		return
	}
	// Its pod may run by now.
	e.State, e.At, e.SHA256 = v1alpha1.StaticPodHolding, d.Now, it.plain.Sum
	d.move(Move{File: it.file, From: it.file, To: it.held.Name, Hold: true, Over: true, Events: event.ManifestReplaced(d.Node, fmt.Sprintf(
		"%s was rewritten while it was put aside (%s, before %s). The new version is put aside instead; its pod may have run briefly.",
		it.file, sum(it.plain.Sum), sum(it.held.Sum)))})
}

func (d *decider) move(m Move) {
	if d.Folder.Fault == "" {
		d.d.Moves = append(d.d.Moves, m)
	}
}

// follow tracks the pod of a manifest that is put aside.
func (d *decider) follow(it *item, e *Entry) {
	key := d.keyOf(it)
	mirror := d.mirrors[key]
	switch {
	case mirror != nil && e.State == v1alpha1.StaticPodHeld:
		e.State, e.At = v1alpha1.StaticPodHolding, d.Now
	case mirror == nil && e.State == v1alpha1.StaticPodHolding && d.gone():
		e.State, e.At = v1alpha1.StaticPodHeld, d.Now
	}
	if key.name == "" {
		return
	}
	pod := v1alpha1.StaticPod{
		Namespace: key.namespace, Name: key.name, Manifest: it.file, State: e.State, MaintenanceName: e.Maintenance,
		Message: fmt.Sprintf("%s is put aside as %s until no maintenance keeps its pod away.", it.file, it.held.Name),
	}
	if priority := d.priority(it); priority != leastPriority {
		pod.Priority = priority
	}
	if d.unclear != nil {
		pod.Message = fmt.Sprintf("%s stays put aside because the drain targets of the Node are unknown: %v", it.file, d.unclear)
	}
	if e.State == v1alpha1.StaticPodHolding {
		pod.Reason, pod.Message = d.terminating(key, e)
		d.reportProgress(mirror, e, pod.Message)
	}
	if words := d.Failures[it.file]; words != "" {
		pod.Reason, pod.Message = v1alpha1.StaticPodRefused, fmt.Sprintf("%s cannot be renamed on the node: %s", it.file, words)
	}
	d.pods[key] = pod
}

// gone reports whether a pod that the API does not show is gone: a running kubelet removes the
// mirror pod last. A pod that is force-deleted while it terminates cannot be told apart.
func (d *decider) gone() bool {
	if d.Node == nil || d.KubeletSeen.IsZero() || d.silent() {
		return false
	}
	if !d.Live {
		d.d.NeedsLive = true
	}
	return d.Live
}

func (d *decider) silent() bool {
	if d.KubeletSeen.IsZero() {
		return false
	}
	end := d.KubeletSeen.Add(kubeletSilence)
	if end.After(d.Now) {
		d.until(end)
		return false
	}
	return true
}

// remembered handles a manifest that is put aside only according to the journal.
func (d *decider) remembered(it *item) {
	e := *it.entry
	switch {
	case d.Folder.Absent:
		d.entries[it.file] = e
	case it.plain != nil && e.Unanswered && e.State != v1alpha1.StaticPodRestoring:
		e.State, e.At = v1alpha1.StaticPodRestoring, d.Now
		d.starting(it, e)
	case it.plain == nil:
		if e.State == v1alpha1.StaticPodRestoring {
			return
		}
		d.d.Events = append(d.d.Events, event.ManifestGone(d.Node, fmt.Sprintf(
			"%s, which was put aside as %s for pod %s, was removed and cannot be restored.", it.file, e.Held, e.Pod))...)
	case e.State == v1alpha1.StaticPodRestoring:
		d.starting(it, e)
	default:
		d.broughtBack(it, e)
	}
}

// broughtBack handles a manifest that is in place although the journal has it aside.
func (d *decider) broughtBack(it *item, e Entry) {
	as := &item{file: it.file, held: it.plain, entry: it.entry}
	switch stays := d.stays(as); {
	case stays == unknown:
		d.entries[it.file] = e
	case stays == no:
		e.State, e.At = v1alpha1.StaticPodRestoring, d.Now
		d.d.Events = append(d.d.Events, event.StaticPodRestored(d.Node, fmt.Sprintf(
			"Restored %s because the Node no longer keeps pod %s away.", it.file, e.Pod))...)
		d.starting(it, e)
	case e.State == v1alpha1.StaticPodHeld:
		d.d.Events = append(d.d.Events, event.ManifestGone(d.Node, fmt.Sprintf(
			"%s was restored manually while pod %s has to stay away. It will be put aside again.", it.file, e.Pod))...)
	}
}

func (d *decider) starting(it *item, e Entry) {
	key := cmp.Or(e.pod(), d.keyOf(&item{held: it.plain}))
	d.confess(&e)
	if d.mirrors[key] != nil && !e.Unanswered {
		return // shown() tells of it.
	}
	d.entries[it.file] = e
	if key.name == "" {
		return
	}
	pod := v1alpha1.StaticPod{
		Namespace: key.namespace, Name: key.name, Manifest: it.file, State: v1alpha1.StaticPodRestoring,
		Message: fmt.Sprintf("%s is restored. Waiting for the kubelet to start its pod.", it.file), MaintenanceName: e.Maintenance,
	}
	if e.Priority != nil {
		pod.Priority = *e.Priority
	}
	if late := e.At.Add(startWithin); late.After(d.Now) {
		d.until(late)
	} else {
		pod.Reason = v1alpha1.StaticPodNotStarted
		pod.Message = fmt.Sprintf("%s is restored, but the kubelet has not started %s. To see its log: journalctl -u kubelet", it.file, key)
	}
	d.pods[key] = pod
}

func sum(hexadecimal string) string {
	if hexadecimal == "" {
		return "sha256 unknown"
	}
	return "sha256 " + hexadecimal[:min(len(hexadecimal), 12)]
}

func clock(at time.Time) string { return at.UTC().Format("15:04:05") }
