package maintenance

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/maintenance/cordon"
)

const (
	// maxFact is how many bytes of each fact about a node are written down.
	maxFact = 256
	// maxHandedOver is to how many maintenances a node is handed over at a time.
	maxHandedOver = 16
	// leastSight is the least time between two sights of a node that are written down: a
	// node that changes all the time does not have us write all the time.
	leastSight = time.Second
)

// nodeState is what a node says of the machine that it is.
type nodeState struct {
	NodeUID                 types.UID `json:"nodeUID"`
	BootID                  string    `json:"bootID"`
	KubeletVersion          string    `json:"kubeletVersion"`
	KernelVersion           string    `json:"kernelVersion"`
	OSImage                 string    `json:"osImage"`
	ContainerRuntimeVersion string    `json:"containerRuntimeVersion"`
}

func stateOf(node *corev1.Node) nodeState {
	info := &node.Status.NodeInfo
	return nodeState{
		NodeUID: node.UID, BootID: excerpt.Of(info.BootID, maxFact),
		KubeletVersion: excerpt.Of(info.KubeletVersion, maxFact), KernelVersion: excerpt.Of(info.KernelVersion, maxFact),
		OSImage: excerpt.Of(info.OSImage, maxFact), ContainerRuntimeVersion: excerpt.Of(info.ContainerRuntimeVersion, maxFact),
	}
}

// sight is a state of a node and of its Ready condition, as both say it themselves.
type sight struct {
	nodeState

	Ready           corev1.ConditionStatus `json:"ready,omitempty"`
	ReadyTransition string                 `json:"readyTransition,omitempty"`
}

func sightOf(node *corev1.Node) sight {
	s := sight{nodeState: stateOf(node)}
	if ready := findNodeCondition(node, corev1.NodeReady); ready != nil {
		s.Ready, s.ReadyTransition = ready.Status, ready.LastTransitionTime.UTC().Format(time.RFC3339)
	}
	return s
}

// handOver is what a node was when it was handed over to whoever works on it, and what
// it has been since: the value of v1alpha1.HandedOverAnnotation. It is in force when the
// node bears the mark that names its maintenance. The mark is written under the version of the
// node that the record was read from, so a record of what the node had been before, which
// a cache that is behind may show, never comes into force.
type handOver struct {
	// MaintenanceUID and NodeName tell it from one that was copied with the manifest of
	// another maintenance, or that is about another node.
	MaintenanceUID types.UID `json:"maintenanceUID"`
	NodeName       string    `json:"nodeName"`
	nodeState
	// Time is when that was.
	Time metav1.MicroTime `json:"time"`
	// Seen is what the node was last.
	Seen struct {
		sight

		// BootCount is how often it has booted since.
		BootCount int32 `json:"bootCount"`
		// Time is since when it is so; nil if the clock was skewed.
		Time *metav1.MicroTime `json:"time,omitempty"`
	} `json:"seen"`

	// text is how it was read.
	text string
}

// readHandOver reads the record of a maintenance about a node; nil if there is none
// that can be read and belongs to both.
func readHandOver(m *v1alpha1.NodeMaintenance, node string) *handOver {
	record := handOver{text: m.Annotations[v1alpha1.HandedOverAnnotation]}
	if err := json.Unmarshal([]byte(record.text), &record); err != nil || record.MaintenanceUID != m.UID || record.NodeName != node {
		return nil
	}
	return &record
}

// written is the record as it is to be written; empty if there is none.
func (h *handOver) written() string {
	if h == nil || h.text != "" {
		return h.read()
	}
	// Strings, numbers and times always marshal.
	text, _ := json.Marshal(h)
	return string(text)
}

func (h *handOver) read() string {
	if h == nil {
		return ""
	}
	return h.text
}

// handing is how far a node is handed over for a maintenance in Drain.
type handing struct {
	// record is what has to be in the API; nil if that is nothing.
	record *handOver
	// inForce is true if it was there when the node got its mark; marked if the node has
	// to have one.
	inForce, marked bool
	// crowded is true if it gets none, as too many others have one.
	crowded bool
	verdict verdict
}

// handingsOf are those of a node, by drain.
func (t *targeted) handingsOf(o *outcome) []handing {
	handings := make([]handing, len(o.drains))
	for place, one := range o.drains {
		if one.maintenance.completeWhen != nil {
			handings[place] = t.handingOf(o, one)
		}
	}
	return handings
}

