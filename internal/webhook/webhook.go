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

	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/internal/kube"
)

// Options configures the webhooks.
type Options struct {
	// Surge says which Deployments surge.
	Surge surge.Mode
	// Address is where the server listens, host:port; an empty host is all.
	Address string
	// Namespace is where our Service and the Secret of its certificate are.
	Namespace string
	// LongestLock is how long a lock of a disruption budget may hold. Defaults to
	// budget.LongestLock.
	LongestLock time.Duration
	// EvictionNotice has those who evict the pods of a node told once how a
	// NodeMaintenance would drain it.
	EvictionNotice bool
	// EvictionRequests knows whether lifecycle.k8s.io is served, so that those who evict wait
	// for the responders of a pod in their turn; nil never asks for it. It is to be begun by
	// the manager afterwards.
	EvictionRequests *kube.Served
	// Now is what time it is, and why that is not believed.
	Now kube.Now
	// Client is what the API server has to show.
	Client ClientCertificate
	// Certificate is served, and kept up to date.
	Certificate *Certificate
}

// Add returns what serves the webhooks beside the manager, and makes the manager's
// readiness wait until the API server can call them. The manager's client reads from a
// cache with kube.CacheOptions and kube.IndexFields.
//
// Errors: the address is none, the file of authorities cannot be used, or the manager
// does not take what we add.
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
		server.register(path, reviewLimit{&webhook.Admission{Handler: bounded{answering}}, memory, refuse})
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

// handlers are what answers under each path; the webhook configurations of the
// chart name the same paths.
func handlers(mgr manager.Manager, reviews reviewer, moving *responders, options Options) map[string]admission.Handler {
	pods := registry{cached: mgr.GetClient(), live: reviews.client, surge: options.Surge}
	gate := newEvictionGate(pods, mgr.GetClient(), reviews.client, options)
	gate.responders = moving
	return map[string]admission.Handler{
		"/mutate/nodemaintenances":    maintenanceDefaulter{},
		daemonSetPods:                 newDaemonSetGate(mgr.GetScheme(), reviews.client),
		"/mutate/evacuations":         evacuationDefaulter{pods},
		"/validate/nodemaintenances":  maintenanceValidator{mgr.GetClient(), reviews, options.Now},
		"/validate/evacuations":       evacuationValidator{pods, reviews},
		"/validate/evacuation-status": evacuationStatusValidator{options.Now},
		"/validate/clusters":          clusterValidator{reviews},
		"/validate/machines":          machineValidator{reviews},
		"/validate/machinedrainrules": machineDrainRuleValidator{options.Namespace},
		"/validate/evictionrequests":  evictionRequestValidator{reviews},
		"/validate/evictions":         gate,
	}
}

// directClient reads and writes without the manager's cache and without its
// limit: the API server waits for our answer, and limits us itself. It reads no answer that
// is larger than any object, and than the budgets of almost any namespace.
func directClient(mgr manager.Manager) (client.Client, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.QPS = -1
	capped := *mgr.GetHTTPClient()
	capped.Transport = boundedTransport{capped.Transport}
	direct, err := client.New(config, client.Options{
		HTTPClient: &capped, Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("make the client of the webhooks: %w", err)
	}
	return direct, nil
}
