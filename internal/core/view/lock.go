package view

import (
	"cmp"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

const maxLocks = 50

// Lock is a printed lock of a PodDisruptionBudget.
type Lock struct {
	Budget string `json:"budget"`
	// Holder is a node with its maintenance, or the text of another holder.
	Holder       string       `json:"holder"`
	Node         string       `json:"node,omitempty"`
	Maintenance  string       `json:"maintenance,omitempty"`
	AcquiredTime *metav1.Time `json:"acquiredTime,omitempty"`
	EndTime      *metav1.Time `json:"endTime,omitempty"`
	Reason       string       `json:"reason,omitempty"`
	Confirmed    bool         `json:"confirmed,omitempty"`
}

// locks returns those held by nodes of a maintenance and those in its way, by budget.
func (s *Snapshot) locks(status *Status) []Lock {
	locks := s.recorded(status)
	own := map[string]bool{}
	for i := range locks {
		own[locks[i].Budget] = true
	}
	for _, b := range s.Budgets {
		lock, locked := s.lockOf(b)
		if locked && !own[lock.Budget] && blocks(status.Blockers, b) {
			locks = append(locks, lock)
		}
	}
	slices.SortFunc(locks, func(a, b Lock) int {
		return cmp.Or(cmp.Compare(a.Budget, b.Budget), cmp.Compare(a.Holder, b.Holder))
	})
	return locks[:min(len(locks), maxLocks)]
}

func (s *Snapshot) recorded(status *Status) []Lock {
	var locks []Lock
	for i := range status.Nodes {
		record := s.Records[status.Nodes[i].Name]
		if record == nil || record.Spec.MaintenanceRef.Name != status.Name {
			continue
		}
		for _, one := range record.Status.Locks {
			lock := Lock{
				Budget: one.Namespace + "/" + one.Name, Holder: "node " + record.Name, Node: record.Name, Maintenance: status.Name,
				AcquiredTime: one.AcquiredTime.DeepCopy(), Confirmed: one.ConfirmedTime != nil,
			}
			if b := s.budget(lock.Budget); b != nil {
				// The longest duration is up to those who honour the lock.
				if hold, locked := budget.LockOf(b, s.Now, 0); locked {
					lock.EndTime = &metav1.Time{Time: hold.Ends}
				}
			}
			locks = append(locks, lock)
		}
	}
	return locks
}

func (s *Snapshot) lockOf(b *policyv1.PodDisruptionBudget) (Lock, bool) {
	hold, locked := budget.LockOf(b, s.Now, 0)
	if !locked {
		return Lock{}, false
	}
	lock := Lock{
		Budget: b.Namespace + "/" + b.Name, Holder: excerpt.Line(hold.Holder, maxWords),
		EndTime: &metav1.Time{Time: hold.Ends}, Reason: excerpt.Line(hold.Reason, maxWords),
	}
	if !hold.AcquiredAt.IsZero() {
		lock.AcquiredTime = hold.AcquiredAt.DeepCopy()
	}
	if maintenance, node, drain := hold.Drain(); drain {
		lock.Holder, lock.Node, lock.Maintenance = "node "+node, node, maintenance
	}
	return lock, true
}

func (s *Snapshot) budget(key string) *policyv1.PodDisruptionBudget {
	at := slices.IndexFunc(s.Budgets, func(b *policyv1.PodDisruptionBudget) bool { return b.Namespace+"/"+b.Name == key })
	if at < 0 {
		return nil
	}
	return s.Budgets[at]
}

func blocks(blockers []Blocker, b *policyv1.PodDisruptionBudget) bool {
	return slices.ContainsFunc(blockers, func(one Blocker) bool {
		return one.object.Kind == "PodDisruptionBudget" && one.object.Namespace == b.Namespace && one.object.Name == b.Name
	})
}