func (t *targeted) handingOf(o *outcome, one *selection) handing {
	w, now := one.maintenance.completeWhen, stateOf(o.object)
	drained := o.emptied(one) && o.object.Spec.Unschedulable
	marked := cordon.HandedOverTo(o.object, one.maintenance.name())
	record := w.record
	// A node that was made anew under its name has lost its mark with its predecessor, and
	// is what the maintenance waits for.
	pending := record != nil && !marked && record.NodeUID == now.NodeUID
	switch {
	case (record == nil || pending && record.nodeState != now) && !drained:
		return handing{}
	case record == nil || pending && record.nodeState != now:
		return handing{record: t.handOver(one.maintenance, o.object), marked: true}
	case pending:
		return handing{record: record, marked: drained}
	}
	h := handing{inForce: true, marked: marked || drained}
	var settled bool
	h.record, settled = t.look(record, o.object)
	h.verdict = t.judge(w, o.object, h.record, settled)
	if h.record == record && !settled && !t.ClockSkewed {
		h.verdict.wakeTime = record.Seen.Time.Add(leastSight)
	}
	return h
}

// handOver is the record of a node that is handed over now.
func (t *targeted) handOver(m *maintenance, node *corev1.Node) *handOver {
	record := &handOver{
		MaintenanceUID: m.object.UID, NodeName: node.Name, nodeState: stateOf(node), Time: metav1.NewMicroTime(t.Now),
	}
	record.Seen.sight = sightOf(node)
	record.Seen.Time = t.trusted()
	return record
}

// trusted is what time it is; nil while the clock is skewed.
func (t *targeted) trusted() *metav1.MicroTime {
	if t.ClockSkewed {
		return nil
	}
	now := metav1.NewMicroTime(t.Now)
	return &now
}

// look notes what has become of a node. Settled is true if it is known since when it is
// what it is. That goes by our own clock, from when we saw it, whatever the clocks of those
// say who report the node.
func (t *targeted) look(known *handOver, node *corev1.Node) (record *handOver, settled bool) {
	now, seen := sightOf(node), &known.Seen
	if now.BootID == "" {
		// A kubelet that has not reported yet has not booted again.
		now.BootID = seen.BootID
	}
	timed := seen.Time != nil && !seen.Time.After(t.Now)
	switch same := now == seen.sight; {
	case same && (timed || t.ClockSkewed):
		return known, timed
	case !same && timed && !t.ClockSkewed && t.Now.Sub(seen.Time.Time) < leastSight:
		return known, false
	}
	next := *known
	next.text = ""
	if seen.BootID != "" && now.BootID != seen.BootID {
		next.Seen.BootCount++
	}
	next.Seen.sight, next.Seen.Time = now, t.trusted()
	return &next, false
}

// awaitsHandOver returns true if a maintenance is not Drained for the only reason that the
// node is not handed over yet: who sees Drained may reboot the node at once. Where the node
// was announced as drained before the maintenance came to have a completeWhen, it is not taken back.
func (o *outcome) awaitsHandOver(one *selection) bool {
	m := one.maintenance
	return m.stage == v1alpha1.StageDrain && m.completeWhen != nil && !o.handings[one.place].inForce &&
		o.announcedSince(v1alpha1.NodeDrained).IsZero()
}

// handedOverTo are the sorted names of the maintenances that have the node. Who has a mark keeps
// it, the oldest come next. While a maintenance that is not understood holds the node, it keeps its own.
func (o *outcome) handedOverTo() []string {
	names := o.addMarks(nil, true)
	if o.unclear {
		for _, name := range o.holders {
			if cordon.HandedOverTo(o.object, name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	names = o.addMarks(names, false)
	slices.Sort(names)
	return names
}

// addMarks adds those that have to have a mark and have one, or have none yet, as long as
// there is room.
func (o *outcome) addMarks(names []string, has bool) []string {
	for place, one := range o.drains {
		h, name := &o.handings[place], one.maintenance.name()
		if !h.marked || cordon.HandedOverTo(o.object, name) != has {
			continue
		}
		if h.crowded = len(names) >= maxHandedOver; !h.crowded {
			names = append(names, name)
		}
	}
	return names
}

// awaitsText says what a node waits for that is drained and not handed over.
func (h *handing) awaitsText() string {
	if h.crowded {
		return fmt.Sprintf("Waiting for the node to be handed over: %d other NodeMaintenances have it.", maxHandedOver)
	}
	return "Waiting for the node to be handed over."
}

// recordHandOver is the annotation that the maintenance has to have; nil leaves it alone.
// One that is not in Drain has nothing to compare.
func (c *conclusion) recordHandOver(m *maintenance) *string {
	if m.stage != v1alpha1.StageDrain {
		return nil
	}
	var wanted string
	switch w := m.completeWhen; {
	case w == nil:
	case len(m.selections) == 0:
		wanted = w.record.read()
	default:
		one := m.selections[0]
		wanted = c.nodes[one.node.index].handings[one.place].record.written()
	}
	if present, is := m.object.Annotations[v1alpha1.HandedOverAnnotation]; wanted == present && (wanted != "") == is {
		return nil
	}
	return &wanted
}
