package main

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"ebbtide.dev/ebbtide/internal/controller/bridge"
	"ebbtide.dev/ebbtide/internal/controller/cluster"
	"ebbtide.dev/ebbtide/internal/controller/daemonset"
	"ebbtide.dev/ebbtide/internal/controller/drainlock"
	"ebbtide.dev/ebbtide/internal/controller/evacuation"
	"ebbtide.dev/ebbtide/internal/controller/evictionrequest"
	"ebbtide.dev/ebbtide/internal/controller/evictor"
	"ebbtide.dev/ebbtide/internal/controller/machine"
	"ebbtide.dev/ebbtide/internal/controller/nodemaintenance"
	"ebbtide.dev/ebbtide/internal/controller/nodeshutdown"
	"ebbtide.dev/ebbtide/internal/controller/requester"
	"ebbtide.dev/ebbtide/internal/controller/rollout"
	"ebbtide.dev/ebbtide/internal/controller/surge"
	bridging "ebbtide.dev/ebbtide/internal/core/bridge"
	core "ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/webhook"
	"ebbtide.dev/ebbtide/internal/workload"
)

// guards say whether the manager may act, and prove to others that it is the manager.
type guards struct {
	fence *kube.Fence
	skew  *kube.Skew
	// requests knows whether EvictionRequests are served; nil if Ebbtide does not use them.
	requests *kube.Served
	// certificate identifies the manager to its clients.
	certificate *webhook.Certificate
}

// serveRequests starts to watch whether EvictionRequests are served, if Ebbtide uses them.
func (g *guards) serveRequests(mgr manager.Manager, f flags) (err error) {
	if f.evictionRequests != core.ModeOff {
		g.requests, err = kube.NewServed(mgr, evictionrequest.API())
	}
	return err
}

// add has the manager run everything that Ebbtide is made of.
func add(mgr manager.Manager, f flags, g guards) error {
	dispatcher := eviction.NewDispatcher(eviction.DispatcherOptions{
		Reader: mgr.GetClient(), Now: kube.Now(g.skew.Now).Earliest, LongestLock: f.longestLock, Results: kube.Register(crmetrics.Registry, eviction.NewResults()),
	})
	asks, err := addEvictionRequests(mgr, f, g)
	if err != nil {
		return err
	}
	rollouts, err := addRollouts(mgr, f, g)
	if err != nil {
		return err
	}
	if err := nodemaintenance.Add(mgr, nodemaintenance.Options{
		Namespace: f.namespace, Workers: f.nodeWorkers, Surge: f.surge, LongestLock: f.longestLock, Skew: g.skew, Bridges: f.bridges,
		Requests: asks, NodeBudgets: rollouts,
	}); err != nil {
		return err
	}
	if err := drainlock.Add(mgr, drainlock.Options{
		Namespace: f.namespace, Workers: f.nodeWorkers, LongestLock: f.longestLock, Traffic: dispatcher, Skew: g.skew,
	}); err != nil {
		return err
	}
	if err := evacuation.Add(mgr, evacuation.Options{
		Workers: f.evacuationWorkers, Surge: f.surge, Dispatcher: dispatcher, Skew: g.skew,
	}); err != nil {
		return err
	}
	if err := daemonset.Add(mgr); err != nil {
		return err
	}
	if err := surge.Add(mgr, surge.Options{Surge: f.surge, Skew: g.skew}); err != nil {
		return err
	}
	if err := g.skew.Report(mgr, f.namespace); err != nil {
		return err
	}
	if err := nodeshutdown.Add(mgr, nodeshutdown.Options{Options: f.shutdowns, Skew: g.skew}); err != nil {
		return err
	}
	if !f.machines && !f.bridges.Has(bridging.ClusterAPI) && !f.bridges.Has(bridging.OpenShift) {
		return nil
	}
	return addMachines(mgr, f, g, dispatcher)
}

// addRollouts runs the controller of NodeRollouts where they are served, and returns where that is; nil
// if rights are missing.
func addRollouts(mgr manager.Manager, f flags, g guards) (*kube.Served, error) {
	if !f.rollouts {
		return nil, nil
	}
	served, err := kube.NewServed(mgr, rollout.API())
	if err != nil {
		return nil, err
	}
	rollout.Add(mgr, rollout.Options{Served: served, Skew: g.skew, JobNamespaces: f.jobNamespaces, Prometheus: f.prometheus, MachineKinds: f.machineKinds()})
	return served, nil
}

// addEvictionRequests has it run what answers EvictionRequests, where they are served, and
// returns what NodeMaintenances ask by; nil if they never do.
func addEvictionRequests(mgr manager.Manager, f flags, g guards) (nodemaintenance.Requests, error) {
	options := evictionrequest.RoleOptions{Mode: f.evictionRequests, Namespace: f.namespace, Skew: g.skew}
	if f.evictionRequests == core.ModeOff {
		if _, err := evictionrequest.NewRole(mgr, options); err != nil {
			return nil, err
		}
		return nil, evictor.AddOff(mgr)
	}
	options.Served = g.requests
	role, err := evictionrequest.NewRole(mgr, options)
	if err != nil {
		return nil, err
	}
	evictionrequest.Add(mgr, evictionrequest.Options{Served: g.requests, Role: role, Skew: g.skew})
	asks := requester.Add(mgr, requester.Options{Served: g.requests, Acts: role.Acts, OnActive: role.OnActive, Now: g.skew.Server})
	return asks, evictor.Add(mgr, evictor.Options{
		Workers: f.evacuationWorkers, Surge: f.surge,
		Served: g.requests, Acts: role.Acts, OnActive: role.OnActive, Skew: g.skew,
	})
}

// addMachines has it run what looks after Machines and their Clusters, ours and those of
// other controllers.
func addMachines(mgr manager.Manager, f flags, g guards, dispatcher *eviction.Dispatcher) error {
	registry, err := workload.NewRegistry(mgr, workload.Options{
		Workers: f.evacuationWorkers, Dispatcher: dispatcher,
		RemoteMemory: f.remoteMemory, RemotesMemory: f.remotesMemory, Fence: g.fence, Skew: g.skew, Allowed: f.kubeconfigFields,
	})
	if err != nil {
		return err
	}
	if err := bridge.Add(mgr, bridge.Options{Bridges: f.bridges, Skew: g.skew, Registry: registry}); err != nil || !f.machines {
		return err
	}
	if err := cluster.Add(mgr, registry); err != nil {
		return err
	}
	return machine.Add(mgr, registry, machine.Options{Workers: f.machineWorkers, Skew: g.skew})
}
