package machine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
	"ebbtide.dev/ebbtide/internal/kube"
)

// statusInterval is the minimal time between two status writes that only change messages.
const statusInterval = time.Second

// report writes the status and removes the finalizer if the deletion is completed. It returns when
// a postponed write is due; 0 is never.
func (r *reconciler) report(ctx context.Context, seen *observed, decision *lifecycle.Decision, acted error) (time.Duration, error) {
	key := client.ObjectKeyFromObject(seen.Machine)
	fit(seen.Machine.Status.Conditions, decision)
	r.metrics.reached(key, decision.Step, decision.Since, seen.Now)
	if wait := r.pace.left(key, seen.Now); wait > 0 && !decision.DropFinalizer && sameButWords(&seen.Machine.Status, &decision.Status) {
		return wait, nil
	}
	if err := r.writeStatus(ctx, seen, decision); err != nil {
		return 0, err
	}
	if !decision.DropFinalizer || acted != nil {
		return 0, nil
	}
	if _, err := kube.RemoveFinalizer(ctx, r.client, seen.Machine, v1alpha1.MachineFinalizer); err != nil {
		return 0, fmt.Errorf("remove the finalizer: %w", err)
	}
	log.FromContext(ctx).Info("Removed the finalizer of a Machine", "reason", "its deletion is completed")
	return 0, nil
}

// longestMessage limits messages of conditions. The API server rejects a status with a message over
// 32 KiB.
const longestMessage = 8 << 10

// fit shortens messages of conditions and events, which contain names and texts of remote clusters.
// Messages about hooks have limits of their own.
func fit(before []metav1.Condition, decision *lifecycle.Decision) {
	now := decision.Status.Conditions
	for i := range now {
		old := apimeta.FindStatusCondition(before, now[i].Type)
		if old == nil || old.Message != now[i].Message {
			now[i].Message = printable(now[i].Message)
		}
	}
	for i := range decision.Events {
		decision.Events[i].Message = printable(decision.Events[i].Message)
	}
}

// printable returns the beginning of a text without control characters other than line breaks. Lists keep
// their indentation.
func printable(text string) string {
	lines := strings.Split(excerpt.Of(text, longestMessage), "\n")
	for i := range lines {
		words := strings.TrimLeft(lines[i], " ")
		lines[i] = lines[i][:len(lines[i])-len(words)] + excerpt.Line(words, longestMessage)
	}
	return strings.Join(lines, "\n")
}

// writeStatus writes a changed status and then publishes its events.
func (r *reconciler) writeStatus(ctx context.Context, seen *observed, decision *lifecycle.Decision) error {
	if equality.Semantic.DeepEqual(seen.Machine.Status, decision.Status) {
		return nil
	}
	written, err := kube.WriteMachineStatus(ctx, r.client, seen.Machine, decision.Status)
	if err != nil {
		return err
	}
	seen.Machine = written
	r.pace.wrote(client.ObjectKeyFromObject(written), seen.Now)
	r.emit(decision.Events...)
	logDrained(ctx, seen, decision)
	return nil
}

func sameButWords(a, b *v1alpha1.MachineStatus) bool {
	return equality.Semantic.DeepEqual(wordless(a), wordless(b)) && !equality.Semantic.DeepEqual(a, b)
}

func wordless(status *v1alpha1.MachineStatus) *v1alpha1.MachineStatus {
	copied := status.DeepCopy()
	for i := range copied.Conditions {
		copied.Conditions[i].Message = ""
	}
	return copied
}

type pace struct {
	mu      sync.Mutex
	written map[types.NamespacedName]time.Time
}

func newPace() *pace { return &pace{written: map[types.NamespacedName]time.Time{}} }

func (p *pace) wrote(machine types.NamespacedName, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written[machine] = now
}

func (p *pace) left(machine types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.written[machine]
	if !known {
		return 0
	}
	return max(0, last.Add(statusInterval).Sub(now))
}

func (p *pace) forget(machine types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.written, machine)
}
