package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/nodeshutdown"
	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/gate"
	"ebbtide.dev/ebbtide/internal/logformat"
	"ebbtide.dev/ebbtide/internal/webhook"
	"ebbtide.dev/ebbtide/internal/workload"
)

type flags struct {
	metricsAddress, probeAddress   string
	leaderElect, webhooks          bool
	evictionNotice                 bool
	shutdowns                      nodeshutdown.Options
	webhookAddress                 string
	webhookClient                  webhook.ClientCertificate
	namespace                      string
	qps                            float64
	burst                          int
	evacuationWorkers, nodeWorkers int
	// rollouts is not a flag: it is false only if rights are missing.
	rollouts                    bool
	jobNamespaces               []string
	prometheus                  *gate.Prometheus
	rolloutReplace              rollout.MachineKinds
	machines                    bool
	machineWorkers              int
	bridges                     bridge.Names
	evictionRequests            evictionrequest.Mode
	surge                       surge.Mode
	longestLock                 time.Duration
	remoteMemory, remotesMemory int64
	kubeconfigFields            workload.Allowances
	verbosity                   int
	logFormat                   logformat.Format
	version                     bool
}

// parseFlags reads the arguments into a set, which may have other flags.
func parseFlags(set *flag.FlagSet, args []string) (flags, error) {
	f := flags{rollouts: true, surge: surge.Annotated, evictionRequests: evictionrequest.ModeAuto, longestLock: budget.LongestLock, remoteMemory: workload.DefaultRemoteMemory, remotesMemory: workload.DefaultRemotesMemory}
	set.StringVar(&f.metricsAddress, "metrics-bind-address", ":8443",
		"address of the metrics endpoint, served over HTTPS to users authorized by the API server; 0 disables it")
	set.StringVar(&f.probeAddress, "health-probe-bind-address", ":8081",
		"address of /healthz and /readyz; 0 disables them")
	set.BoolVar(&f.webhooks, "webhooks", true, "serve the admission webhooks")
	set.StringVar(&f.webhookAddress, "webhook-bind-address", ":9443", "address of the admission webhooks, served over HTTPS")
	set.StringVar(&f.webhookClient.CAFile, "webhook-client-ca", "",
		"PEM file with the certificate authorities of the API server's client certificate; if unset, any client is accepted")
	set.Func("webhook-client-names", "comma-separated common names accepted in this certificate; if unset, any name is accepted",
		func(text string) error {
			f.webhookClient.Names = strings.Split(text, ",")
			return nil
		})
	set.BoolVar(&f.evictionNotice, "eviction-notice", true, "warn clients that evict pods of a node without a NodeMaintenance, once for each node, how one would drain it")
	addShutdownFlags(set, &f.shutdowns)
	set.BoolVar(&f.leaderElect, "leader-elect", true, "elect a leader among several managers")
	set.StringVar(&f.namespace, "namespace", "ebbtide-system", "namespace of the manager, its Leases, the Service and certificate of the webhooks, and the MachineDrainRules of NodeMaintenances")
	set.Float64Var(&f.qps, "kube-api-qps", 300, "API requests per second for each kind")
	set.IntVar(&f.burst, "kube-api-burst", 600, "burst of API requests for each kind")
	set.IntVar(&f.evacuationWorkers, "evacuation-workers", 32, "number of concurrently processed Evacuations")
	set.IntVar(&f.nodeWorkers, "node-workers", 16, "number of concurrently written nodes")
	set.BoolVar(&f.machines, "machines", false, "manage Machines and Clusters of ebbtide.dev; requires the rights of the chart value machines.enabled")
	set.IntVar(&f.machineWorkers, "machine-workers", 32, "number of concurrently processed Machines")
	addRolloutFlags(set, &f)
	addBridgeFlags(set, &f)
	set.Func("surge", "Deployments that surge: annotated (default), auto (all eligible ones) or off",
		func(text string) (err error) {
			f.surge, err = surge.ParseMode(text)
			return err
		})
	set.Func("longest-lock", "maximum duration of a PodDisruptionBudget lock after it was acquired or renewed (default 4h)",
		func(text string) (err error) {
			f.longestLock, err = parseLongestLock(text)
			return err
		})
	set.Func("remote-cluster-memory", "memory limit of a remote cluster, and a quarter of that of a namespace (default 256Mi, enough for 100,000 pods)",
		func(text string) (err error) {
			f.remoteMemory, err = parseMemory(text)
			return err
		})
	set.Func("remote-clusters-memory", "memory limit of all remote clusters; the largest is disconnected first (default 1Gi)",
		func(text string) (err error) {
			f.remotesMemory, err = parseMemory(text)
			return err
		})
	set.Func("allow-kubeconfig-fields", "comma-separated fields allowed in kubeconfigs of Clusters: proxy-url, insecure-skip-tls-verify (default none)",
		func(text string) (err error) {
			f.kubeconfigFields, err = workload.ParseAllowances(text)
			return err
		})
	addGateFlags(set, &f)
	set.IntVar(&f.verbosity, "v", 0, "log verbosity; 1 includes the reasons of decisions")
	f.logFormat.Flag(set)
	set.BoolVar(&f.version, "version", false, "print version and exit")
	err := set.Parse(args)
	return f, err
}

