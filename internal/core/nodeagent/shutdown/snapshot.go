// Package shutdown decides how the agent delays the shutdown of its node (KEP-4212, "kubelet:
// Graceful Node Shutdown"). The shutdown continues when the node is drained, a second before
// systemd-logind stops waiting, or after ten seconds without a sign of the manager. What has
// begun is written down and survives a restart of the agent. A shutdown of another boot is over.
package shutdown

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
)

const (
	// margin is the time before the end of the delay at which a shutdown is released.
	margin = time.Second
	// patience limits how long the manager may take to show that it drains.
	patience   = 10 * time.Second
	leastDelay = 30 * time.Second
)

// Snapshot is all that a decision reads. Decide does not change it.
type Snapshot struct {
	Now time.Time
	// BootID is empty if unknown.
	BootID   string
	Wish     v1alpha1.NodeShutdownMode
	Logind   Logind
	Schedule *Schedule
	Held     bool
	Refusal  string
	Node     *corev1.Node
	Pods     []*corev1.Pod
	Entry    *Entry
	// Fresh is true for the first decision after a start of the agent.
	Fresh bool
}

// Logind is the state of systemd-logind.
type Logind struct {
	// Fault says why the state is unknown.
	Fault     string
	Preparing bool
	Type      string
	// Delay is the longest delay of a shutdown, DelayFault why it is not the requested one.
	Delay      time.Duration
	DelayFault string
	Kubelet    bool
}

// Entry is the recorded shutdown.
type Entry struct {
	BootID string                     `json:"bootID,omitempty"`
	Phase  v1alpha1.NodeShutdownPhase `json:"phase"`
	// Mode selects the reaction, whatever the kubelet does meanwhile.
	Mode     v1alpha1.NodeShutdownMode `json:"mode"`
	Type     string                    `json:"type"`
	Start    time.Time                 `json:"start"`
	Deadline time.Time                 `json:"deadline"`
}

// ParseEntry reads the result of Text; nil without data. It fails on other formats.
func ParseEntry(data []byte) (*Entry, error) {
	if len(data) == 0 {
		return nil, nil
	}
	e := &Entry{}
	if err := json.Unmarshal(data, e); err != nil {
		return nil, err
	}
	switch e.Phase {
	case v1alpha1.ShutdownScheduled, v1alpha1.ShutdownPreparing, v1alpha1.ShutdownReleased, v1alpha1.ShutdownCancelled:
	default:
		return nil, fmt.Errorf("it has phase %.50q", e.Phase)
	}
	if !storable(e.Start) || !storable(e.Deadline) {
		return nil, fmt.Errorf("it is about %s to %s", e.Start, e.Deadline)
	}
	e.Type = TypeOf(e.Type)
	return e, nil
}

// storable is true of times that the API takes.
func storable(at time.Time) bool { return at.Year() >= 1970 && at.Before(farthest) }

// Text returns the stored form of an entry; nil if there is none.
func (e *Entry) Text() []byte {
	if e == nil {
		return nil
	}
	text, _ := json.Marshal(e) // Strings and storable times always marshal.
	return text
}

// Decision holds the agent's actions, in the order of the fields.
type Decision struct {
	// Entry is to be stored first; nil is to be removed.
	Entry   *Entry
	Inhibit bool
	Status  v1alpha1.NodeShutdown
	// Manageable is the condition of the NodeAgent, without its time.
	Manageable Verdict
	// NodeCondition is to be written to the Node; nil leaves it as it is.
	NodeCondition *corev1.NodeCondition
	// Events are true when the entry is stored and the inhibitor is as it is to be.
	Events []event.Event
	// After is the longest delay until the next decision; 0 waits for a change.
	After time.Duration
}

// Verdict says whether a shutdown can be managed, and why.
type Verdict struct {
	OK              bool
	Reason, Message string
}
