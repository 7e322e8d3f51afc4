package maintenance

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/skew"
)

const (
	// usualReadySeconds is what the API has where nobody says for how long a node has to be
	// Ready.
	usualReadySeconds = 30
	// maxReported is how many bytes of what a node says of itself a message shows.
	maxReported = 128
)

// completeWhen is by what a maintenance knows that its node has come back.
type completeWhen struct {
	*v1alpha1.CompleteWhen

	// node is the name of its only node.
	node string
	// boots is how often that has to boot; 0 if it need not.
	boots int32
	// kubelet is nil if the version of the kubelet is no range.
	kubelet versionRange
	ready   time.Duration
	// record is what was written down about the node when it was handed over; nil if it
	// was not yet.
	record *handOver
}

// understandCompleteWhen reads spec.completeWhen and the record that belongs to it.
func (m *maintenance) understandCompleteWhen() error {
	spec := m.object.Spec.CompleteWhen
	if spec == nil {
		return nil
	}
	name, one := onlyNode(m.object.Spec.NodeSelector)
	if !one {
		return errors.New("spec.completeWhen: works on one node: select it by matchFields metadata.name")
	}
	wanted := &completeWhen{
		CompleteWhen: spec, node: name, record: readHandOver(m.object, name), ready: usualReadySeconds * time.Second,
	}
	if spec.ReadySeconds != nil {
		wanted.ready = time.Duration(*spec.ReadySeconds) * time.Second
	}
	if spec.NewBoot {
		wanted.boots = 1
		if inPlace := m.object.Spec.InPlace; inPlace != nil && inPlace.ExpectedRebootCount != nil {
			wanted.boots = max(1, *inPlace.ExpectedRebootCount)
		}
	}
	if isRange(spec.KubeletVersion) {
		var err error
		if wanted.kubelet, err = parseRange(spec.KubeletVersion); err != nil {
			return fmt.Errorf("spec.completeWhen.kubeletVersion: %w", err)
		}
	}
	if wanted.boots == 0 && cmp.Or(spec.KubeletVersion, spec.KernelVersion, spec.OSImage, spec.ContainerRuntimeVersion) == "" {
		return errors.New("spec.completeWhen: says nothing about the node: give newBoot: true or a version")
	}
	m.completeWhen = wanted
	return nil
}

// onlyNode is the name by which a selector selects one node and no other.
func onlyNode(selector *corev1.NodeSelector) (name string, one bool) {
	if len(selector.NodeSelectorTerms) != 1 {
		return "", false
	}
	term := selector.NodeSelectorTerms[0]
	if len(term.MatchExpressions) > 0 || len(term.MatchFields) != 1 {
		return "", false
	}
	field := term.MatchFields[0]
	if field.Key != metav1.ObjectNameField || field.Operator != corev1.NodeSelectorOpIn || len(field.Values) != 1 {
		return "", false
	}
	return field.Values[0], true
}

// missing is why a node has not come back; reason is empty if it shows all that is
// wanted. That it is Ready is another matter.
func (w *completeWhen) missing(node *corev1.Node, record *handOver) (reason, message string) {
	if booted := record.Seen.BootCount; booted < w.boots {
		message = fmt.Sprintf("%s has not booted", node.Name)
		if w.boots > 1 {
			message = fmt.Sprintf("%s has booted %d of %d times", node.Name, booted, w.boots)
		}
		return v1alpha1.ReasonWaitingForBoot, message + ", a new boot is wanted"
	}
	info := &node.Status.NodeInfo
	kubelet := info.KubeletVersion == w.KubeletVersion
	if w.kubelet != nil {
		kubelet = w.kubelet.holds(info.KubeletVersion)
	}
	for _, one := range []struct {
		met                    bool
		what, reported, wanted string
	}{
		{kubelet, "kubelet", info.KubeletVersion, w.KubeletVersion},
		{info.KernelVersion == w.KernelVersion, "kernel", info.KernelVersion, w.KernelVersion},
		{info.OSImage == w.OSImage, "operating system", info.OSImage, w.OSImage},
		{info.ContainerRuntimeVersion == w.ContainerRuntimeVersion, "container runtime", info.ContainerRuntimeVersion, w.ContainerRuntimeVersion},
	} {
		if one.wanted != "" && !one.met {
			reported := cmp.Or(excerpt.Line(one.reported, maxReported), "of an unknown version")
			return v1alpha1.ReasonWaitingForVersion, fmt.Sprintf("%s runs %s %s, %s is wanted", node.Name, one.what, reported, one.wanted)
		}
	}
	return "", ""
}

