package demo

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// rolloutStory is the story of a rollout, until it is complete. Each step of a node is said once.
type rolloutStory struct {
	say say
	// work is done on each node that is handed over.
	work func(node string) error

	status        v1alpha1.NodeRolloutStatus
	zones         map[string]string
	started, done map[string]bool
	worked        map[string]bool
	failed        string
	most          int // nodes under maintenance at the same time
	budget        floor
}

func newRolloutStory(say say, work func(string) error) *rolloutStory {
	return &rolloutStory{say: say, work: work, zones: map[string]string{}, started: map[string]bool{}, done: map[string]bool{}, worked: map[string]bool{}}
}

func (s *rolloutStory) hasFailed() bool { return s.failed != "" }

func (s *rolloutStory) isComplete() bool {
	return meta.IsStatusConditionTrue(s.status.Conditions, v1alpha1.ConditionRolloutComplete)
}

// see adds one change to the story.
func (s *rolloutStory) see(at time.Duration, change watch.Event) error {
	switch object := change.Object.(type) {
	case *v1alpha1.NodeRollout:
		s.seeRollout(at, &object.Status)
	case *corev1.Node:
		s.zones[object.Name] = object.Labels[corev1.LabelTopologyZone]
		if object.Labels[v1alpha1.HandedOverLabel] == "" || s.worked[object.Name] {
			return nil
		}
		s.worked[object.Name] = true
		return s.work(object.Name)
	case *policyv1.PodDisruptionBudget:
		if object.Name == "web" {
			s.budget.see(object)
		}
	default:
		return fmt.Errorf("a watch ended early: %v", change)
	}
	return nil
}

func (s *rolloutStory) seeRollout(at time.Duration, status *v1alpha1.NodeRolloutStatus) {
	before := s.status
	s.status = *status
	s.most = max(s.most, len(status.Working))
	named := func(nodes []v1alpha1.RolloutNode, name string) bool {
		return slices.ContainsFunc(nodes, func(n v1alpha1.RolloutNode) bool { return n.Name == name })
	}
	var done, started []string
	for _, node := range before.Working {
		if !named(status.Working, node.Name) && !named(status.Failed, node.Name) {
			s.done[node.Name] = true
			done = append(done, node.Name)
		}
	}
	if len(done) > 0 {
		s.say(at, "done", fmt.Sprintf("%s: %d of %d", phrase.And(done), len(s.done), status.NodeCount))
	}
	for _, node := range status.Failed {
		if s.failed == "" {
			s.failed = node.Name
			s.say(at, "failed", node.Name+": "+node.Reason)
		}
	}
	for _, node := range status.Working {
		if attempt := fmt.Sprint(node.Name, node.AttemptCount); !s.started[attempt] {
			s.started[attempt] = true
			started = append(started, node.Name+" in "+s.zones[node.Name])
		}
	}
	if len(started) > 0 {
		s.say(at, "started", phrase.And(started))
	}
	if s.isComplete() {
		s.say(at, "complete", status.Summary)
	}
}

// lastStatus describes the progress for an error.
func (s *rolloutStory) lastStatus() string {
	return cmp.Or(s.status.Summary, "the rollout has no status")
}

func (s *rolloutStory) printSummary(out io.Writer, took time.Duration) {
	fmt.Fprintf(out, "\n%d nodes have the new kernel after %.0fs, at most %d at the same time.\n", s.status.DoneCount, took.Seconds(), s.most)
	s.budget.print(out)
}
