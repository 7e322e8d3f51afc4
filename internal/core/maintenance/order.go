package maintenance

import (
	"fmt"
	"math"
)

// noOrder is later than any order of a rule.
const noOrder = int64(math.MaxInt64)

// counts returns true if the target of the site covers the pod and some intent
// waits for it.
func (s *site) counts(pod *subject) bool {
	return pod.covered && !pod.retained() && pod.Depth() <= s.depth && (pod.staying == nil || s.wanted(pod))
}

// targeted returns true if the pod is to leave the site, though its turn may come
// later. What was asked for it before is not taken back.
func (s *site) targeted(pod *subject) bool { return s.counts(pod) && pod.evacuable() }

// due returns true if it is the pod's turn to leave the site.
func (s *site) due(pod *subject) bool {
	return s.targeted(pod) && !pod.unclear() && int64(pod.treatment.Order) <= s.wave
}

// order finds out whose turn it is: those of the lowest order that is present,
// with pods that are terminating and those that are left to complete.
func (s *site) order() {
	s.wave, s.later = noOrder, noOrder
	for n := range s.pods {
		if pod := &s.pods[n]; s.counts(pod) && !pod.unclear() {
			s.wave = min(s.wave, int64(pod.treatment.Order))
		}
	}
	for n := range s.pods {
		if pod := &s.pods[n]; s.targeted(pod) && !s.due(pod) && pod.stays() {
			s.later = min(s.later, int64(pod.treatment.Order))
		}
	}
}

// stays returns true if nobody has asked the pod to leave yet, and it is known
// when that will be.
func (s *subject) stays() bool {
	return !s.unclear() && s.evacuation == nil && s.pod.DeletionTimestamp == nil
}

// turns tells of pods whose order has not come.
func (s *site) turns() string {
	if s.later == noOrder {
		return ""
	}
	return fmt.Sprintf(". Pods of order %d and later wait until those of order %d are gone.", s.later, s.wave)
}
