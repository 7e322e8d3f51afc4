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
	// LeaseNamespace is where any two controllers of a cluster meet, wherever they run.
	LeaseNamespace = "kube-system"
	// LeaseDuration is how long a Lease is believed that nobody renews.
	LeaseDuration = 40 * time.Second

	// ForeignFor is for how long another controller is taken to be there that has written.
	ForeignFor = time.Hour
)

// Mode is what Ebbtide is asked to be for EvictionRequests.
type Mode string

const (
	// ModeAuto is a member where the API is served, and the controller while nobody else is.
	ModeAuto Mode = "auto"
	// ModeOff is nothing.
	ModeOff Mode = "off"
	// ModeController is the controller, whoever else is.
	ModeController Mode = "controller"
	// ModeMember makes requests and responds, and leaves the rest to another controller.
	ModeMember Mode = "member"
)

// ParseMode reads a Mode.
//
// Errors: there is none of this name.
func ParseMode(text string) (Mode, error) {
	switch mode := Mode(text); mode {
	case ModeAuto, ModeOff, ModeController, ModeMember:
		return mode, nil
	}
	return "", fmt.Errorf("must be auto, off, controller or member, not %q", text)
}

// State is whether Ebbtide is the controller.
type State string

const (
	// StateOff is that of who is not to be.
	StateOff State = "off"
	// StateNotServed is that where the API is not served.
	StateNotServed State = "not-served"
	// StateActive is that of the controller.
	StateActive State = "active"
	// StateAside is that of who leaves it to somebody else.
	StateAside State = "aside"
	// StateUnknown is that of who could not find out whether somebody else is, and does
	// nothing.
	StateUnknown State = "unknown"
)

// States are all there are.
func States() []State {
	return []State{StateOff, StateNotServed, StateActive, StateAside, StateUnknown}
}

// Situation is what decides who is the controller.
type Situation struct {
	Mode Mode
	// Served is true if the API server serves EvictionRequests and Evictions.
	Served bool
	// Holder is who else holds the Lease; empty if nobody does.
	Holder string
	// Foreign is another controller that has written Evictions; empty if there is none.
	Foreign string
	// Unknown is what could not be found out, in words; empty if all could.
	Unknown string
}

// Role decides whether Ebbtide is the controller, and says why.
func Role(s Situation) (State, string) {
	switch {
	case s.Mode == ModeOff, s.Mode == ModeMember:
		return StateOff, fmt.Sprintf("Ebbtide is not the controller of EvictionRequests, because it runs with --eviction-requests=%s.", s.Mode)
	case !s.Served:
		return StateNotServed, "The API server does not serve EvictionRequests (lifecycle.k8s.io/v1alpha1)."
	case s.Mode == ModeController:
		return StateActive, "Ebbtide is the controller of EvictionRequests, because it runs with --eviction-requests=controller."
	case s.Unknown != "":
		return StateUnknown, "Ebbtide answers no EvictionRequests until it is known whether somebody else does: " + s.Unknown
	case s.Holder != "":
		return StateAside, fmt.Sprintf("%s answers EvictionRequests: it holds the Lease %s/%s. So Ebbtide does not. %s", s.Holder, LeaseNamespace, Lease, override)
	case s.Foreign != "":
		return StateAside, fmt.Sprintf("%s answers EvictionRequests: it has made Evictions and written their targetResponders within the last hour. So Ebbtide does not. %s", s.Foreign, override)
	}
	return StateActive, "Ebbtide is the controller of EvictionRequests; nobody else is."
}

const override = "Where nobody answers them, run Ebbtide with --eviction-requests=controller."

// Foreign returns the field manager of another controller that has made this Eviction and
// written its targetResponders within the last hour; empty if there is none. Responders can
// write the status of an Eviction, but make none, so that none of them can have Ebbtide
// step aside.
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

// owns reports whether a manager owns a field.
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
