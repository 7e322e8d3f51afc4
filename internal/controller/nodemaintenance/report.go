package nodemaintenance

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
)

// statusInterval is the least time between two status writes of a maintenance
// that no condition and no record hurries.
const statusInterval = time.Second

// report writes the status of every maintenance that has changed and lets go of
// those that are done. It returns when a postponed write is due; 0 is never.
func (r *reconciler) report(ctx context.Context, all records) (time.Duration, error) {
	r.statusPace.keep(all)
	var due time.Duration
	var failures []error
	for name, one := range all {
		if one.failed {
			continue
		}
		postponed, err := r.reportOne(ctx, one)
		if err != nil {
			failures = append(failures, fmt.Errorf("report maintenance %s: %w", name, err))
		}
		due = kube.Soonest(due, postponed)
	}
	return due, utilerrors.NewAggregate(failures)
}

func (r *reconciler) reportOne(ctx context.Context, one *record) (time.Duration, error) {
	if !one.reported {
		postponed := r.statusPace.left(one.stored.UID, r.clock.Now())
		if postponed > 0 && !one.Urgent && !one.DropFinalizer {
			return postponed, nil
		}
		if err := r.writeStatus(ctx, one); err != nil {
			return 0, err
		}
	}
	if !one.DropFinalizer || one.unfinished {
		return 0, nil
	}
	if _, err := kube.RemoveFinalizer(ctx, r.client, one.stored, v1alpha1.MaintenanceCompletionFinalizer); err != nil {
		return 0, fmt.Errorf("drop the finalizer: %w", err)
	}
	log.FromContext(ctx).Info("Let go of a maintenance", "maintenance", one.stored.Name)
	return 0, nil
}

// pace remembers when the status of each maintenance was last written.
type pace map[types.UID]time.Time

func (p pace) wrote(maintenance types.UID, now time.Time) { p[maintenance] = now }

// left is how long the next write has to wait.
func (p pace) left(maintenance types.UID, now time.Time) time.Duration {
	last, known := p[maintenance]
	if !known {
		return 0
	}
	return max(0, last.Add(statusInterval).Sub(now))
}

// keep forgets the maintenances that are gone.
func (p pace) keep(all records) {
	exists := make(map[types.UID]bool, len(all))
	for _, one := range all {
		exists[one.stored.UID] = true
	}
	for maintenance := range p {
		if !exists[maintenance] {
			delete(p, maintenance)
		}
	}
}
