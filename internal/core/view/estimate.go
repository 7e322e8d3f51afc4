package view

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/maintenance/announcement"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

const (
	// fewestPods or fewestNodes must be gone after shortestWatch for an estimate.
	fewestPods, fewestNodes = 3, 2
	shortestWatch           = 5 * time.Second
	longestEstimate         = 7 * 24 * time.Hour
)

// Progress holds the observations of a maintenance while it is watched.
type Progress struct {
	// Since is the start of the observation, no earlier than the stage.
	Since time.Time
	// Gone counts the pods that have left since then.
	Gone  int
	Nodes map[string]int
}

// Estimate predicts when the pods of a maintenance will have left.
type Estimate struct {
	// Known is false if too little was observed, or if nothing is left.
	Known       bool         `json:"known"`
	FinishTime  *metav1.Time `json:"finishTime,omitempty"`
	WithoutPods int          `json:"withoutPods,omitempty"`
	Basis       string       `json:"basis,omitempty"`
	// Text is the whole estimate; empty if nothing has to leave.
	Text string `json:"text,omitempty"`
}

// estimate uses observed pods, or else drained nodes, since the API server has no other history.
func (s *Snapshot) estimate(status *Status) Estimate {
	if status.Stage != v1alpha1.StageDrain || status.PodsLeft == 0 && status.UnlistedCount == 0 {
		return Estimate{}
	}
	e := Estimate{WithoutPods: status.PodsBlocked}
	pods := status.PodsLeft - status.PodsBlocked
	if pods <= 0 && status.UnlistedCount == 0 {
		e.Text = fmt.Sprintf("unknown: %s blocked", phrase.Count(status.PodsBlocked, "pod is", "pods are"))
		return e
	}
	left, ok := time.Duration(0), false
	if status.UnlistedCount == 0 {
		left, e.Basis, ok = byPods(s.Seen[status.Name], s.Now, pods)
		if !ok {
			left, e.Basis, ok = s.byNodes(status)
		}
	}
	if !ok {
		e.Text = "unknown yet"
		return e
	}
	left = min(left, longestEstimate)
	e.Known, e.FinishTime = true, &metav1.Time{Time: s.Now.Add(left)}
	e.Text = "about " + Rough(left)
	if e.WithoutPods > 0 {
		e.Text += fmt.Sprintf(", without %s", phrase.Count(e.WithoutPods, "blocked pod", "blocked pods"))
	}
	return e
}

func byPods(seen Progress, now time.Time, pods int) (left time.Duration, basis string, ok bool) {
	took := now.Sub(seen.Since)
	if seen.Gone < fewestPods || seen.Since.IsZero() || took < shortestWatch {
		return 0, "", false
	}
	return share(took, pods, seen.Gone), fmt.Sprintf("%s gone in %s", phrase.Count(seen.Gone, "pod has", "pods have"), Rough(took)), true
}

func (s *Snapshot) byNodes(status *Status) (left time.Duration, basis string, ok bool) {
	if status.StageTime == nil {
		return 0, "", false
	}
	began, drained, waiting := status.StageTime.Time, 0, 0
	for i := range status.Nodes {
		node := &status.Nodes[i]
		switch {
		case node.State.IsDrained():
			if at := announcement.Since(s.Nodes[node.Name], v1alpha1.NodeDrained); !at.Before(began) {
				drained++
			}
		case node.PodsLeft > node.PodsBlocked:
			waiting++
		}
	}
	took := s.Now.Sub(began)
	if drained < fewestNodes || took < shortestWatch {
		return 0, "", false
	}
	return share(took, waiting, drained), fmt.Sprintf("%s drained in %s", phrase.Count(drained, "node was", "nodes were"), Rough(took)), true
}

func share(took time.Duration, waiting, done int) time.Duration {
	seconds := took.Seconds() * float64(waiting) / float64(done)
	return time.Duration(min(seconds, longestEstimate.Seconds())) * time.Second
}

// Rough formats a duration in its largest units.
func Rough(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(1, int(d.Seconds())))
	case d < 90*time.Minute:
		return fmt.Sprintf("%d min", int((d+time.Minute-1)/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int((d+time.Hour-1)/time.Hour))
	}
	return fmt.Sprintf("%d days", int((d+24*time.Hour-1)/(24*time.Hour)))
}
