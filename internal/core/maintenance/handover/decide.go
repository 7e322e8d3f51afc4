// Package handover decides when a drained node is handed over to the administrator or tool that
// works on it, and when it has come back. The record of a node is written to its maintenance
// before the node gets its mark, so that only what happens after the mark counts. All times are by
// our own clock.
package handover

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/skew"
)

const (
	usualReadySeconds = 30  // the default of the API
	maxReported       = 128 // bytes of a node's report in a message
)

// When is spec.completeWhen of a maintenance with one node.
type When struct {
	target      *Target
	maintenance types.UID
	node        string
	boots       int32 // 0 if the node need not boot
	job         Job
	ready       time.Duration
	// record is nil if the node was not handed over yet.
	record *Record
}

// Read reads spec.completeWhen, the Job of a rollout, and the record; nil if there is nothing to
// wait for. Node is the only node that the maintenance can select; empty if it may select several.
// The error names the field at fault.
func Read(m *v1alpha1.NodeMaintenance, node string) (*When, error) {
	spec, job := m.Spec.CompleteWhen, jobOf(m)
	switch {
	case spec == nil && job.CronJob == "":
		return nil, nil
	case node == "":
		return nil, errors.New("spec.completeWhen: works on one node: select it by matchFields metadata.name")
	}
	target, err := ReadTarget("spec.completeWhen", spec)
	if err != nil {
		return nil, err
	}
	if spec == nil { // The Job is all that there is to wait for.
		spec = &v1alpha1.CompleteWhen{}
		target = &Target{spec: spec}
	}
	w := &When{target: target, maintenance: m.UID, node: node, job: job, record: readRecord(m, node), ready: usualReadySeconds * time.Second}
	if spec.ReadySeconds != nil {
		w.ready = time.Duration(*spec.ReadySeconds) * time.Second
	}
	if spec.NewBoot {
		w.boots = 1
		if inPlace := m.Spec.InPlace; inPlace != nil && inPlace.ExpectedRebootCount != nil {
			w.boots = max(1, *inPlace.ExpectedRebootCount)
		}
	}
	return w, nil
}

// Facts holds what a decision about a node depends on.
type Facts struct {
	Now         time.Time
	ClockSkewed bool
	Node        *corev1.Node
	Ready       *corev1.NodeCondition // its condition
	// Drained is true if nothing is left on the node and nothing new comes.
	Drained bool
	Marked  bool
}

// Decision holds how far a node is handed over.
type Decision struct {
	// Record has to be in the API; nil if there is none.
	Record *Record
	// InForce is true if the record preceded the mark, Marked if the node must have the mark.
	InForce, Marked bool
	Verdict         Verdict
}

// Verdict is the condition v1alpha1.ConditionReturned.
type Verdict struct {
	Reason, Message string
	Returned        bool
	// WakeTime is the time at which time alone changes the verdict; zero is never.
	WakeTime time.Time
}

// Decide decides about the node of a maintenance in Drain.
func (w *When) Decide(f Facts) Decision {
	record, now := w.record, stateOf(f.Node)
	// A node that was created again under its name has no mark, and is what the maintenance waits
	// for.
	pending := record != nil && !f.Marked && record.NodeUID == now.NodeUID
	before := Verdict{Reason: v1alpha1.ReasonWaitingForDrain, Message: fmt.Sprintf(
		"%s is handed over when it is drained; what it does before does not count.", w.node)}
	switch changed := record == nil || pending && record.nodeState != now; {
	case changed && !f.Drained:
		return Decision{Verdict: before}
	case changed:
		return Decision{Record: begin(w.maintenance, &f), Marked: true, Verdict: before}
	case pending:
		return Decision{Record: record, Marked: f.Drained, Verdict: before}
	}
	next, settled := update(record, &f)
	d := Decision{Record: next, InForce: true, Marked: f.Marked || f.Drained, Verdict: w.judge(&f, next, settled)}
	if next == record && !settled && !f.ClockSkewed {
		d.Verdict.WakeTime = record.Seen.Time.Add(leastChange)
	}
	return d
}

