package nodeshutdown

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
)

const (
	// usualShare is the default percentage of the available time that is left for deletions.
	usualShare = 30
	// leastDeleteBefore and mostDeleteBefore bound the setting. longestShare caps a percentage: a
	// shutdown that was announced the day before must not break budgets hours early.
	leastDeleteBefore, mostDeleteBefore = 10 * time.Second, 24 * time.Hour
	longestShare                        = 5 * time.Minute
	farthest                            = 24 * time.Hour
)

// DeleteBefore holds the time before the shutdown at which remaining pods are deleted. The zero
// value is 30 % of the time that pods have.
type DeleteBefore struct {
	// fixed overrides share unless it is 0.
	share int64
	fixed time.Duration
}

// ParseDeleteBefore reads a percentage, such as 30%, or a duration, such as 45s. It fails if the
// text is neither, or out of bounds.
func ParseDeleteBefore(text string) (DeleteBefore, error) {
	refusal := errors.New("must be from 1% to 100% of the time until the node goes down, or from 10s to 24h, such as 30% or 45s")
	if number, ok := strings.CutSuffix(text, "%"); ok {
		share, err := strconv.ParseUint(number, 10, 7)
		if err != nil || share < 1 || share > 100 {
			return DeleteBefore{}, refusal
		}
		return DeleteBefore{share: int64(share)}, nil
	}
	fixed, err := time.ParseDuration(text)
	if err != nil || fixed < leastDeleteBefore || fixed > mostDeleteBefore {
		return DeleteBefore{}, refusal
	}
	return DeleteBefore{fixed: fixed}, nil
}

// String returns the text for ParseDeleteBefore.
func (b DeleteBefore) String() string {
	if b.fixed > 0 {
		return b.fixed.String()
	}
	return fmt.Sprintf("%d%%", cmp.Or(b.share, usualShare))
}

// ParseDepth reads which types of pods are drained. It fails for other types.
func ParseDepth(text string) (v1alpha1.PodType, error) {
	depth := v1alpha1.PodType(text)
	if _, known := drainplan.Depth(depth); !known || text == "" {
		return "", errors.New("must be Default, DaemonSet or Static")
	}
	return depth, nil
}

func (b DeleteBefore) seconds(have time.Duration) int32 {
	if b.fixed > 0 {
		return int32(b.fixed / time.Second)
	}
	share := time.Duration(cmp.Or(b.share, usualShare))
	have = min(max(have, 0), farthest)
	return int32(min(max(have*share/100, leastDeleteBefore), longestShare) / time.Second)
}

// follow returns the changed Existing for the current report; nil if it stays. A stage only moves
// forward, and what a user has completed, or never started, stays.
func (s Snapshot) follow(stage v1alpha1.NodeMaintenanceStage, reason string) *v1alpha1.NodeMaintenance {
	is := s.Existing.Spec.Stage
	if s.Existing.DeletionTimestamp != nil || is != v1alpha1.StageCordon && is != v1alpha1.StageDrain {
		return nil
	}
	next := s.Existing.DeepCopy()
	if is == v1alpha1.StageCordon {
		next.Spec.Stage = stage
	}
	next.Spec.Reason, next.Spec.Deadline = reason, s.deadline(next.Spec.Stage)
	if equality.Semantic.DeepEqual(next.Spec, s.Existing.Spec) {
		return nil
	}
	return next
}

// deadline returns until when the pods must be gone. Pods that the kubelet ends, or that are kept,
// have none.
func (s Snapshot) deadline(stage v1alpha1.NodeMaintenanceStage) *v1alpha1.Deadline {
	if stage != v1alpha1.StageDrain {
		return nil // It would mean nothing.
	}
	until, had := s.until(), s.had()
	switch {
	case until == nil:
	case s.kubeletStops():
		until.OnDeadline = v1alpha1.DeadlineWait
	case had != nil && had.OnDeadline != "":
		until.OnDeadline = had.OnDeadline // A person may have chosen it.
	}
	return until
}

// until returns the deadline of the reported time. A time in the past changes nothing, as it would
// delete everything at once. A missing time, or one too far ahead, sets no deadline.
func (s Snapshot) until() *v1alpha1.Deadline {
	told := s.Agent.Status.Shutdown
	switch at := told.DeadlineTime; {
	case s.ClockSkewed:
		return s.had().DeepCopy()
	case at == nil || at.After(s.Now.Add(farthest)):
		return nil
	case !at.After(s.Now):
		return s.had().DeepCopy()
	default:
		return &v1alpha1.Deadline{
			Time: at.Rfc3339Copy(), OnDeadline: v1alpha1.DeadlineDelete, DeleteBeforeSeconds: s.DeleteBefore.seconds(timeLeft(told)),
		}
	}
}

func (s Snapshot) had() *v1alpha1.Deadline {
	if s.Existing == nil {
		return nil
	}
	return s.Existing.Spec.Deadline
}

func timeLeft(told *v1alpha1.NodeShutdown) time.Duration {
	if told.Phase != v1alpha1.ShutdownScheduled {
		return time.Duration(told.DelaySeconds) * time.Second
	}
	if told.StartTime == nil {
		return lead
	}
	return min(told.DeadlineTime.Sub(told.StartTime.Time), lead)
}

func (s Snapshot) kubeletStops() bool {
	told := s.Agent.Status.Shutdown
	return told.Mode == v1alpha1.ShutdownModeReport && told.Phase != v1alpha1.ShutdownScheduled
}
