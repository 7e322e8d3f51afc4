package view

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

const (
	// fewestPods and fewestNodes have to have gone before anything is concluded, within
	// no less than shortestWatch.
	fewestPods, fewestNodes = 3, 2
	shortestWatch           = 5 * time.Second
	// longestEstimate is what nobody wants to know more exactly.
	longestEstimate = 7 * 24 * time.Hour
)

// Progress is what was seen of a maintenance while somebody watched it.
type Progress struct {
	// Since is when it began to be watched; no more than a stage ago.
	Since time.Time
	// Gone is how many of its pods have left since then.
	Gone int
	// Nodes is by node how many pods have left it while somebody watched.
	Nodes map[string]int
}

// Estimate is when the pods of a maintenance will have left, if it goes on as it was seen
// to go.
type Estimate struct {
	// Known is false if too little was seen, or if there is nothing to wait for.
	Known bool `json:"known"`
	// FinishTime is when, as far as it is known.
	FinishTime *metav1.Time `json:"finishTime,omitempty"`
	// WithoutPods are held up, and so not part of it.
	WithoutPods int `json:"withoutPods,omitempty"`
	// Basis is what was seen.
	Basis string `json:"basis,omitempty"`
	// Text is all of it in words; empty if nothing has to leave.
	Text string `json:"text,omitempty"`
}

// estimate goes by pods if somebody watches, and else by nodes: that a node is drained,
// and since when, is all of the past that an API server keeps.
func (s *Snapshot) estimate(status *Status) Estimate {
	if status.Stage != v1alpha1.StageDrain || status.PodsLeft == 0 && status.UnlistedCount == 0 {
		return Estimate{}
	}
	e := Estimate{WithoutPods: status.PodsBlocked}
	pods := status.PodsLeft - status.PodsBlocked
	if pods <= 0 && status.UnlistedCount == 0 {
		e.Text = fmt.Sprintf("unknown: %s held up", phrase.Count(status.PodsBlocked, "pod is", "pods are"))
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

// byPods is how long so many pods take if they go like those that were seen to go.
func byPods(seen Progress, now time.Time, pods int) (left time.Duration, basis string, ok bool) {
	took := now.Sub(seen.Since)
	if seen.Gone < fewestPods || seen.Since.IsZero() || took < shortestWatch {
		return 0, "", false
	}
	return share(took, pods, seen.Gone), fmt.Sprintf("%s gone in %s", phrase.Count(seen.Gone, "pod has", "pods have"), Rough(took)), true
}

// byNodes is how long the nodes take that are not held up.
func (s *Snapshot) byNodes(status *Status) (left time.Duration, basis string, ok bool) {
	if status.StageTime == nil {
		return 0, "", false
	}
	began, drained, waiting := status.StageTime.Time, 0, 0
	for i := range status.Nodes {
		node := &status.Nodes[i]
		switch {
		case node.State.IsDrained():
			if at := drainedAt(s.Nodes[node.Name]); !at.Before(began) {
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

// share is how long so many take if others have taken so long.
func share(took time.Duration, waiting, done int) time.Duration {
	seconds := took.Seconds() * float64(waiting) / float64(done)
	return time.Duration(min(seconds, longestEstimate.Seconds())) * time.Second
}

// drainedAt is since when a node bears our condition that it is drained; zero if it does
// not.
func drainedAt(node *corev1.Node) time.Time {
	if node == nil {
		return time.Time{}
	}
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if c.Type == v1alpha1.NodeDrained && c.Status == corev1.ConditionTrue && c.Reason == v1alpha1.ReasonNodeMaintenance {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// Rough is a duration as people say it: nobody knows seconds of an hour.
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
