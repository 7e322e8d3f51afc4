package nodemaintenance

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// statusInterval is the least time between two status writes of a maintenance that
	// no record hurries.
	statusInterval = time.Second
	// statusBytes is how much of statuses that only speak of progress is written for a
	// maintenance in each interval, on average: what is large is written less often.
	// One whose conditions change may be urgentBytes large.
	statusBytes, urgentBytes = 64 << 10, 256 << 10
)

// report writes the status of every maintenance that has changed and lets go of
// those that are done.
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

// postponed is how long the status of a maintenance has to wait for its turn.
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
	log.FromContext(ctx).Info("Let go of a maintenance", "maintenance", one.stored.Name)
	return nil
}

// pace remembers when the status of each maintenance was last written, and how large
// it was. It is safe for concurrent use.
type pace struct {
	mu   sync.Mutex
	last map[string]written
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
}

// left is how long the next write has to wait. An urgent one, whose conditions
// change, waits for nothing unless the status is large.
func (p *pace) left(maintenance string, now time.Time, urgent bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.last[maintenance]
	if !known {
		return 0
	}
	interval := max(statusInterval, statusInterval*time.Duration(last.size)/statusBytes)
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
