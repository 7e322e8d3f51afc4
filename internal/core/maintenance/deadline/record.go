package deadline

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

const (
	maxRecorded = 10 // names of nodes in a record
	maxNamed    = 3  // in a message
)

// Record is the value of v1alpha1.GivenBackAnnotation, which is written together with
// spec.completedNodes or spec.stage.
type Record struct {
	// MaintenanceUID detects a record that was copied from another maintenance.
	MaintenanceUID types.UID `json:"maintenanceUID"`
	// Time is the last deadline that has given nodes back.
	Time  metav1.Time `json:"time"`
	Count int         `json:"count"`
	// Nodes names the first ones.
	Nodes []string `json:"nodes"`
}

// ReadRecord reads the record of a maintenance; nil if there is none, or if it is invalid or
// another's.
func ReadRecord(m *v1alpha1.NodeMaintenance) *Record {
	text, found := m.Annotations[v1alpha1.GivenBackAnnotation]
	if !found {
		return nil
	}
	r := &Record{}
	if err := json.Unmarshal([]byte(text), r); err != nil || r.MaintenanceUID != m.UID || r.Count < 1 || len(r.Nodes) == 0 {
		return nil
	}
	return r
}

// GiveBack returns the record with more nodes that the deadline gives back.
func (d *Deadline) GiveBack(known *Record, maintenance types.UID, nodes []string) *Record {
	r := &Record{MaintenanceUID: maintenance, Time: metav1.NewTime(d.Time), Count: len(nodes)}
	if known != nil {
		r.Count, r.Nodes = r.Count+known.Count, slices.Clone(known.Nodes)
	}
	r.Nodes = append(r.Nodes, nodes[:min(len(nodes), max(0, maxRecorded-len(r.Nodes)))]...)
	return r
}

// Text returns the record as it is written.
func (r *Record) Text() string {
	text, _ := json.Marshal(r)
	return string(text)
}

// Message returns which nodes were given back.
func (r *Record) Message() string {
	were := "were"
	if r.Count == 1 {
		were = "was"
	}
	named := min(len(r.Nodes), maxNamed, r.Count)
	text := phrase.Some(r.Nodes[:named], named)
	if more := r.Count - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s %s not drained by the deadline %s, and %s given back: %s.",
		phrase.Count(r.Count, "node"), were, r.Time.UTC().Format(time.RFC3339), were, text)
}
