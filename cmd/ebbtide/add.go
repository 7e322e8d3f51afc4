package main

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"ebbtide.dev/ebbtide/internal/controller/cluster"
	"ebbtide.dev/ebbtide/internal/controller/daemonset"
	"ebbtide.dev/ebbtide/internal/controller/drainlock"
	"ebbtide.dev/ebbtide/internal/controller/evacuation"
	"ebbtide.dev/ebbtide/internal/controller/machine"
	"ebbtide.dev/ebbtide/internal/controller/nodemaintenance"
	"ebbtide.dev/ebbtide/internal/controller/nodeshutdown"
	"ebbtide.dev/ebbtide/internal/controller/surge"
	"ebbtide.dev/ebbtide/internal/eviction"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/workload"
)

// guards say whether the manager may act.
type guards struct {
	fence *kube.Fence
	skew  *kube.Skew
}

// add has the manager run everything that Ebbtide is made of.
func add(mgr manager.Manager, f flags, g guards) error {
	traffic := eviction.NewTraffic()
	if err := nodemaintenance.Add(mgr, nodemaintenance.Options{
		Namespace: f.namespace, Workers: f.nodeWorkers, Surge: f.surge, LongestLock: f.longestLock, Skew: g.skew,
	}); err != nil {
		return err
	}
	if err := drainlock.Add(mgr, drainlock.Options{
		Namespace: f.namespace, Workers: f.nodeWorkers, LongestLock: f.longestLock, Traffic: traffic, Skew: g.skew,
	}); err != nil {
		return err
	}
	if err := evacuation.Add(mgr, evacuation.Options{
		Workers: f.evacuationWorkers, Surge: f.surge, LongestLock: f.longestLock, Traffic: traffic, Skew: g.skew,
	}); err != nil {
		return err
	}
	if err := daemonset.Add(mgr); err != nil {
		return err
	}
	if err := surge.Add(mgr, surge.Options{Surge: f.surge, Skew: g.skew}); err != nil {
		return err
	}
	if err := nodeshutdown.Add(mgr, nodeshutdown.Options{Options: f.shutdowns, Skew: g.skew}); err != nil {
		return err
	}
	if !f.machines {
		return nil
	}
	return addMachines(mgr, f, g, traffic)
}

// addMachines has it run what looks after Machines and their Clusters.
func addMachines(mgr manager.Manager, f flags, g guards, traffic *eviction.Traffic) error {
	registry, err := workload.NewRegistry(mgr, workload.Options{
		Workers: f.evacuationWorkers, LongestLock: f.longestLock, Traffic: traffic,
		RemoteMemory: f.remoteMemory, RemotesMemory: f.remotesMemory, Fence: g.fence, Skew: g.skew, Allowed: f.kubeconfigFields,
	})
	if err != nil {
		return err
	}
	if err := cluster.Add(mgr, registry); err != nil {
		return err
	}
	return machine.Add(mgr, registry, machine.Options{Workers: f.machineWorkers, Skew: g.skew})
}
