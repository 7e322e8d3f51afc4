package maintenance

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainlock"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

// maxDowntime is what the API allows for InPlace.ExpectedDowntimeSeconds.
const maxDowntime = 3600

// staying is a pod that asks to stay on a node that comes back.
type staying struct {
	// endurance is how long it tolerates that its node is down, taint the key of
	// the taint that it tolerates the shortest.
	endurance time.Duration
	taint     string
}

// understandInPlace reads spec.inPlace. A downtime that nobody meant would have
// pods stay that do not last.
func (i *intent) understandInPlace() error {
	inPlace := i.object.Spec.InPlace
	if inPlace == nil {
		return nil
	}
	if seconds := inPlace.ExpectedDowntimeSeconds; seconds < 1 || seconds > maxDowntime {
		return fmt.Errorf("spec.inPlace.expectedDowntimeSeconds: must be from 1 to %d, is %d", maxDowntime, seconds)
	}
	i.inPlace, i.downtime = inPlace, time.Duration(inPlace.ExpectedDowntimeSeconds)*time.Second
	return nil
}

// inPlace is the oldest intent in Drain that leaves pods on the site; nil if none does.
func (s *site) inPlace() *intent {
	for _, one := range s.drains {
		if one.intent.inPlace != nil {
			return one.intent
		}
	}
	return nil
}

// stayingOf returns what a pod that asks to stay is like; nil if it does not ask,
// is on its way out, or is under a budget that the site has given up to lock. Only
// who would be evicted can ask: a pod that is to complete is waited for, and one
// that is skipped is nobody's concern.
func (p *pass) stayingOf(s *site, one *subject) *staying {
	asks, _ := podclass.OnUpgrade(one.pod)
	evicted := one.treatment.Behavior == v1alpha1.DrainBehaviorDrain && !one.unclear()
	switch {
	case !asks, one.pod.DeletionTimestamp != nil, !evicted && one.treatment != &unremovable, p.givenUp(s, one.pod):
		return nil
	}
	endurance, taint := podclass.Endurance(one.pod)
	return &staying{endurance: endurance, taint: taint}
}

// givenUp returns true if the site has given up to lock a budget of the pod.
func (p *pass) givenUp(s *site, pod *corev1.Pod) bool {
	if !s.recordInForce() || len(s.record.Status.GivenUp) == 0 {
		return false
	}
	for _, b := range p.applying(pod) {
		if drainlock.GivenUp(s.record, v1alpha1.BudgetReference{Namespace: b.Namespace, Name: b.Name}) {
			return true
		}
	}
	return false
}

// keeps returns true if the intent leaves the pod on its node.
func (i *intent) keeps(pod *subject) bool {
	return pod.staying != nil && i.inPlace != nil && pod.staying.endurance >= i.downtime
}

// wanted returns true if some intent waits for the pod.
func (s *site) wanted(pod *subject) bool {
	return slices.ContainsFunc(s.drains, func(one *share) bool { return pod.countedBy(one.intent) })
}

// kept returns true if some intent would leave the pod on the site.
func (s *site) kept(pod *subject) bool {
	return pod.staying != nil && slices.ContainsFunc(s.drains, func(one *share) bool { return one.intent.keeps(pod) })
}

// tellStaying says of a pod that is asked to leave why it may not stay.
func (s *site) tellStaying(pod *subject) (e event.Event, tell bool) {
	if s.inPlace() == nil {
		return event.Event{}, false
	}
	if _, problems := podclass.OnUpgrade(pod.pod); len(problems) > 0 {
		return event.OnUpgradeLabelIgnored(pod.pod, problems[0].Message), true
	}
	if pod.staying == nil {
		return event.Event{}, false
	}
	var longest *intent
	for _, one := range s.drains {
		if i := one.intent; i.inPlace != nil && !i.keeps(pod) && (longest == nil || i.downtime > longest.downtime) {
			longest = i
		}
	}
	if longest == nil {
		return event.Event{}, false
	}
	return event.TolerationTooShort(pod.pod, event.ShortToleration{
		Taint: pod.staying.taint, Endured: pod.staying.endurance, Needed: longest.downtime, Maintenance: longest.name(),
	}), true
}
