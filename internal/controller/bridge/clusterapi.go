package bridge

import core "ebbtide.dev/ebbtide/internal/core/bridge"

// clusterAPI returns the kinds of Cluster API, from its release 1.11 on.
func clusterAPI() kind {
	return kind{bridge: core.ClusterAPI, machine: core.ClusterAPIMachine, around: core.ClusterAPICluster, rule: core.ClusterAPIRule}
}
