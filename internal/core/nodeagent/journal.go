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
	// MaxEntries limits the entries of a journal.
	MaxEntries = 1024
)

// Journal explains the files that are put aside. If it is lost, only explanations are lost.
type Journal struct {
	Version int    `json:"version"`
	BootID  string `json:"bootID,omitempty"`
	// Manifests are sorted by file.
	Manifests []Entry `json:"manifests"`
	// Silence is the time without a response of an API server, while something depends on it.
	Silence *Silence `json:"silence,omitempty"`
}

// Entry is a manifest that is or was just put aside.
type Entry struct {
	// File is the original name, Held the current one.
	File string `json:"file"`
	Held string `json:"held"`
	// SHA256 of the content when it was put aside.
	SHA256 string `json:"sha256,omitempty"`
	// Pod is namespace/name of its mirror pod.
	Pod          string `json:"pod,omitempty"`
	Priority     *int32 `json:"priority,omitempty"`
	GraceSeconds int64  `json:"graceSeconds,omitempty"`
	// Maintenance and Reason explain why it was put aside.
	Maintenance string    `json:"maintenance,omitempty"`
	Reason      string    `json:"reason,omitempty"`
	Evacuation  types.UID `json:"evacuation,omitempty"`
	BootID      string    `json:"bootID,omitempty"`
	// Unanswered is true if it was restored without an API server, until that is reported.
	ControlPlane bool `json:"controlPlane,omitempty"`
	Unanswered   bool `json:"unanswered,omitempty"`
	// State is Holding, Held or Restoring since At.
	State v1alpha1.StaticPodState `json:"state"`
	At    time.Time               `json:"at"`
}

// ParseJournal reads a journal. It fails if this version could not have written it.
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

// Text returns the journal as JSON.
func (j Journal) Text() []byte {
	j.Version = journalVersion
	if j.Manifests == nil {
		j.Manifests = []Entry{}
	}
	// Strings, numbers and times always marshal, except for years that no clock shows.
	text, _ := json.Marshal(j)
	return text
}

func (e *Entry) pod() podKey {
	namespace, name, _ := strings.Cut(e.Pod, "/")
	return podKey{namespace, name}
}

func (e *Entry) grace() time.Duration { return time.Duration(e.GraceSeconds) * time.Second }
