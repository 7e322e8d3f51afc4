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

// maxFileName is how long the name of a manifest may be: its name when it is put aside has
// to be one that file systems take.
const maxFileName = 255 - len(".") - len(heldSuffix)

// makers are the manifests in place that make a pod.
func (d *decider) makers(key podKey) (makers []*item) {
	for _, file := range slices.Sorted(maps.Keys(d.items)) {
		it := d.items[file]
		if m := it.plain.manifest(); m != nil && it.held == nil && m.mirror(d.Self.Node) == key {
			makers = append(makers, it)
		}
	}
	return makers
}

// shown is a static pod that the API shows.
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
		// What cannot be looked at now is no news of a pod that could be taken down before.
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

// obstacle is why the agent does not touch a pod, whatever is asked; empty if it may.
func (d *decider) obstacle(key podKey, mirror *corev1.Pod, makers []*item) (reason, message string) {
	part, unsure := d.retainedPart(key, mirror, makers)
	switch {
	case unsure:
		return v1alpha1.StaticPodUnreadable, part
	case part != "":
		return v1alpha1.StaticPodControlPlane, part
	case mirror.Annotations["kubernetes.io/config.source"] == "http":
		return v1alpha1.StaticPodFromURL, fmt.Sprintf("%s comes from the kubelet's staticPodURL. Take it off that server, or leave it: it goes with the node.", key)
	case d.Folder.Fault != "":
		return d.Folder.Fault, d.Folder.Message
	case len(makers) == 0:
		return d.unmade(key)
	case len(makers) > 1:
		return v1alpha1.StaticPodSeveralManifests, fmt.Sprintf("%s and %s both make %s. Remove one; the kubelet runs only one of them.",
			makers[0].file, makers[1].file, key)
	case len(makers[0].file) > maxFileName:
		return v1alpha1.StaticPodRefused, fmt.Sprintf("%.40s… has a name too long to be put aside: %d bytes, at most %d.", makers[0].file, len(makers[0].file), maxFileName)
	}
	return "", ""
}

// unmade is a pod that no manifest makes which can be read.
func (d *decider) unmade(key podKey) (reason, message string) {
	for _, file := range slices.Sorted(maps.Keys(d.items)) {
		if f := d.items[file].plain; f != nil && f.Fault != "" {
			return v1alpha1.StaticPodUnparsable, fmt.Sprintf("no file in %s makes %s; %s makes no pod: %s", d.Self.Dir, key, file, f.Fault)
		}
	}
	return v1alpha1.StaticPodNoManifest, fmt.Sprintf("no file in %s makes %s. Start the agent with --manifest-dir=<the kubelet's staticPodPath>.", d.Self.Dir, key)
}

// asked is the Evacuation at the agent's turn by which a pod has to leave now; nil if
// there is none. What the Node does not name is left alone without a word, as the KEP has
// it for what is above the target.
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

// Active returns true if it is the agent's turn to move the pod.
func Active(e *v1alpha1.Evacuation) bool {
	return e.Status.ActiveEvacuatorClass == v1alpha1.KubeletEvacuatorClass && !e.Status.ActiveEvacuatorCompleted
}

// priorityOf is the greater one of what the API and the manifest say: nobody makes a pod
// leave early by another mirror of it.
func priorityOf(mirror *corev1.Pod, m *Manifest) int32 {
	priority := podclass.Priority(mirror)
	if m.Priority != nil {
		priority = max(priority, *m.Priority)
	}
	return priority
}

// hold puts a manifest aside, and writes down before that it does.
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
		// It was written down before, and then not done.
		entry.At = it.entry.At
	}
	d.entries[it.file] = entry
	d.move(Move{File: it.file, From: it.file, To: entry.Held, Hold: true, Events: event.StaticPodHeld(d.Node, fmt.Sprintf(
		"%s is put aside as %s, so that the kubelet ends pod %s%s.", it.file, entry.Held, key, because(entry.Reason)))})
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + strings.TrimSpace(reason) + ")"
}

// hidden tells of manifests whose pods the API does not show: the kubelet runs such pods,
// and nobody else knows of them.
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
			// It runs on. Whoever counts it must not take it for gone.
			d.pods[key] = v1alpha1.StaticPod{
				Namespace: key.namespace, Name: key.name, Manifest: file, State: before.State, Priority: before.Priority, Reason: v1alpha1.StaticPodNoMirror,
				Message: fmt.Sprintf("the mirror pod of %s is gone, and %s is in place, so the pod runs. The kubelet makes another mirror within two minutes.", key, file),
			}
			continue
		}
		if late := it.plain.Changed.Add(startWithin); late.After(d.Now) {
			d.until(late)
			continue
		}
		d.pods[key] = v1alpha1.StaticPod{
			Namespace: key.namespace, Name: key.name, Manifest: file, State: v1alpha1.StaticPodUnmanageable, Reason: v1alpha1.StaticPodNoMirror,
			Message: fmt.Sprintf("%s makes %s, which the API does not show: the kubelet does not run it, or the API server refuses its mirror. "+
				"See the log of the kubelet: journalctl -u kubelet", file, key),
		}
	}
}
