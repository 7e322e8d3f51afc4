package lab

import (
	"context"
	"fmt"
	"slices"

	"ebbtide.dev/ebbtide/test/bench/report"
)

// The peers by name, besides the oracle and Ebbtide.
const (
	// Kubectl is kubectl's drain with the 50 queries per second and the burst of
	// 300 that kubectl allows itself for discovery.
	Kubectl = "kubectl"
	// KubectlShipped is kubectl's drain as the command line runs it: its drain
	// client has client-go's default limits, 5 queries per second and a burst of 10.
	KubectlShipped = "kubectl-shipped"
	// ClusterAPI is Cluster API's drain in the loop of its machine controller.
	ClusterAPI = "clusterapi"
)

// Contender is somebody who drains nodes. It is up and warm.
type Contender interface {
	// Agent is its name in the audit log.
	Agent() string
	// Drain drains nodes together and returns when the contender says that it is done.
	Drain(ctx context.Context, nodes []string) error
	// Stop lets it tidy up what it keeps in the cluster, and ends it.
	Stop(ctx context.Context) error
}

// Names are all contenders that can be asked for.
func Names() []string { return append(Defaults(), KubectlShipped) }

// Defaults are the contenders that take part unless others are asked for.
func Defaults() []string {
	return []string{report.Oracle, Kubectl, ClusterAPI, report.Ebbtide}
}

// Rotate returns names with the first n moved to the end, so that over several
// rounds everybody comes first once.
func Rotate(names []string, n int) []string {
	n %= len(names)
	return slices.Concat(names[n:], names[:n])
}

// Start starts one of the contenders that the lab was opened for and returns when
// it is warm and knows what there is to know of the load.
func (l *Lab) Start(ctx context.Context, name string, load *Load) (Contender, error) {
	switch name {
	case report.Ebbtide:
		if load.work.Machines {
			return l.startMachines(ctx, load)
		}
		return l.startManager(ctx, load)
	case report.Maintenance:
		return l.startManager(ctx, load)
	case Kubectl:
		return l.startPeer(ctx, Kubectl, "-qps=50", "-burst=300")
	case KubectlShipped:
		return l.startPeer(ctx, Kubectl)
	case ClusterAPI:
		return l.startPeer(ctx, ClusterAPI, fmt.Sprintf("-orders=%d", len(load.turns())))
	default:
		return l.startPeer(ctx, name)
	}
}
