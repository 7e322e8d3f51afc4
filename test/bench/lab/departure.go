package lab

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Departure watches the pods that are to leave the load's nodes. A pod is gone
// when its UID is.
type Departure struct {
	changes *changes
	left    map[types.UID]bool
	waves   *waves
}

// WatchDeparture begins to watch the pods that are on the load's nodes now,
// without those that can never go.
func (l *Lab) WatchDeparture(ctx context.Context, load *Load) (*Departure, error) {
	pods := &corev1.PodList{}
	changes, err := l.watch(ctx, pods, client.InNamespace(load.Namespace))
	if err != nil {
		return nil, err
	}
	d := &Departure{changes: changes, left: map[types.UID]bool{}, waves: newWaves(load)}
	for _, pod := range pods.Items {
		if load.leaves(&pod) {
			d.left[pod.UID] = true
			d.waves.add(&pod)
		}
	}
	return d, nil
}

// Left is how many pods have not gone.
func (d *Departure) Left() int { return len(d.left) }

// Until returns when at most n pods are left.
func (d *Departure) Until(ctx context.Context, n int) error {
	for len(d.left) > n {
		event, err := d.changes.next(ctx)
		if err != nil {
			return fmt.Errorf("%d pods are still there: %w", len(d.left), err)
		}
		if pod, isPod := event.Object.(*corev1.Pod); isPod && d.left[pod.UID] {
			d.see(pod, event.Type == watch.Deleted)
		}
	}
	return nil
}

func (d *Departure) see(pod *corev1.Pod, gone bool) {
	d.waves.see(pod, time.Now(), gone)
	if gone {
		delete(d.left, pod.UID)
	}
}

// Gaps are the times between the waves in which the pods have left: from the last
// pod of one that was gone to the first of the next that was told to go. There are
// none unless the Deployments are to leave in turn.
//
// Errors: a pod was told to go before its turn.
func (d *Departure) Gaps() ([]time.Duration, error) { return d.waves.gaps() }

// Stop ends the watch.
func (d *Departure) Stop() { d.changes.stop() }
