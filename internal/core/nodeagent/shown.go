package nodeagent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// maxFileName leaves room for the name of a manifest that is put aside.
const maxFileName = 255 - len(".") - len(heldSuffix)

func (d *decider) makers(key podKey) (makers []*item) {
	for _, file := range slices.Sorted(maps.Keys(d.items)) {
		it := d.items[file]
		if m := it.plain.manifest(); m != nil && it.held == nil && m.mirror(d.Self.Node) == key {
			makers = append(makers, it)
		}
	}
	return makers
}

// shown handles a static pod that the API shows.
func (d *decider) shown(key podKey, mirror *corev1.Pod) {
	makers := d.makers(key)
	if _, told := d.pods[key]; told && len(makers) == 0 {
		return
	}
	pod := v1alpha1.StaticPod{
		Namespace: key.namespace, Name: key.name, State: v1alpha1.StaticPodRunning, Priority: podclass.Priority(mirror),
	}
	if len(makers) > 0 {
		pod.Manifest = makers[0].file
	}
	if reason, message := d.obstacle(key, mirror, makers); reason != "" {
		pod.Reason, pod.Message = reason, message
		// A manifest that cannot be read now does not change the state.
		if reason != v1alpha1.StaticPodUnreadable || d.known[key].State != v1alpha1.StaticPodRunning {
			pod.State = v1alpha1.StaticPodUnmanageable
		}
		d.pods[key] = pod
		return
	}
	if e := d.asked(mirror, makers[0]); e != nil {
		if makers[0].plain.Manifest.ControlPlane {
			pod.Message = d.holdPart(mirror, makers[0], e)
		} else {
			d.hold(mirror, makers[0], e)
		}
		if words := d.Failures[makers[0].file]; words != "" {
			pod.Reason, pod.Message = v1alpha1.StaticPodRefused, fmt.Sprintf("%s cannot be put aside: %s", makers[0].file, words)
		}
	}
	d.pods[key] = pod
}

func (d *decider) obstacle(key podKey, mirror *corev1.Pod, makers []*item) (reason, message string) {
	part, unsure := d.retainedPart(key, mirror, makers)
	switch {
	case unsure:
		return v1alpha1.StaticPodUnreadable, part
	case part != "":
		return v1alpha1.StaticPodControlPlane, part
	case mirror.Annotations["kubernetes.io/config.source"] == "http":
		return v1alpha1.StaticPodFromURL, fmt.Sprintf("%s comes from the kubelet's staticPodURL. Remove it from that server, or let it stop with the node.", key)
	case d.Folder.Fault != "":
		return d.Folder.Fault, d.Folder.Message
	case len(makers) == 0:
		return d.unmade(key)
	case len(makers) > 1:
		return v1alpha1.StaticPodSeveralManifests, fmt.Sprintf("%s and %s both define %s. Remove one of them.",
			makers[0].file, makers[1].file, key)
	case len(makers[0].file) > maxFileName:
		return v1alpha1.StaticPodRefused, fmt.Sprintf("%.40s… cannot be put aside because its name has %d bytes, more than %d.", makers[0].file, len(makers[0].file), maxFileName)
	}
	return "", ""
}

func (d *decider) unmade(key podKey) (reason, message string) {
	for _, file := range slices.Sorted(maps.Keys(d.items)) {
		if f := d.items[file].plain; f != nil && f.Fault != "" {
			return v1alpha1.StaticPodUnparsable, fmt.Sprintf("no file in %s defines %s, and %s is invalid: %s", d.Self.Dir, key, file, f.Fault)
		}
	}
	return v1alpha1.StaticPodNoManifest, fmt.Sprintf("no file in %s defines %s. Set --manifest-dir of the agent to the kubelet's staticPodPath.", d.Self.Dir, key)
}

// asked returns the active Evacuation of a pod within the drain target; nil without one.
func (d *decider) asked(mirror *corev1.Pod, it *item) *v1alpha1.Evacuation {
	e := d.evacuation[mirror.UID]
	switch {
	case e == nil, !Active(e), e.Name != evacuation.Name(mirror), len(evacuation.Instigators(e)) == 0:
		return nil
	case podclass.Terminal(mirror), mirror.DeletionTimestamp != nil:
		return nil
	case retained(mirror.Labels), it.plain.Manifest.retained():
		return nil
	case d.Node == nil, d.unclear != nil, !d.targets.Covers(asSubject(it.plain.Manifest.Labels, priorityOf(mirror, it.plain.Manifest))):
		return nil
	}
	return e
}