// verdict is whether a node has come back.
type verdict struct {
	reason, message string
	// returned is true if it has.
	returned bool
	// wakeTime is when time alone makes it so; zero is never.
	wakeTime time.Time
}

// judge says whether a node that was handed over has come back. Settled is true if the
// record says since when it is what it is.
func (t *targeted) judge(w *completeWhen, node *corev1.Node, record *handOver, settled bool) (v verdict) {
	defer func() {
		v.message += fmt.Sprintf("; it was handed over at %s.", record.Time.UTC().Format(time.RFC3339))
	}()
	if v.reason, v.message = w.missing(node, record); v.reason != "" {
		return v
	}
	v.reason = v1alpha1.ReasonNotReady
	ready := findNodeCondition(node, corev1.NodeReady)
	if ready == nil || ready.Status != corev1.ConditionTrue {
		v.message = fmt.Sprintf("%s shows what is wanted and is not Ready", node.Name)
		if ready != nil && ready.Reason != "" {
			v.message += fmt.Sprintf(" (%s)", excerpt.Line(ready.Reason, maxReported))
		}
		return v
	}
	if t.ClockSkewed {
		v.reason = v1alpha1.ReasonClockSkewed
		v.message = fmt.Sprintf("%s shows what is wanted and is Ready, and nobody knows whether it was for %s: %s", node.Name, w.ready, skew.Message)
		return v
	}
	if !settled {
		v.message = fmt.Sprintf("%s shows what is wanted and is Ready since a moment ago, %s without a break are wanted", node.Name, w.ready)
		return v
	}
	since := record.Seen.Time.Time
	if until := since.Add(w.ready); t.Now.Before(until) {
		v.wakeTime = until
		v.message = fmt.Sprintf("%s shows what is wanted and is Ready since %s, %s without a break are wanted",
			node.Name, since.UTC().Format(time.RFC3339), w.ready)
		return v
	}
	v.reason, v.returned = v1alpha1.ReasonReturned, true
	v.message = fmt.Sprintf("%s shows what is wanted and was Ready for %s without a break", node.Name, w.ready)
	return v
}

// returned is what the maintenance says about the return of its node.
func (c *conclusion) returned(m *maintenance) verdict {
	w := m.completeWhen
	if len(m.selections) == 0 && w.record != nil {
		return verdict{reason: v1alpha1.ReasonNodesGone, message: fmt.Sprintf(
			"%s does not exist; it was handed over at %s. If it does not come back under this name: set stage Complete.",
			w.node, w.record.Time.UTC().Format(time.RFC3339))}
	}
	if len(m.selections) == 0 {
		return verdict{reason: v1alpha1.ReasonWaitingForDrain, message: fmt.Sprintf("%s does not exist, so it is not handed over.", w.node)}
	}
	one := m.selections[0]
	h := c.nodes[one.node.index].handings[one.place]
	if !h.inForce {
		return verdict{reason: v1alpha1.ReasonWaitingForDrain, message: fmt.Sprintf(
			"%s is handed over when it is drained; what it does before does not count.", w.node)}
	}
	return h.verdict
}

// returnedCondition says whether the node of a maintenance in Drain has come back; nil if
// that does not matter.
func (c *conclusion) returnedCondition(m *maintenance) *metav1.Condition {
	if m.completeWhen == nil {
		return nil
	}
	v := c.returned(m)
	condition := metav1.Condition{Type: v1alpha1.ConditionReturned, Status: metav1.ConditionFalse, Reason: v.reason, Message: v.message}
	if v.returned {
		condition.Status = metav1.ConditionTrue
	}
	return &condition
}

// completeByItself writes down that the node is handed over and what has become of it,
// and completes the maintenance when it is back. What is still to be written down is not
// acted on.
func (c *conclusion) completeByItself(m *maintenance, d *MaintenanceDecision) {
	d.HandOver = c.recordHandOver(m)
	if m.stage != v1alpha1.StageDrain || m.completeWhen == nil || d.HandOver != nil {
		return
	}
	if v := c.returned(m); v.returned {
		d.Complete, d.Returned, d.Record = true, true, true
		d.CompleteEvents = []event.Event{event.CompletedByItself(m.object, v.message)}
	}
}
