// Package webhook answers the API server's admission requests: it decodes them,
// reads what a decision needs, calls core and answers in core's words.
//
// It never decides alone. A dry run changes nothing. The requests of our own
// manager do not come here: the webhook configurations of the chart leave them
// out, because the manager builds its objects from the same core.
package webhook

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/internal/core/surge"
)

// Options configures the webhooks.
type Options struct {
	// Surge says which Deployments surge.
	Surge surge.Mode
}

// Add registers the webhooks with the manager's webhook server. The manager's
// client reads from a cache with kube.CacheOptions and kube.IndexFields.
func Add(mgr manager.Manager, options Options) error {
	server := mgr.GetWebhookServer()
	for path, handler := range handlers(mgr, options) {
		server.Register(path, &webhook.Admission{Handler: handler})
	}
	return nil
}

// handlers are what answers under each path; the webhook configurations of the
// chart name the same paths.
func handlers(_ manager.Manager, _ Options) map[string]admission.Handler {
	return map[string]admission.Handler{}
}
