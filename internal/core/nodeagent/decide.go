package nodeagent

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	// quiet is the time that a new manifest must be unchanged before it is put aside.
	quiet = 200 * time.Millisecond
	// startWithin limits how long a kubelet may take to start a restored pod.
	startWithin = time.Minute
	// kubeletSilence is the duration of the kubelet's Lease.
	kubeletSilence = 40 * time.Second
	// renewAfter is the interval at which the progress of a slow pod is reported.
	renewAfter = 3 * time.Minute
	// stuckAfter is the time after its grace period at which a pod counts as stuck.
	stuckAfter = time.Minute
)

type podKey struct{ namespace, name string }

func (k podKey) String() string { return k.namespace + "/" + k.name }

func keyOf(pod *corev1.Pod) podKey { return podKey{pod.Namespace, pod.Name} }

type item struct {
	file        string
	plain, held *File
	entry       *Entry
}

type decider struct {
	Snapshot

	targets    drainplan.Set
	unclear    error
	items      map[string]*item
	names      map[string]bool // of the folder
	mirrors    map[podKey]*corev1.Pod
	evacuation map[types.UID]*v1alpha1.Evacuation
	known      map[podKey]v1alpha1.StaticPod // what the API says of them already
	entries    map[string]Entry
	pods       map[podKey]v1alpha1.StaticPod
	d          Decision
}

// Decide returns what the agent does next.
func Decide(s Snapshot) Decision {
	d := observe(s)
	for _, file := range slices.Sorted(maps.Keys(d.items)) {
		it := d.items[file]
		switch {
		case !s.Folder.Known:
			d.keep(it)
		case it.held != nil:
			d.aside(it)
		case it.entry != nil:
			d.remembered(it)
		}
	}
	d.unseen()
	for _, key := range slices.SortedFunc(maps.Keys(d.mirrors), comparePods) {
		d.shown(key, d.mirrors[key])
	}
	d.hidden()
	d.claim()
	d.order()
	d.record()
	d.report()
	return d.d
}

func comparePods(a, b podKey) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

func observe(s Snapshot) *decider {
	d := &decider{
		Snapshot: s, items: map[string]*item{}, names: map[string]bool{}, mirrors: map[podKey]*corev1.Pod{},
		evacuation: map[types.UID]*v1alpha1.Evacuation{}, known: map[podKey]v1alpha1.StaticPod{},
		entries: map[string]Entry{}, pods: map[podKey]v1alpha1.StaticPod{},
	}
	if s.Node != nil {
		d.targets, d.unclear = cordon.Suppressed(s.Node)
	}
	for i := range s.Folder.Files {
		f := &s.Folder.Files[i]
		d.names[f.Name] = true
		if file, held := HeldFile(f.Name); held {
			d.item(file).held = f
		} else if Visible(f.Name) {
			d.item(f.Name).plain = f
		}
	}
	for i := range s.Journal.Manifests {
		d.item(s.Journal.Manifests[i].File).entry = &s.Journal.Manifests[i]
	}
	for _, pod := range s.Pods {
		if podclass.Mirror(pod) {
			d.mirrors[keyOf(pod)] = pod
		}
	}
	for _, e := range s.Evacuations {
		d.evacuation[e.Spec.PodRef.UID] = e
	}
	if s.Agent != nil {
		for _, pod := range s.Agent.Status.StaticPods {
			d.known[podKey{pod.Namespace, pod.Name}] = pod
		}
	}
	return d
}

func (d *decider) item(file string) *item {
	if d.items[file] == nil {
		d.items[file] = &item{file: file}
	}
	return d.items[file]
}

func (d *decider) keep(it *item) {
	if it.entry != nil {
		d.entries[it.file] = *it.entry
	}
}

// unseen keeps the reported state of pods that cannot be observed now.
func (d *decider) unseen() {
	if d.Folder.Known && !d.Folder.Absent {
		return
	}
	for key, pod := range d.known {
		switch pod.State {
		case v1alpha1.StaticPodHolding, v1alpha1.StaticPodHeld:
		case v1alpha1.StaticPodRunning, v1alpha1.StaticPodRestoring:
			if d.Folder.Absent || d.mirrors[key] != nil {
				continue
			}
		default:
			continue
		}
		d.pods[key] = pod
	}
}

func (d *decider) record() {
	next := Journal{Version: journalVersion, BootID: d.Self.BootID}
	for _, file := range slices.Sorted(maps.Keys(d.entries)) {
		next.Manifests = append(next.Manifests, d.entries[file])
	}
	same := slices.EqualFunc(d.Journal.Manifests, next.Manifests, func(a, b Entry) bool {
		atSame := a.At.Equal(b.At)
		a.At, b.At = time.Time{}, time.Time{}
		return atSame && reflect.DeepEqual(a, b)
	})
	if len(next.Manifests) > 0 {
		next.Silence = d.silence()
	}
	same = same && reflect.DeepEqual(d.Journal.Silence, next.Silence)
	if !same || len(next.Manifests) > 0 && d.Journal.BootID != next.BootID {
		d.d.Journal = &next
	}
}

func (d *decider) until(at time.Time) {
	left := max(at.Sub(d.Now), time.Millisecond)
	if d.d.After == 0 || left < d.d.After {
		d.d.After = left
	}
}

// verdict is whether a pod has to stay away. The zero value is unknown.
type verdict int

const (
	unknown verdict = iota
	yes
	no
)

// stays reports whether a pod that is put aside has to stay away. Only a live read can deny it.
func (d *decider) stays(it *item) verdict {
	if d.Node == nil || d.unclear != nil {
		return unknown
	}
	if d.covers(it) {
		return yes
	}
	if !d.Live {
		d.d.NeedsLive = true
		return unknown
	}
	return no
}

// covers reports whether the Node lists the pod. Unknown manifests and priorities count as listed.
func (d *decider) covers(it *item) bool {
	if it.held.manifest() == nil {
		return slices.ContainsFunc(d.targets.Entries(), func(e drainplan.Entry) bool {
			depth, _ := drainplan.Depth(v1alpha1.PodTypeStatic)
			return e.Depth() == depth
		})
	}
	return d.targets.Covers(asSubject(it.held.Manifest.Labels, d.priority(it)))
}

func (f *File) manifest() *Manifest {
	if f == nil {
		return nil
	}
	return f.Manifest
}

// priority returns that in the journal, the API or the manifest, or else the lowest.
func (d *decider) priority(it *item) int32 {
	if it.entry != nil && it.entry.Priority != nil {
		return *it.entry.Priority
	}
	if known, found := d.known[d.keyOf(it)]; found {
		return known.Priority
	}
	if m := it.held.manifest(); m != nil && m.Priority != nil {
		return *m.Priority
	}
	return leastPriority
}

const leastPriority = -1 << 31

func (d *decider) keyOf(it *item) podKey {
	if m := it.held.manifest(); m != nil {
		return m.mirror(d.Self.Node)
	}
	if it.entry != nil {
		return it.entry.pod()
	}
	return podKey{}
}