// addGateFlags adds the flags of gates of rollouts.
func addGateFlags(set *flag.FlagSet, f *flags) {
	set.Func("prometheus-url", "URL of the Prometheus that answers the queries of gates of NodeRollouts (e.g. http://prometheus.monitoring.svc:9090; default none)",
		func(text string) (err error) {
			f.prometheus, err = gate.NewPrometheus(text)
			return err
		})
}

// addRolloutFlags adds the flags of NodeRollouts.
func addRolloutFlags(set *flag.FlagSet, f *flags) {
	set.Func("rollout-job-namespaces", "comma-separated namespaces where NodeRollouts may create Jobs (default none); requires the rights of the chart value rollouts.jobNamespaces",
		func(text string) (err error) {
			f.jobNamespaces, err = parseNamespaces(text)
			return err
		})
	set.Func("rollout-replace", "comma-separated kinds of machines that NodeRollouts may delete: machines, cluster-api, openshift, karpenter (default none); requires the rights of the chart value rollouts.replace",
		func(text string) (err error) {
			f.rolloutReplace, err = rollout.ParseMachineKinds(text)
			return err
		})
}

// addBridgeFlags adds the flags of other controllers.
func addBridgeFlags(set *flag.FlagSet, f *flags) {
	set.Func("bridge", "comma-separated controllers to drain for: cluster-api, openshift, karpenter, cluster-autoscaler (default none)",
		func(text string) (err error) {
			f.bridges, err = bridge.ParseNames(text)
			return err
		})
	set.Func("eviction-requests", "role for EvictionRequests (lifecycle.k8s.io/v1alpha1): auto (default, controller unless another one runs), controller, member or off; requires the rights of the chart value evictionRequests.enabled",
		func(text string) (err error) {
			f.evictionRequests, err = evictionrequest.ParseMode(text)
			return err
		})
}

// addShutdownFlags adds the flags of node shutdowns.
func addShutdownFlags(set *flag.FlagSet, options *nodeshutdown.Options) {
	set.BoolFunc("complete-after-boot", "complete the NodeMaintenance of a shutdown once the node is up again (default true); if false, delete it yourself",
		func(text string) error {
			complete, err := strconv.ParseBool(text)
			options.StayCordoned = !complete
			return err
		})
	set.Func("shutdown-depth", "deepest type of pods to drain before a shutdown: Default, DaemonSet (default) or Static",
		func(text string) (err error) {
			options.Depth, err = nodeshutdown.ParseDepth(text)
			return err
		})
	set.Func("shutdown-priorities", "pod priorities that start another wave before a shutdown, as in the kubelet's shutdownGracePeriodByPodPriority (e.g. 0,1000,100000; default none)",
		func(text string) (err error) {
			options.Priorities, err = nodeshutdown.ParsePriorities(text)
			return err
		})
	set.Func("shutdown-delete-before", "time before a shutdown at which remaining pods are deleted regardless of PodDisruptionBudgets: 10s to 24h, or a percentage of the available time (default 30%, at least 10s and at most 5m)",
		func(text string) (err error) {
			options.DeleteBefore, err = nodeshutdown.ParseDeleteBefore(text)
			return err
		})
}

// webhookOptions returns the options of the webhooks.
func (f *flags) webhookOptions() webhook.Options {
	return webhook.Options{
		Address: f.webhookAddress, Namespace: f.namespace, Surge: f.surge, LongestLock: f.longestLock, EvictionNotice: f.evictionNotice,
		Client: f.webhookClient, MachineKinds: f.machineKinds(),
	}
}

// machineKinds returns the machines that NodeRollouts may delete. Ours are known only if they are
// managed.
func (f *flags) machineKinds() rollout.MachineKinds {
	return slices.DeleteFunc(slices.Clone(f.rolloutReplace), func(kind rollout.MachineKind) bool { return kind == rollout.OwnMachine && !f.machines })
}

// parseLongestLock reads a duration in which drains can confirm and renew their locks.
func parseLongestLock(text string) (time.Duration, error) {
	longest, err := time.ParseDuration(text)
	if err != nil {
		return 0, err
	}
	if longest < time.Minute {
		return 0, errors.New("must be at least 1m: shorter locks expire before drains can confirm or renew them")
	}
	return longest, nil
}

// parseNamespaces reads names of namespaces, and leaves out repeated ones.
func parseNamespaces(text string) (names []string, err error) {
	for name := range strings.SplitSeq(text, ",") {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return nil, fmt.Errorf("%q is no name of a namespace", name)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// leastMemory suffices for a few hundred nodes and their pods.
const leastMemory = 16 << 20

// parseMemory reads a number of bytes.
func parseMemory(text string) (int64, error) {
	memory, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, err
	}
	if memory.Value() < leastMemory {
		return 0, errors.New("must be at least 16Mi")
	}
	return memory.Value(), nil
}
