package maintenance

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
)

// heldPod is a pod that something holds.
type heldPod struct {
	pod     *subject
	blocker v1alpha1.Blocker
}

// count counts the pods of every site in Drain for each of its intents.
func (p *pass) count() {
	for _, s := range p.sites {
		started := s.drainStarted()
		for n := range s.pods {
			pod := &s.pods[n]
			pod.covered = s.target.set.CoversSubject(pod.Subject)
			if s.counts(pod) {
				p.hold(s, pod, started)
			}
		}
		s.order()
		for _, one := range s.drains {
			one.count()
		}
		p.decideLock(s)
		for _, one := range s.shares {
			one.collectBlockers()
		}
	}
}

func (s *share) count() {
	for n := range s.site.pods {
		pod := &s.site.pods[n]
		switch {
		case !pod.countedBy(s.intent):
			s.retained++
			continue
		case pod.evacuation != nil:
			s.evacuating++
		default:
			s.pending++
		}
		switch {
		case pod.covered:
			s.left++
		case !s.beyond:
			s.beyond = s.intent.plan.First(pod.Subject, s.intent.position+1) <= s.intent.position
		}
	}
}

// hold finds out what holds a targeted pod.
func (p *pass) hold(s *site, pod *subject, started time.Time) {
	facts := blocker.Facts{
		Now:          p.snapshot.Now,
		Pod:          pod.pod,
		Node:         s.node,
		DrainStarted: started,
		Evacuation:   pod.evacuation,
		Treatment:    *pod.treatment,
		Budgets:      p.budgetsIn(pod.pod.Namespace),
	}
	if found, blocked := blocker.Of(facts); blocked {
		s.held = append(s.held, heldPod{pod: pod, blocker: found})
	}
	p.requeueForGrace(pod.pod)
}

// requeueForGrace asks for a pass when a terminating pod becomes overdue: no
// event tells.
func (p *pass) requeueForGrace(pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil {
		// The first moment that is after it: deadlines have whole seconds.
		p.requeue(pod.DeletionTimestamp.Add(blocker.GraceSlack + time.Second))
	}
}

// drainStarted is when the drain of this site began: when the oldest Drain stage
// was recorded or, on a node that came later, when the drain was announced on it.
// It is zero if that is not known yet. MaintenanceInProgress says when all pods
// had left, so whatever came after that came back.
func (s *site) drainStarted() time.Time {
	if len(s.cordon.ledger.Holders) == 0 {
		return time.Time{}
	}
	announced := s.announcedSince(v1alpha1.NodeMaintenanceInProgress)
	if announced.IsZero() {
		announced = s.announcedSince(v1alpha1.NodeDrainInProgress)
	}
	if recorded := s.drainRecorded(); recorded.After(announced) {
		return recorded
	}
	return announced
}

// announcedSince is since when the node bears a condition of ours; zero if it
// does not.
func (s *site) announcedSince(conditionType corev1.NodeConditionType) time.Time {
	was := findNodeCondition(s.node, conditionType)
	if was == nil || was.Status != corev1.ConditionTrue || was.Reason != v1alpha1.ReasonNodeMaintenance {
		return time.Time{}
	}
	return was.LastTransitionTime.Time
}

// drainRecorded is when the oldest record of the Drain stage on this site is
// from; zero if there is none yet.
func (s *site) drainRecorded() time.Time {
	var oldest time.Time
	for _, one := range s.drains {
		for _, stage := range one.intent.object.Status.StageStatuses {
			if stage.Name != v1alpha1.StageDrain || stage.StartTimestamp == nil {
				continue
			}
			if oldest.IsZero() || stage.StartTimestamp.Time.Before(oldest) {
				oldest = stage.StartTimestamp.Time
			}
		}
	}
	return oldest
}

// collectBlockers sums up what holds the pods that the intent waits for, and
// who fights over the cordon that it holds.
func (s *share) collectBlockers() {
	var blockers []v1alpha1.Blocker
	if s.intent.stage == v1alpha1.StageDrain {
		for _, held := range s.site.held {
			if held.pod.countedBy(s.intent) {
				blockers = append(blockers, held.blocker)
			}
		}
	}
	if s.intent.inPlace != nil {
		blockers = append(blockers, s.site.lock.blockers...)
	}
	if s.site.cordon.fought && s.intent.holds() {
		blockers = append(blockers, s.site.cordon.blocker(s.site))
	}
	if len(blockers) == 0 {
		return
	}
	s.blockers = blocker.Sum(blockers)
	s.hindering = slices.DeleteFunc(blockers, func(b v1alpha1.Blocker) bool { return !hinders(b) })
}

// blockedPods counts the pods of every site that something holds.
func (p *pass) blockedPods() map[string]map[v1alpha1.BlockerType]int32 {
	blocked := map[string]map[v1alpha1.BlockerType]int32{}
	for _, s := range p.sites {
		if len(s.held) == 0 {
			continue
		}
		types := map[v1alpha1.BlockerType]int32{}
		for _, held := range s.held {
			types[held.blocker.Type] += held.blocker.PodCount
		}
		blocked[s.node.Name] = types
	}
	return blocked
}

// hinders returns true if a blocker is more than somebody at work.
func hinders(b v1alpha1.Blocker) bool { return b.Type != v1alpha1.BlockerEvacuatorRunning }
