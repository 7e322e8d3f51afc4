package main

import (
	"errors"
	"flag"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/nodeshutdown"
	"ebbtide.dev/ebbtide/internal/core/surge"
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
	machines                       bool
	machineWorkers                 int
	bridges                        bridge.Names
	evictionRequests               evictionrequest.Mode
	surge                          surge.Mode
	longestLock                    time.Duration
	remoteMemory, remotesMemory    int64
	kubeconfigFields               workload.Allowances
	verbosity                      int
	logFormat                      logformat.Format
	version                        bool
}

// parseFlags reads the arguments into a set, which may have flags of others.
//
// Errors: as the set has them.
func parseFlags(set *flag.FlagSet, args []string) (flags, error) {
	f := flags{surge: surge.Annotated, evictionRequests: evictionrequest.ModeAuto, longestLock: budget.LongestLock, remoteMemory: workload.DefaultRemoteMemory, remotesMemory: workload.DefaultRemotesMemory}
	set.StringVar(&f.metricsAddress, "metrics-bind-address", ":8443",
		"address of the metrics, served over HTTPS to whom the API server lets; 0 serves none")
	set.StringVar(&f.probeAddress, "health-probe-bind-address", ":8081",
		"address of /healthz and /readyz; 0 serves none")
	set.BoolVar(&f.webhooks, "webhooks", true, "answer the API server's admission requests")
	set.StringVar(&f.webhookAddress, "webhook-bind-address", ":9443", "address that admission requests come to, over HTTPS")
	set.StringVar(&f.webhookClient.CAFile, "webhook-client-ca", "",
		"PEM file with the authorities of the certificate that the API server shows to webhooks; without it whoever reaches the port is answered")
	set.Func("webhook-client-names", "common names that this certificate may have, separated by commas; without them any name of these authorities",
		func(text string) error {
			f.webhookClient.Names = strings.Split(text, ",")
			return nil
		})
	set.BoolVar(&f.evictionNotice, "eviction-notice", true, "tell those who evict the pods of a node that no NodeMaintenance selects, once for each node, how one would drain it")
	ofShutdowns(set, &f.shutdowns)
	set.BoolVar(&f.leaderElect, "leader-elect", true, "let only one of several managers act")
	set.StringVar(&f.namespace, "namespace", "ebbtide-system", "namespace of the manager: of its leases, of the webhooks' Service and certificate, and of MachineDrainRules for NodeMaintenances")
	set.Float64Var(&f.qps, "kube-api-qps", 300, "API requests per second and kind of object, on average")
	set.IntVar(&f.burst, "kube-api-burst", 600, "API requests per kind of object at once")
	set.IntVar(&f.evacuationWorkers, "evacuation-workers", 32, "Evacuations that are worked on at the same time")
	set.IntVar(&f.nodeWorkers, "node-workers", 16, "nodes that are written to at the same time")
	set.BoolVar(&f.machines, "machines", false, "act on Machines and Clusters of ebbtide.dev, which needs the rights that the chart gives with machines.enabled")
	set.IntVar(&f.machineWorkers, "machine-workers", 32, "Machines that are worked on at the same time")
	ofOthers(set, &f)
	set.Func("surge", "Deployments whose pods are moved by surging: annotated (default), auto for every eligible one, or off",
		func(text string) (err error) {
			f.surge, err = surge.ParseMode(text)
			return err
		})
	set.Func("longest-lock", "how long the lock of a PodDisruptionBudget holds at the most after it was taken or renewed (default 4h)",
		func(text string) (err error) {
			f.longestLock, err = parseLongestLock(text)
			return err
		})
	set.Func("remote-cluster-memory", "memory that a cluster by kubeconfig may take, as far as it is counted, and all of a namespace four times (default 256Mi: enough for 100,000 pods)",
		func(text string) (err error) {
			f.remoteMemory, err = parseMemory(text)
			return err
		})
	set.Func("remote-clusters-memory", "memory that all clusters by kubeconfig may take together, as far as it is counted; who takes the most is disconnected first (default 1Gi)",
		func(text string) (err error) {
			f.remotesMemory, err = parseMemory(text)
			return err
		})
	set.Func("allow-kubeconfig-fields", "fields that kubeconfigs of Clusters may have, separated by commas: proxy-url, insecure-skip-tls-verify (default none)",
		func(text string) (err error) {
			f.kubeconfigFields, err = workload.ParseAllowances(text)
			return err
		})
	set.IntVar(&f.verbosity, "v", 0, "verbosity of the log; 1 says why something was done or not")
	f.logFormat.Flag(set)
	set.BoolVar(&f.version, "version", false, "say which version this is, and end")
	err := set.Parse(args)
	return f, err
}

