package handover

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

const (
	maxFact = 256 // bytes that are recorded of each field of a node
	// MaxNames bounds the maintenances that a node is handed over to at a time.
	MaxNames = 16
	// leastChange is the least time between two recorded changes.
	leastChange = time.Second
)

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

// observed is a state of a node and of its Ready condition.
type observed struct {
	nodeState

	Ready           corev1.ConditionStatus `json:"ready,omitempty"`
	ReadyTransition string                 `json:"readyTransition,omitempty"`
}

func observe(f *Facts) observed {
	o := observed{nodeState: stateOf(f.Node)}
	if f.Ready != nil {
		o.Ready, o.ReadyTransition = f.Ready.Status, f.Ready.LastTransitionTime.UTC().Format(time.RFC3339)
	}
	return o
}

// Record holds the state of a node when it was handed over, and its last one: the value of
// v1alpha1.HandedOverAnnotation. It is in force when the node has the mark that names its
// maintenance. The mark is written under the version of the node that the record was read from, so
// a record of an earlier state, which a stale cache may show, never comes into force.
type Record struct {
	// MaintenanceUID and NodeName detect a record that was copied from another maintenance.
	MaintenanceUID types.UID `json:"maintenanceUID"`
	NodeName       string    `json:"nodeName"`
	nodeState
	Time metav1.MicroTime `json:"time"`
	Seen struct {
		observed

		BootCount int32 `json:"bootCount"`
		// Time is the start of this state; nil if the clock was skewed.
		Time *metav1.MicroTime `json:"time,omitempty"`
	} `json:"seen"`

	text string // as it was read
}

// readRecord reads the record of a maintenance about a node; nil if it is invalid or another's.
func readRecord(m *v1alpha1.NodeMaintenance, node string) *Record {
	record := Record{text: m.Annotations[v1alpha1.HandedOverAnnotation]}
	if err := json.Unmarshal([]byte(record.text), &record); err != nil || record.MaintenanceUID != m.UID || record.NodeName != node {
		return nil
	}
	return &record
}

// Since returns when the only node of a maintenance was handed over, and in which boot it was then;
// false if it was not.
func Since(m *v1alpha1.NodeMaintenance, node string) (at time.Time, bootID string, handedOver bool) {
	record := readRecord(m, node)
	if record == nil {
		return time.Time{}, "", false
	}
	return record.Time.Time, record.BootID, true
}

// BootTime returns when the only node of a maintenance became Ready in another boot than that of the
// handover, by the clock of the node; zero if that is unknown.
func BootTime(m *v1alpha1.NodeMaintenance, node string) time.Time {
	record := readRecord(m, node)
	if record == nil || record.Seen.BootID == record.BootID || record.Seen.Ready != corev1.ConditionTrue {
		return time.Time{}
	}
	at, _ := time.Parse(time.RFC3339, record.Seen.ReadyTransition)
	return at
}

// Text returns the record as it is to be written; empty if there is none.
func (r *Record) Text() string {
	switch {
	case r == nil:
		return ""
	case r.text != "":
		return r.text
	}
	text, _ := json.Marshal(r)
	return string(text)
}

func begin(m types.UID, f *Facts) *Record {
	record := &Record{MaintenanceUID: m, NodeName: f.Node.Name, nodeState: stateOf(f.Node), Time: metav1.NewMicroTime(f.Now)}
	record.Seen.observed = observe(f)
	record.Seen.Time = trusted(f)
	return record
}

// trusted returns the time; nil while the clock is skewed.
func trusted(f *Facts) *metav1.MicroTime {
	if f.ClockSkewed {
		return nil
	}
	now := metav1.NewMicroTime(f.Now)
	return &now
}

// update records a change of a node. Settled is true if our clock saw its start.
func update(known *Record, f *Facts) (record *Record, settled bool) {
	now, seen := observe(f), &known.Seen
	if now.BootID == "" {
		// A kubelet that has not reported yet has not booted again.
		now.BootID = seen.BootID
	}
	timed := seen.Time != nil && !seen.Time.After(f.Now)
	switch same := now == seen.observed; {
	case same && (timed || f.ClockSkewed):
		return known, timed
	case !same && timed && !f.ClockSkewed && f.Now.Sub(seen.Time.Time) < leastChange:
		return known, false
	}
	next := *known
	next.text = ""
	if seen.BootID != "" && now.BootID != seen.BootID {
		next.Seen.BootCount++
	}
	next.Seen.observed, next.Seen.Time = now, trusted(f)
	return &next, false
}