// Absent decides about a node that does not exist. Its record stays.
func (w *When) Absent() Decision {
	d := Decision{Record: w.record, Verdict: Verdict{
		Reason: v1alpha1.ReasonWaitingForDrain, Message: fmt.Sprintf("%s does not exist, so it is not handed over.", w.node),
	}}
	if w.record != nil {
		d.Verdict = Verdict{Reason: v1alpha1.ReasonNodesGone, Message: fmt.Sprintf(
			"%s does not exist; it was handed over at %s. If it does not come back under this name: set stage Complete.",
			w.node, w.record.Time.UTC().Format(time.RFC3339))}
	}
	return d
}

// Condition returns the verdict as a condition.
func (v Verdict) Condition() metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionReturned, Status: metav1.ConditionFalse, Reason: v.Reason, Message: v.Message}
	if v.Returned {
		condition.Status = metav1.ConditionTrue
	}
	return condition
}

// missing returns which condition besides Ready the node does not meet; reason is empty if none.
func (w *When) missing(node *corev1.Node, record *Record) (reason, message string) {
	if w.job.Awaited() {
		return v1alpha1.ReasonWaitingForJob, fmt.Sprintf("the Job of its rollout has not succeeded on %s", node.Name)
	}
	if booted := record.Seen.BootCount; booted < w.boots {
		message = fmt.Sprintf("%s has not booted", node.Name)
		if w.boots > 1 {
			message = fmt.Sprintf("%s has booted %d of %d times", node.Name, booted, w.boots)
		}
		return v1alpha1.ReasonWaitingForBoot, message + ", a new boot is wanted"
	}
	return w.target.mismatch(node)
}

// judge decides whether the node has come back. Settled is true if the start of its state is known.
func (w *When) judge(f *Facts, record *Record, settled bool) (v Verdict) {
	node := f.Node
	defer func() {
		v.Message += fmt.Sprintf("; it was handed over at %s.", record.Time.UTC().Format(time.RFC3339))
	}()
	if v.Reason, v.Message = w.missing(node, record); v.Reason != "" {
		return v
	}
	v.Reason = v1alpha1.ReasonNotReady
	ready := f.Ready
	if ready == nil || ready.Status != corev1.ConditionTrue {
		v.Message = fmt.Sprintf("%s shows what is wanted and is not Ready", node.Name)
		if ready != nil && ready.Reason != "" {
			v.Message += fmt.Sprintf(" (%s)", excerpt.Line(ready.Reason, maxReported))
		}
		return v
	}
	if f.ClockSkewed {
		v.Reason = v1alpha1.ReasonClockSkewed
		v.Message = fmt.Sprintf("%s meets the conditions and is Ready, but it is unknown whether it was for %s: %s", node.Name, w.ready, skew.Message)
		return v
	}
	if !settled {
		v.Message = fmt.Sprintf("%s shows what is wanted and is Ready since a moment ago, %s without a break are wanted", node.Name, w.ready)
		return v
	}
	since := record.Seen.Time.Time
	if until := since.Add(w.ready); f.Now.Before(until) {
		v.WakeTime = until
		v.Message = fmt.Sprintf("%s shows what is wanted and is Ready since %s, %s without a break are wanted",
			node.Name, since.UTC().Format(time.RFC3339), w.ready)
		return v
	}
	v.Reason, v.Returned = v1alpha1.ReasonReturned, true
	v.Message = fmt.Sprintf("%s shows what is wanted and was Ready for %s without a break", node.Name, w.ready)
	return v
}

// Claim is a maintenance of a node, which needs the mark if Marked is true.
type Claim struct {
	Name   string
	Marked bool
}

// Names returns the sorted names of the maintenances that have the node from now on: those claims
// that have the mark, those in keep that have it, then other claims, oldest first, as long as there
// is room.
func Names(node *corev1.Node, claims []Claim, keep []string) []string {
	var names []string
	add := func(has bool) {
		for _, one := range claims {
			if one.Marked && MarkedFor(node, one.Name) == has && len(names) < MaxNames {
				names = append(names, one.Name)
			}
		}
	}
	add(true)
	for _, name := range keep {
		if MarkedFor(node, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	add(false)
	slices.Sort(names)
	return names
}

// MarkedFor returns true if the node is marked as handed over to the maintenance of this name.
func MarkedFor(node *corev1.Node, name string) bool {
	return slices.Contains(strings.Split(node.Annotations[v1alpha1.HandedOverByAnnotation], ","), name)
}
