package drainlock

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/blocker"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/skew"
)

// Facts is what is known of a node that waits for its locks.
type Facts struct {
	// Now is the time of the pass.
	Now time.Time
	// ClockSkewed is true while that is not trusted, as far as it matters.
	ClockSkewed bool
	// Record is the record of the node; nil if there is none.
	Record *v1alpha1.DrainRecord
	// Pods are all pods of the node.
	Pods []*corev1.Pod
	// Budgets are those of the namespaces of the pods that stay.
	Budgets []*policyv1.PodDisruptionBudget
	// Longest is how long a lock may hold; see budget.LockOf.
	Longest time.Duration
}

// Blockers returns one blocker for each budget that is needed and cannot be
// locked now, in the order of namespace and name. It holds back the pods that stay
// under it, since the node waits for locks. What keeps us from writing a budget, or
// from trusting the time, is only known to who tries: of that the record tells.
func Blockers(f Facts) []v1alpha1.Blocker {
	if f.Record == nil {
		return nil
	}
	v := newView(f)
	missing := unconfirmed(f.Record)
	var blockers []v1alpha1.Blocker
	for _, b := range v.needs {
		o, found := v.obstacle(b)
		if _, waits := slices.BinarySearchFunc(missing, b, compare); !found || !waits {
			continue
		}
		blockers = append(blockers, v1alpha1.Blocker{
			Type: o.kind, Object: blocker.OfBudget(v.budgets[b].PodDisruptionBudget), PodCount: int32(len(v.there(b))),
			SinceTime: f.Record.Status.WaitStartTime.DeepCopy(), Message: o.message, Suggestion: o.suggestion,
		})
	}
	if told := toldOf(f.Record); len(missing) > 0 && (len(blockers) == 0 || told.Type == v1alpha1.BlockerClockSkewed) && told.Type != "" {
		blockers = append(blockers, told)
	}
	return blockers
}

// toldOf is what only the record tells; without a type if it does not.
func toldOf(r *v1alpha1.DrainRecord) v1alpha1.Blocker {
	told := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionLocked)
	if told == nil {
		return v1alpha1.Blocker{}
	}
	b := v1alpha1.Blocker{
		Object: ofRecord(r), PodCount: int32(len(r.Spec.Pods)), SinceTime: r.Status.WaitStartTime.DeepCopy(), Message: told.Message,
	}
	switch told.Reason {
	case v1alpha1.ReasonBudgetRefused:
		b.Type = v1alpha1.BlockerPDBLocked
		b.Suggestion = command.Of("Find out who refuses the change of the budget, and let Ebbtide annotate it: kubectl describe drainrecord %s", r.Name)
	case v1alpha1.ReasonWaitingForNode:
		b.Type = v1alpha1.BlockerPDBLocked
		b.Suggestion = command.Of("When that node has rebooted and its pods run again, this one goes on. What it waits for: kubectl get drainrecords")
	case v1alpha1.ReasonClockSkewed:
		b.Type, b.Suggestion = v1alpha1.BlockerClockSkewed, skew.Suggestion
	}
	return b
}

func ofRecord(r *v1alpha1.DrainRecord) v1alpha1.BlockerObject {
	return v1alpha1.BlockerObject{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "DrainRecord", Name: r.Name, UID: r.UID}
}

// Waiting says in a few words which locks a node waits for; empty if it has all,
// or if there is no record.
func Waiting(f Facts) string {
	if f.Record == nil || Held(f.Record) {
		return ""
	}
	missing := unconfirmed(f.Record)
	if len(missing) == 0 {
		return "Waiting for the node to record that it may go down."
	}
	text := fmt.Sprintf("Waiting for the locks of %d PodDisruptionBudgets", len(missing))
	if len(missing) == 1 {
		text = "Waiting for the lock of " + named(missing[0])
	}
	if ahead := queued(f.Record.Status.NodesAheadCount); ahead != "" {
		text += "; " + ahead
	}
	return text + "."
}
