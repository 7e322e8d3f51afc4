package shutdown

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/foreigndrain"
	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// Decide returns what the agent does about the shutdown of its node.
func Decide(s Snapshot) Decision {
	mode, verdict := s.mode()
	d := Decision{Manageable: verdict}
	d.Entry, d.Events = s.next(mode)
	if d.Entry != nil && d.Entry.Phase == v1alpha1.ShutdownPreparing && d.Entry.Mode == v1alpha1.ShutdownModeDrain {
		why, after := s.release(d.Entry)
		d.After = after
		if why != "" {
			released := *d.Entry
			released.Phase = v1alpha1.ShutdownReleased
			d.Entry = &released
			d.Events = s.tell(d.Events, event.NodeShutdownReleased, why)
		}
	}
	// While systemd-logind is not responding the inhibitor is kept: a shutdown that begins now
	// waits for it.
	d.Inhibit = mode == v1alpha1.ShutdownModeDrain || s.Held && s.Logind.Fault != "" && s.Wish == v1alpha1.ShutdownModeDrain
	if e := d.Entry; e != nil && e.underWay() {
		d.Inhibit = e.Phase == v1alpha1.ShutdownPreparing && e.Mode == v1alpha1.ShutdownModeDrain
	}
	d.Status = s.status(d.Entry, mode)
	d.NodeCondition = s.nodeCondition(d.Entry)
	return d
}

func (e *Entry) underWay() bool {
	return e.Phase == v1alpha1.ShutdownPreparing || e.Phase == v1alpha1.ShutdownReleased
}

func (s Snapshot) mode() (v1alpha1.NodeShutdownMode, Verdict) {
	delay := s.Logind.Delay.Round(time.Second)
	no := func(mode v1alpha1.NodeShutdownMode, reason, message string) (v1alpha1.NodeShutdownMode, Verdict) {
		return mode, Verdict{Reason: reason, Message: message}
	}
	switch {
	case s.Wish == v1alpha1.ShutdownModeOff:
		return no(v1alpha1.ShutdownModeOff, v1alpha1.ReasonShutdownOff, "the agent runs with --shutdown=off.")
	case s.Logind.Fault != "":
		return no(v1alpha1.ShutdownModeOff, v1alpha1.ReasonNoLogind, "shutdowns are not reported: "+s.Logind.Fault)
	case s.Logind.Kubelet:
		return no(v1alpha1.ShutdownModeReport, v1alpha1.ReasonKubeletShutdown, fmt.Sprintf(
			"the kubelet's own graceful shutdown (%s) stops all pods at once. To let Ebbtide drain, set its shutdownGracePeriod to 0, or use shutdown -r +15.", delay))
	case s.Wish == v1alpha1.ShutdownModeReport:
		return no(v1alpha1.ShutdownModeReport, v1alpha1.ReasonShutdownReportOnly, "the agent runs with --shutdown=report.")
	case s.Refusal != "":
		return no(v1alpha1.ShutdownModeDrain, v1alpha1.ReasonInhibitorRefused, s.Refusal)
	case s.Logind.DelayFault != "":
		return no(v1alpha1.ShutdownModeDrain, v1alpha1.ReasonShutdownDelayRefused, s.Logind.DelayFault)
	case s.Logind.Delay < leastDelay:
		return no(v1alpha1.ShutdownModeDrain, v1alpha1.ReasonShutdownDelayTooShort, fmt.Sprintf("%s is too short to drain; set --shutdown-delay", delay))
	}
	return v1alpha1.ShutdownModeDrain, Verdict{
		OK: true, Reason: v1alpha1.ReasonShutdownWaits, Message: fmt.Sprintf("a shutdown waits at most %s until the pods have left.", delay),
	}
}

func (s Snapshot) next(mode v1alpha1.NodeShutdownMode) (*Entry, []event.Event) {
	before := s.Entry
	if before != nil && s.BootID != "" && before.BootID != s.BootID {
		before = nil // That boot is over, and so is its shutdown.
	}
	switch {
	case s.Wish == v1alpha1.ShutdownModeOff:
		return nil, nil
	case s.Logind.Fault != "":
		// It is unknown whether the shutdown goes on.
		return before, nil
	case s.Logind.Preparing && before != nil && before.underWay():
		return before, nil
	case s.Logind.Preparing:
		e := &Entry{
			BootID: s.BootID, Phase: v1alpha1.ShutdownPreparing, Mode: mode, Type: s.kind(before),
			Start: s.Now, Deadline: s.Now.Add(s.Logind.Delay),
		}
		return e, s.tell(nil, event.NodeShutdownDetected, e.begun(s.Logind.Delay))
	case before != nil && before.underWay() && s.Fresh:
		// It was cancelled meanwhile, or a soft reboot is over.
		return s.scheduled(nil)
	case before != nil && before.underWay():
		e := *before
		e.Phase = v1alpha1.ShutdownCancelled
		return &e, s.tell(nil, event.NodeShutdownCancelled, "The shutdown was cancelled.")
	}
	return s.scheduled(before)
}