// ofOthers adds the flags about what Ebbtide does for other controllers.
func ofOthers(set *flag.FlagSet, f *flags) {
	set.Func("bridge", "whose machines and nodes are drained for their controllers, separated by commas: cluster-api, openshift, karpenter, cluster-autoscaler (default none)",
		func(text string) (err error) {
			f.bridges, err = bridge.ParseNames(text)
			return err
		})
	set.Func("eviction-requests", "what Ebbtide does where the API server serves EvictionRequests (lifecycle.k8s.io/v1alpha1), which needs the rights that the chart gives with evictionRequests.enabled: auto answers them while nobody else does (default), controller always, member never, off nothing at all",
		func(text string) (err error) {
			f.evictionRequests, err = evictionrequest.ParseMode(text)
			return err
		})
}

// ofShutdowns adds the flags about nodes that shut down.
func ofShutdowns(set *flag.FlagSet, options *nodeshutdown.Options) {
	set.BoolFunc("complete-after-boot", "give a node back that was drained because it shut down, when it is up again (default true); without it a person deletes its NodeMaintenance",
		func(text string) error {
			complete, err := strconv.ParseBool(text)
			options.StayCordoned = !complete
			return err
		})
	set.Func("shutdown-depth", "pods that leave a node that shuts down: Default, DaemonSet (default) for those and DaemonSets, or Static for all",
		func(text string) (err error) {
			options.Depth, err = nodeshutdown.ParseDepth(text)
			return err
		})
	set.Func("shutdown-priorities", "priorities at which pods of a node that shuts down leave in another step, as in the kubelet's shutdownGracePeriodByPodPriority, such as 0,1000,100000 (default: pods of users leave at once)",
		func(text string) (err error) {
			options.Priorities, err = nodeshutdown.ParsePriorities(text)
			return err
		})
	set.Func("shutdown-delete-before", "how long before the node goes down pods that are left are deleted past their budgets: 10s to 24h, or a percentage of the time they have (default 30%, at least 10s and at most 5m)",
		func(text string) (err error) {
			options.DeleteBefore, err = nodeshutdown.ParseDeleteBefore(text)
			return err
		})
}

// webhookOptions are what the flags say about admission.
func (f *flags) webhookOptions() webhook.Options {
	return webhook.Options{
		Address: f.webhookAddress, Namespace: f.namespace, Surge: f.surge, LongestLock: f.longestLock, EvictionNotice: f.evictionNotice,
		Client: f.webhookClient,
	}
}

// parseLongestLock refuses what would leave every lock without force, or have those of
// drains end before they are confirmed or renewed.
func parseLongestLock(text string) (time.Duration, error) {
	longest, err := time.ParseDuration(text)
	if err != nil {
		return 0, err
	}
	if longest < time.Minute {
		return 0, errors.New("must be at least 1m, such as 4h: shorter locks end before drains can confirm or renew them")
	}
	return longest, nil
}

// leastMemory is what is needed to read a few hundred nodes and their pods.
const leastMemory = 16 << 20

// parseMemory reads a number of bytes.
func parseMemory(text string) (int64, error) {
	memory, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, err
	}
	if memory.Value() < leastMemory {
		return 0, errors.New("must be at least 16Mi, such as 256Mi: no cluster can be read with less")
	}
	return memory.Value(), nil
}
