package rollout

import (
	"cmp"
	"slices"
	"time"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const (
	// answerLife is the time for which an answer counts.
	answerLife = 30 * time.Second
	// maxChecks bounds the nodes that a decision asks about for a rollout.
	maxChecks = 8
)

// Question asks for a fact that a snapshot of Kubernetes objects does not hold. It is a gate, or a
// requirement of a node. Equal questions have one answer.
type Question struct {
	// Query belongs to a Prometheus gate.
	Query string
	// Object is an object gate.
	Object v1alpha1.ObjectGate
	// Requirement concerns Node.
	Requirement v1alpha1.RolloutRequirement
	Node        string
	// Leaving are the names of the nodes under maintenance, whose pods need room as well, with commas.
	Leaving string
}

// Verdict is the answer to a question.
type Verdict int

// Unknown is never Yes.
const (
	Unknown Verdict = iota
	No
	Yes
)

// Answer is the answer to a Question.
type Answer struct {
	// Time is the time when it was asked.
	Time    time.Time
	Verdict Verdict
	// Text says why the answer is unknown. It is the same while the reason is.
	Text string
}

// answer returns the answer to a question, and whether it still counts. If not, it is asked again.
func (r *rollout) answer(q Question) (a Answer, counts bool) {
	a, known := r.Answers[q]
	until := a.Time.Add(answerLife)
	if counts = known && r.Now.Before(until) && !a.Time.After(r.Now); !counts {
		r.questions = append(r.questions, q)
		return a, false
	}
	if a.Verdict != Yes {
		r.wake(until)
	}
	return a, true
}

// judgeAnswer returns why an answer does not let a node start. An answer that no longer counts is shown
// until there is another one.
func (r *rollout) judgeAnswer(q Question, what string, closed refusal) refusal {
	a, counts := r.answer(q)
	switch {
	case a.Verdict == No:
		return closed
	case a.Verdict == Yes && counts:
		return refusal{}
	case a.Text != "":
		return refusal{v1alpha1.RolloutWaitsForAnswer, what + " is unknown: " + a.Text}
	default:
		return refusal{v1alpha1.RolloutWaitsForAnswer, what + " is being checked."}
	}
}

// asked returns what the rollout asks: its gates, and the nodes that were asked about longest ago.
func (r *rollout) asked() []Question {
	slices.SortStableFunc(r.questions, func(a, b Question) int {
		return cmp.Or(compareBool(a.Requirement != "", b.Requirement != ""), r.Answers[a].Time.Compare(r.Answers[b].Time))
	})
	nodes := slices.IndexFunc(r.questions, func(q Question) bool { return q.Requirement != "" })
	if nodes < 0 {
		return r.questions
	}
	return r.questions[:min(len(r.questions), nodes+maxChecks)]
}

// ask adds the questions of all rollouts to a decision, those that were asked longest ago first.
func (d *Decision) ask(s *Snapshot, all []*rollout) {
	known := map[Question]bool{}
	for _, r := range all {
		for _, q := range r.asked() {
			if !known[q] {
				known[q] = true
				d.Questions = append(d.Questions, q)
			}
		}
	}
	slices.SortStableFunc(d.Questions, func(a, b Question) int { return s.Answers[a].Time.Compare(s.Answers[b].Time) })
}
