package nodeagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	journalVersion = 1
	// MaxEntries is how many entries a journal may have.
	MaxEntries = 1024
)

// Journal is what explains the files that are put aside. Whoever loses it loses words, and
// no file.
type Journal struct {
	Version int `json:"version"`
	// BootID is the boot in which it was written.
	BootID string `json:"bootID,omitempty"`
	// Manifests are in the order of their files.
	Manifests []Entry `json:"manifests"`
	// Silence is since when no API server has answered; nil if one has, or if nothing
	// depends on it.
	Silence *Silence `json:"silence,omitempty"`
}

// Entry is a manifest that is put aside, or was until a moment ago.
type Entry struct {
	// File is the name that the kubelet knows, Held the one that it has meanwhile.
	File string `json:"file"`
	Held string `json:"held"`
	// SHA256 is that of its content when it was put aside.
	SHA256 string `json:"sha256,omitempty"`
	// Pod is its mirror pod, namespace/name.
	Pod string `json:"pod,omitempty"`
	// Priority is that of the pod; nil if it is unknown.
	Priority *int32 `json:"priority,omitempty"`
	// GraceSeconds is how long the pod may take to end.
	GraceSeconds int64 `json:"graceSeconds,omitempty"`
	// Maintenance and Reason are for what it was put aside.
	Maintenance string    `json:"maintenance,omitempty"`
	Reason      string    `json:"reason,omitempty"`
	Evacuation  types.UID `json:"evacuation,omitempty"`
	// BootID is the boot in which it was put aside.
	BootID string `json:"bootID,omitempty"`
	// ControlPlane is true if the pod is part of the control plane, and Unanswered if it was
	// put back because no API server answered, which has yet to be told.
	ControlPlane bool `json:"controlPlane,omitempty"`
	Unanswered   bool `json:"unanswered,omitempty"`
	// State is Holding, Held or Restoring, and At is since when.
	State v1alpha1.StaticPodState `json:"state"`
	At    time.Time               `json:"at"`
}

// ParseJournal reads a journal.
//
// Errors: it is none that this version could have written.
func ParseJournal(data []byte) (Journal, error) {
	var j Journal
	if err := json.Unmarshal(data, &j); err != nil {
		return Journal{}, err
	}
	if j.Version != journalVersion {
		return Journal{}, fmt.Errorf("it has version %d, this agent reads version %d", j.Version, journalVersion)
	}
	if len(j.Manifests) > MaxEntries {
		return Journal{}, fmt.Errorf("it has %d entries, at most %d are written", len(j.Manifests), MaxEntries)
	}
	seen := map[string]bool{}
	for i := range j.Manifests {
		if err := j.Manifests[i].check(); err != nil {
			return Journal{}, err
		}
		if seen[j.Manifests[i].File] {
			return Journal{}, fmt.Errorf("it has %q twice", j.Manifests[i].File)
		}
		seen[j.Manifests[i].File] = true
	}
	return j, nil
}

func (e *Entry) check() error {
	switch {
	case !Visible(e.File) || strings.ContainsAny(e.File, "/\x00") || len(e.File) > 255:
		return fmt.Errorf("%.300q is the name of no manifest", e.File)
	case e.Held != HeldName(e.File):
		return fmt.Errorf("%q is not put aside as %.300q", e.File, e.Held)
	case !slices.Contains([]v1alpha1.StaticPodState{v1alpha1.StaticPodHolding, v1alpha1.StaticPodHeld, v1alpha1.StaticPodRestoring}, e.State):
		return fmt.Errorf("%q is in state %.100q", e.File, e.State)
	case e.At.IsZero():
		return errors.New("an entry has no time")
	}
	return nil
}

// Text renders the journal.
func (j Journal) Text() []byte {
	j.Version = journalVersion
	if j.Manifests == nil {
		j.Manifests = []Entry{}
	}
	// Strings, numbers and times always marshal, but for years that no clock shows.
	text, _ := json.Marshal(j)
	return text
}

// pod is the mirror pod of the entry; empty if it is unknown.
func (e *Entry) pod() podKey {
	namespace, name, _ := strings.Cut(e.Pod, "/")
	return podKey{namespace, name}
}

func (e *Entry) grace() time.Duration { return time.Duration(e.GraceSeconds) * time.Second }
