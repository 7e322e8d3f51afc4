package evictionrequest

import (
	"encoding/json"
	"fmt"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Lease is the name of the Lease that the controller holds while it acts, in LeaseNamespace.
	Lease = "ebbtide-eviction-controller"
	// LeaseNamespace is the same for all controllers of a cluster.
	LeaseNamespace = "kube-system"
	// LeaseDuration is the time after which an unrenewed Lease has expired.
	LeaseDuration = 40 * time.Second

	// ForeignFor limits how long another controller counts as active after its last write.
	ForeignFor = time.Hour
)

// Mode is the role that is configured for Ebbtide.
type Mode string

const (
	// ModeAuto is a member where the API is served, and the controller if there is no other.
	ModeAuto Mode = "auto"
	// ModeOff disables EvictionRequests.
	ModeOff Mode = "off"
	// ModeController is always the controller.
	ModeController Mode = "controller"
	// ModeMember makes requests and responds, and leaves the rest to another controller.
	ModeMember Mode = "member"
)

// ParseMode parses a Mode. It fails on any other text.
func ParseMode(text string) (Mode, error) {
	switch mode := Mode(text); mode {
	case ModeAuto, ModeOff, ModeController, ModeMember:
		return mode, nil
	}
	return "", fmt.Errorf("must be auto, off, controller or member, not %q", text)
}

// State is the result of Role.
type State string

// States.
const (
	StateOff       State = "off"
	StateNotServed State = "not-served"
	// StateActive means that Ebbtide is the controller.
	StateActive State = "active"
	// StateAside means that another controller is active.
	StateAside State = "aside"
	// StateUnknown means that it is unknown whether another one is active, so that Ebbtide waits.
	StateUnknown State = "unknown"
)

// States returns all States.
func States() []State {
	return []State{StateOff, StateNotServed, StateActive, StateAside, StateUnknown}
}

// Situation is the state from which Role decides.
type Situation struct {
	Mode Mode
	// Served is true if the API server serves EvictionRequests and Evictions.
	Served bool
	// Holder is another holder of the Lease; empty if there is none.
	Holder string
	// Foreign is another controller that has written Evictions; empty if there is none.
	Foreign string
	// Unknown is the reason why these are unknown; empty if they are known.
	Unknown string
}

// Role decides whether Ebbtide is the controller, and returns the reason as a sentence.
func Role(s Situation) (State, string) {
	switch {
	case s.Mode == ModeOff, s.Mode == ModeMember:
		return StateOff, fmt.Sprintf("Ebbtide is not the controller of EvictionRequests: --eviction-requests=%s.", s.Mode)
	case !s.Served:
		return StateNotServed, "The API server does not serve EvictionRequests (lifecycle.k8s.io/v1alpha1)."
	case s.Mode == ModeController:
		return StateActive, "Ebbtide is the controller of EvictionRequests: --eviction-requests=controller."
	case s.Unknown != "":
		return StateUnknown, "Ebbtide does not answer EvictionRequests, because it is unknown whether another controller does: " + s.Unknown
	case s.Holder != "":
		return StateAside, fmt.Sprintf("%s answers EvictionRequests: it holds Lease %s/%s. %s", s.Holder, LeaseNamespace, Lease, override)
	case s.Foreign != "":
		return StateAside, fmt.Sprintf("%s answers EvictionRequests: it has created Evictions and written their targetResponders within the last hour. %s", s.Foreign, override)
	}
	return StateActive, "Ebbtide is the controller of EvictionRequests; there is no other."
}

const override = "If it does not, run Ebbtide with --eviction-requests=controller."

// Foreign returns the field manager of another controller that created this Eviction and wrote its
// targetResponders within the last hour. Responders cannot create Evictions, so they do not count.
func Foreign(e *lifecyclev1alpha1.Eviction, now time.Time) string {
	made := map[string]bool{}
	for i := range e.ManagedFields {
		entry := &e.ManagedFields[i]
		made[entry.Manager] = made[entry.Manager] || entry.Subresource == "" && owns(entry, "f:spec")
	}
	for i := range e.ManagedFields {
		entry := &e.ManagedFields[i]
		ours := entry.Manager == "" || entry.Manager == FieldManager || entry.Manager == EvictorFieldManager || entry.Manager == SurgeFieldManager
		if ours || !made[entry.Manager] || entry.Subresource != "status" || entry.Time == nil || now.Sub(entry.Time.Time) > ForeignFor {
			continue
		}
		if owns(entry, "f:status", "f:targetResponders") {
			return entry.Manager
		}
	}
	return ""
}

func owns(entry *metav1.ManagedFieldsEntry, path ...string) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	raw := json.RawMessage(entry.FieldsV1.GetRawBytes())
	for _, key := range path {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return false
		}
		next, found := fields[key]
		if !found {
			return false
		}
		raw = next
	}
	return true
}