func (s Snapshot) scheduled(before *Entry) (*Entry, []event.Event) {
	was := before != nil && before.Phase == v1alpha1.ShutdownScheduled
	switch {
	case s.Schedule == nil && was:
		e := *before
		e.Phase = v1alpha1.ShutdownCancelled
		return &e, s.tell(nil, event.NodeShutdownCancelled, "The scheduled shutdown was cancelled.")
	case s.Schedule == nil:
		return before, nil
	case was && before.Deadline.Equal(s.Schedule.At) && before.Type == s.Schedule.Type:
		return before, nil
	}
	e := &Entry{
		BootID: s.BootID, Phase: v1alpha1.ShutdownScheduled, Mode: v1alpha1.ShutdownModeDrain, Type: s.Schedule.Type,
		Start: s.Now, Deadline: s.Schedule.At,
	}
	return e, s.tell(nil, event.NodeShutdownDetected,
		fmt.Sprintf("The node will shut down at %s (%s).", s.Schedule.At.UTC().Format(time.RFC3339), e.Type))
}

// kind returns the type that systemd-logind reports, or else the scheduled one.
func (s Snapshot) kind(before *Entry) string {
	kind := TypeOf(s.Logind.Type)
	if kind == "unknown" && before != nil && before.Phase == v1alpha1.ShutdownScheduled {
		return before.Type
	}
	return kind
}

func (e *Entry) begun(delay time.Duration) string {
	if e.Mode == v1alpha1.ShutdownModeDrain {
		return fmt.Sprintf("The node shuts down (%s) and waits at most %s until its pods have left.", e.Type, delay.Round(time.Second))
	}
	return fmt.Sprintf("The node shuts down (%s) and is only cordoned.", e.Type)
}

// release returns why a shutdown may go on, or when to decide again.
func (s Snapshot) release(e *Entry) (why string, after time.Duration) {
	took := s.Now.Sub(e.Start).Round(time.Second)
	last := e.Deadline.Add(-margin)
	silent := e.Start.Add(patience)
	switch {
	case s.says(v1alpha1.NodeDrained), s.heldBesideOthers() && len(s.staying()) == 0:
		return fmt.Sprintf("released after %s; the node is drained", took), 0
	case !s.Now.Before(last):
		return fmt.Sprintf("released after %s, at the end of its delay; %s", took, s.left()), 0
	case !s.Held && s.Refusal != "":
		return fmt.Sprintf("released after %s because it could not be delayed (%s); %s", took, s.Refusal, s.left()), 0
	case s.says(v1alpha1.NodeDrainInProgress), s.heldBesideOthers():
		return "", last.Sub(s.Now)
	case !s.Now.Before(silent):
		return fmt.Sprintf("released after %s without a response of the manager; %s", took, s.left()), 0
	}
	return "", min(last.Sub(s.Now), silent.Sub(s.Now))
}

func (s Snapshot) says(conditionType corev1.NodeConditionType) bool {
	condition := podclass.NodeCondition(s.Node, conditionType)
	return condition != nil && condition.Status == corev1.ConditionTrue && condition.Reason == v1alpha1.ReasonNodeMaintenance
}

// heldBesideOthers reports whether a foreign drain hides the conditions of a maintenance.
func (s Snapshot) heldBesideOthers() bool {
	return s.Node != nil && s.Node.Annotations[v1alpha1.CordonAnnotation] != "" && foreigndrain.Announced(s.Node) != nil
}

const maxNamed = 5

func (s Snapshot) left() string {
	if s.Node == nil {
		return "remaining pods are unknown"
	}
	names := s.staying()
	if len(names) == 0 {
		return "no pods were left"
	}
	return phrase.Count(len(names), "pod was left", "pods were left") + ": " + phrase.Some(names, maxNamed)
}

// staying are the pods that a drain has to move and that are still here.
func (s Snapshot) staying() []string {
	var names []string
	for _, pod := range s.Pods {
		if podclass.Type(pod) != v1alpha1.PodTypeStatic && !podclass.Terminal(pod) && pod.Labels[v1alpha1.DrainLabel] == "" {
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
	}
	return names
}

func (s Snapshot) tell(events []event.Event, of func(*corev1.Node, string) event.Event, message string) []event.Event {
	if s.Node == nil {
		return events
	}
	return append(events, of(s.Node, message))
}

func (s Snapshot) status(e *Entry, mode v1alpha1.NodeShutdownMode) v1alpha1.NodeShutdown {
	status := v1alpha1.NodeShutdown{Phase: v1alpha1.ShutdownNone, Mode: mode, DelaySeconds: int32(s.Logind.Delay / time.Second)}
	if e == nil {
		return status
	}
	status.Phase, status.Type = e.Phase, e.Type
	status.StartTime, status.DeadlineTime = timeOf(e.Start), timeOf(e.Deadline)
	if e.underWay() {
		status.Mode = e.Mode
	}
	return status
}

func timeOf(at time.Time) *metav1.Time {
	rounded := metav1.NewTime(at).Rfc3339Copy()
	return &rounded
}
