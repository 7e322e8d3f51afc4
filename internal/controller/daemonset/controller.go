// Package daemonset moves DaemonSet pods off nodes under maintenance, as evacuator
// daemonset.apps.k8s.io, and removes the scheduling gate of pods that may return. core/daemonset
// decides, by what the node records. A refused deletion is retried and delays no other. Nothing
// in memory is needed after a restart.
package daemonset

import (
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// workers bounds the pods of a namespace that each controller works on at the same time.
	workers = 16
	// firstRetry and lastRetry bound the back-off after a deletion that was refused or did not last.
	firstRetry, lastRetry = time.Second, time.Minute
)

// Add registers both controllers with a manager whose client reads from a cache with
// kube.CacheOptions and kube.IndexFields, consistent with its own writes.
func Add(mgr manager.Manager) error {
	emit := kube.Emitter(mgr.GetEventRecorder("ebbtide"))
	evacuator := newEvacuator(mgr.GetClient(), emit, clock.RealClock{})
	if err := add(mgr, "daemonset-evacuator", evacuator, evacuator.sources(mgr.GetCache())); err != nil {
		return err
	}
	gatekeeper := &gatekeeper{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), emit: emit,
		clock: clock.RealClock{}, removals: newBackoff(clock.RealClock{}),
	}
	return add(mgr, "daemonset-gatekeeper", gatekeeper, gatekeeper.sources(mgr.GetCache()))
}

func add(mgr manager.Manager, name string, reconciler reconcile.Reconciler, sources []source.Source) error {
	return kube.AddController(mgr, name, kube.ByNamespace(reconciler, workers), sources)
}

func newEvacuator(c client.Client, emit func(...event.Event), clk clock.Clock) *evacuator {
	return &evacuator{client: c, emit: emit, clock: clk, refusals: newBackoff(clk), removals: newBackoff(clk)}
}

func newBackoff(clk clock.Clock) *flowcontrol.Backoff {
	backoff := flowcontrol.NewBackOff(firstRetry, lastRetry)
	backoff.Clock = clk
	return backoff
}
