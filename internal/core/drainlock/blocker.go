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

// Facts holds what is known of a node that waits for its locks.
type Facts struct {
	Now         time.Time
	ClockSkewed bool
	// Record is nil if the node has none.
	Record  *v1alpha1.DrainRecord
	Pods    []*corev1.Pod
	Budgets []*policyv1.PodDisruptionBudget
	Longest time.Duration
}

// Blockers returns one blocker for each needed budget that cannot be locked now, in order of
// namespace and name. Refused writes and clock skew are only known from the record.
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
			Type: o.kind, Object: blocker.OfBudget(v.budgets[b].PodDisruptionBudget), PodCount: int32(len(v.podsUnder(b))),
			SinceTime: f.Record.Status.WaitStartTime.DeepCopy(), Message: o.message, Suggestion: o.suggestion,
		})
	}
	recorded := recordedBlocker(f.Record)
	if len(missing) > 0 && (len(blockers) == 0 || recorded.Type == v1alpha1.BlockerClockSkewed) && recorded.Type != "" {
		blockers = append(blockers, recorded)
	}
	return blockers
}

// recordedBlocker returns the blocker that only the record reports, if any.
func recordedBlocker(r *v1alpha1.DrainRecord) v1alpha1.Blocker {
	locked := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionLocked)
	if locked == nil {
		return v1alpha1.Blocker{}
	}
	b := v1alpha1.Blocker{
		Object:   v1alpha1.BlockerObject{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "DrainRecord", Name: r.Name, UID: r.UID},
		PodCount: int32(len(r.Spec.Pods)), SinceTime: r.Status.WaitStartTime.DeepCopy(), Message: locked.Message,
	}
	switch locked.Reason {
	case v1alpha1.ReasonBudgetRefused:
		b.Type = v1alpha1.BlockerPDBLocked
		b.Suggestion = command.Of("Allow Ebbtide to annotate the budget. To see the error: kubectl describe drainrecord %s", r.Name)
	case v1alpha1.ReasonWaitingForNode:
		b.Type = v1alpha1.BlockerPDBLocked
		b.Suggestion = command.Of("Wait until that node has rebooted and its pods are ready. To see its progress: kubectl get drainrecords")
	case v1alpha1.ReasonClockSkewed:
		b.Type, b.Suggestion = v1alpha1.BlockerClockSkewed, skew.Suggestion
	}
	return b
}

// Waiting returns a message about the missing locks of a node; empty if there are none.
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
