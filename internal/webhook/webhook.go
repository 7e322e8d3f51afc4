// Package webhook answers admission requests: it decodes them, reads what a decision needs, and
// returns the verdict and message of core. A dry run changes nothing. The chart's webhook
// configurations leave out the requests of our own manager. The certificate comes from a Secret
// that a hook of the chart or cert-manager fills, so nothing is mounted or restarted.
package webhook

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/kube"
)

// Options configures the webhooks.
type Options struct {
	// Surge selects the Deployments that surge.
	Surge surge.Mode
	// Address is the host:port to listen on; an empty host is all.
	Address string
	// Namespace holds the Service and the Secret with its certificate.
	Namespace string
	// LongestLock bounds the locks of PodDisruptionBudgets. Defaults to budget.LongestLock.
	LongestLock time.Duration
	// EvictionNotice warns callers of the eviction API once for each node that a NodeMaintenance
	// would drain it.
	EvictionNotice bool
	// EvictionRequests tracks whether lifecycle.k8s.io is served, so that evictions wait for the
	// responders of a pod; nil disables this. The manager starts it afterwards.
	EvictionRequests *kube.Served
	// Now returns the time, and whether the clock is skewed.
	Now kube.Now
	// Client is the certificate that the API server must present.
	Client ClientCertificate
	// MachineKinds are the machines that NodeRollouts may delete.
	MachineKinds rollout.MachineKinds
	// Certificate is served and updated.
	Certificate *Certificate
}

// Add returns the server of the webhooks, to be run beside the manager, and adds them to the manager's
// readiness. The manager's cache has kube.CacheOptions and kube.IndexFields.
func Add(mgr manager.Manager, options Options) (*Server, error) {
	direct, err := directClient(mgr)
	if err != nil {
		return nil, err
	}
	if err := options.Certificate.watch(mgr, options.Namespace); err != nil {
		return nil, err
	}
	kube.Register(crmetrics.Registry, options.Certificate)
	server, err := newServer(options)
	if err != nil {
		return nil, err
	}
	memory := newReviewMemory()
	moving := addResponders(mgr.GetClient(), mgr.GetCache(), options.EvictionRequests)
	for path, handler := range handlers(mgr, reviewer{direct}, moving, options) {
		refuse := refusal(wait)
		if path == daemonSetPods {
			refuse = letStart
		}
		answering := limited{handler, newNamespaceLimit(namespaceAtOnce, requestsAtOnce), refuse}
		server.server.Register(path, server.answer(reviewLimit{&webhook.Admission{Handler: bounded{answering}}, memory, refuse}))
	}
	informers, err := startInformers(mgr.GetCache())
	if err != nil {
		return nil, err
	}
	ready := &readiness{informers: informers, listens: server.server.StartedChecker()}
	if err := mgr.AddReadyzCheck("webhooks", ready.check); err != nil {
		return nil, fmt.Errorf("add the readiness check of the webhooks: %w", err)
	}
	return server, nil
}

// handlers maps the paths in the webhook configurations of the chart.
func handlers(mgr manager.Manager, reviews reviewer, moving *responders, options Options) map[string]admission.Handler {
	pods := registry{cached: mgr.GetClient(), live: reviews.client, surge: options.Surge}
	gate := newEvictionGate(pods, mgr.GetClient(), reviews.client, options)
	gate.responders = moving
	return map[string]admission.Handler{
		"/mutate/nodemaintenances":    maintenanceDefaulter{},
		"/mutate/noderollouts":        rolloutDefaulter{},
		daemonSetPods:                 newDaemonSetGate(mgr.GetScheme(), reviews.client),
		"/mutate/evacuations":         evacuationDefaulter{pods},
		"/validate/nodemaintenances":  maintenanceValidator{mgr.GetClient(), reviews, options.Now},
		"/validate/noderollouts":      rolloutValidator{mgr.GetClient(), reviews, options.Now, options.MachineKinds},
		"/validate/evacuations":       evacuationValidator{pods, reviews},
		"/validate/evacuation-status": evacuationStatusValidator{options.Now},
		"/validate/clusters":          clusterValidator{reviews},
		"/validate/machines":          machineValidator{reviews},
		"/validate/machinedrainrules": machineDrainRuleValidator{options.Namespace},
		"/validate/evictionrequests":  evictionRequestValidator{reviews},
		"/validate/evictions":         gate,
	}
}

// directClient returns a client without the manager's cache and rate limit, as the API server waits for
// us. It bounds the responses that it reads.
func directClient(mgr manager.Manager) (client.Client, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.QPS = -1
	capped := *mgr.GetHTTPClient()
	capped.Transport = boundedTransport{capped.Transport}
	direct, err := client.New(config, client.Options{
		HTTPClient: &capped, Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("create the client of the webhooks: %w", err)
	}
	return direct, nil
}
