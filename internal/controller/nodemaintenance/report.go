package nodemaintenance

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// statusInterval is the least time between two status writes that are no record. Many
	// maintenances together report their progress about progressRate times in an interval, and each
	// at least every longestInterval.
	statusInterval, longestInterval = time.Second, 15 * time.Second
	progressRate                    = 10
	// statusBytes bounds the average size of progress reports in each interval, so that large ones are
	// written less often; urgentBytes bounds those whose conditions change.
	statusBytes, urgentBytes = 64 << 10, 256 << 10
)

// report writes changed statuses and removes the finalizer of maintenances that are done.
func (w *writer) report(ctx context.Context, all records) {
	reported := make([]*record, 0, len(all))
	for _, one := range all {
		if !one.failed {
			reported = append(reported, one)
		}
	}
	kube.Parallel(w.workers, len(reported), func(i int) {
		one := reported[i]
		if one.reported && (!one.DropFinalizer || one.unfinished.Load()) {
			return
		}
		if postponed := w.postponed(one); postponed > 0 {
			w.wait(postponed)
			return
		}
		w.changeMaintenance(one, "report", func() error { return w.reportOne(ctx, one) })
	})
}

// postponed returns how long a status write has to wait.
func (w *writer) postponed(one *record) time.Duration {
	if one.reported || one.DropFinalizer {
		return 0
	}
	return w.statusPace.left(one.stored.Name, w.clock.Now(), one.Urgent)
}

func (w *writer) reportOne(ctx context.Context, one *record) error {
	if !one.reported {
		if err := w.writeStatus(ctx, one); err != nil {
			return err
		}
	}
	if !one.DropFinalizer || one.unfinished.Load() {
		return nil
	}
	if _, err := kube.RemoveFinalizer(ctx, w.client, one.stored, v1alpha1.MaintenanceCompletionFinalizer); err != nil {
		return fmt.Errorf("drop the finalizer: %w", err)
	}
	log.FromContext(ctx).Info("Removed the finalizer of a NodeMaintenance", "maintenance", one.stored.Name)
	return nil
}

// pace remembers the time and size of the last status write of each maintenance. It is safe for
// concurrent use.
type pace struct {
	mu    sync.Mutex
	last  map[string]written
	swept time.Time
}

type written struct {
	at   time.Time
	size int
}

func newPace() *pace { return &pace{last: map[string]written{}} }

func (p *pace) wrote(maintenance string, now time.Time, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[maintenance] = written{at: now, size: size}
	if now.Sub(p.swept) >= statusInterval {
		p.swept = now
		maps.DeleteFunc(p.last, func(_ string, w written) bool { return now.Sub(w.at) > longestInterval })
	}
}

// left returns how long the next write has to wait: the longer, the larger the last one was and the
// more maintenances write. An urgent one does not unless it is large.
func (p *pace) left(maintenance string, now time.Time, urgent bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.last[maintenance]
	if !known {
		return 0
	}
	interval := min(longestInterval, max(
		statusInterval, statusInterval*time.Duration(last.size)/statusBytes, statusInterval*time.Duration(len(p.last))/progressRate))
	if urgent {
		interval = statusInterval * time.Duration(last.size) / urgentBytes
	}
	return max(0, last.at.Add(interval).Sub(now))
}

func (p *pace) forget(maintenance string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, maintenance)
}