// Active reports whether it is the agent's turn to move the pod.
func Active(e *v1alpha1.Evacuation) bool {
	return e.Status.ActiveEvacuatorClass == v1alpha1.KubeletEvacuatorClass && !e.Status.ActiveEvacuatorCompleted
}

// priorityOf returns the higher priority, so that a forged mirror pod does not leave early.
func priorityOf(mirror *corev1.Pod, m *Manifest) int32 {
	priority := podclass.Priority(mirror)
	if m.Priority != nil {
		priority = max(priority, *m.Priority)
	}
	return priority
}

// hold puts a manifest aside after recording that.
func (d *decider) hold(mirror *corev1.Pod, it *item, e *v1alpha1.Evacuation) {
	if !d.Live {
		d.d.NeedsLive = true
		return
	}
	if len(d.entries) >= MaxEntries {
		return
	}
	key, priority := keyOf(mirror), priorityOf(mirror, it.plain.Manifest)
	entry := Entry{
		File: it.file, Held: HeldName(it.file), SHA256: it.plain.Sum, Pod: key.String(), Priority: &priority,
		GraceSeconds: int64(it.plain.Manifest.Grace.Seconds()), Evacuation: e.UID, BootID: d.Self.BootID,
		ControlPlane: it.plain.Manifest.ControlPlane,
		Reason:       maintenance.Reason(d.Node, d.Maintenances), State: v1alpha1.StaticPodHolding, At: d.Now,
	}
	if draining := maintenance.Draining(d.Node, d.Maintenances); draining != nil {
		entry.Maintenance = draining.Name
	}
	if it.entry != nil && it.entry.Evacuation == e.UID && it.entry.State == v1alpha1.StaticPodHolding {
		// It was recorded before and not done.
		entry.At = it.entry.At
	}
	d.entries[it.file] = entry
	d.move(Move{File: it.file, From: it.file, To: entry.Held, Hold: true, Events: event.StaticPodHeld(d.Node, fmt.Sprintf(
		"Put %s aside as %s so that the kubelet stops pod %s%s.", it.file, entry.Held, key, because(entry.Reason)))})
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + strings.TrimSpace(reason) + ")"
}

// hidden reports manifests whose pods the API does not show although the kubelet runs them.
func (d *decider) hidden() {
	if d.Node == nil || !d.Folder.Known {
		return
	}
	for _, file := range slices.Sorted(maps.Keys(d.items)) {
		it := d.items[file]
		m := it.plain.manifest()
		if m == nil || it.held != nil {
			continue
		}
		key := m.mirror(d.Self.Node)
		if _, told := d.pods[key]; told || d.mirrors[key] != nil {
			continue
		}
		if before := d.known[key]; before.State == v1alpha1.StaticPodRunning {
			// It still runs and must not count as gone.
			d.pods[key] = v1alpha1.StaticPod{
				Namespace: key.namespace, Name: key.name, Manifest: file, State: before.State, Priority: before.Priority, Reason: v1alpha1.StaticPodNoMirror,
				Message: fmt.Sprintf("the mirror pod of %s is gone but %s is in place, so the pod runs. The kubelet will recreate the mirror within two minutes.", key, file),
			}
			continue
		}
		if late := it.plain.Changed.Add(startWithin); late.After(d.Now) {
			d.until(late)
			continue
		}
		d.pods[key] = v1alpha1.StaticPod{
			Namespace: key.namespace, Name: key.name, Manifest: file, State: v1alpha1.StaticPodUnmanageable, Reason: v1alpha1.StaticPodNoMirror,
			Message: fmt.Sprintf("%s defines %s, which the API does not show: the kubelet does not run it, or the API server refuses its mirror. "+
				"To see the log of the kubelet: journalctl -u kubelet", file, key),
		}
	}
}
