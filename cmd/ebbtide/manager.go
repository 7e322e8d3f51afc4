package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/right"
	"ebbtide.dev/ebbtide/internal/kube"
)

// waitsForKinds bounds the wait of a controller for readable kinds. After it, controller-runtime
// ends the manager with all of its parts.
const waitsForKinds = 365 * 24 * time.Hour

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create,namespace=release
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=ebbtide.dev,verbs=get;update,namespace=release
// +kubebuilder:rbac:groups="",resources=events,verbs=create,namespace=release
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// newConfig returns a config for the API server: writes pass the fence, and answers show the time.
func newConfig(f flags, fence *kube.Fence, skew *kube.Skew) (*rest.Config, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("load the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = float32(f.qps), f.burst
	// The API server would compress every event of every watch on its own, which costs
	// it more than the bytes cost a network inside of a cluster.
	config.DisableCompression = true
	kube.Bound(config, kube.RequestTimeout)
	skew.Measure(config)
	kube.Register(crmetrics.Registry, skew)
	fence.Guard(config)
	return config, nil
}

// newManager switches the parts off whose rights are missing, and says on the Lease of the
// leader which these are.
func newManager(ctx context.Context, f *flags, g guards) (manager.Manager, *rights, error) {
	config, err := newConfig(*f, g.fence, g.skew)
	if err != nil {
		return nil, nil, err
	}
	account, err := reviewRights(ctx, config, f)
	if err != nil {
		return nil, nil, err
	}
	missing, consistent := account.began.Optional(), true
	f.without(missing)
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme: newScheme(),
		Cache:  kube.ManagerCacheOptions(f.namespace),
		// A kind of an optional part that cannot be read, for whatever reason, holds up that part.
		NewCache: kube.NewCacheApart(func(r schema.GroupResource) bool {
			return account.needs.Lists(right.Core, r.Group, r.Resource)
		}),
		Controller: ctrlconfig.Controller{CacheSyncTimeout: waitsForKinds},
		Client:     client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &consistent}},
		Metrics: metricsserver.Options{
			BindAddress: f.metricsAddress, SecureServing: true,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
			TLSOpts: []func(*tls.Config){func(c *tls.Config) {
				c.MinVersion = tls.VersionTLS13
				// Without webhooks there may be no certificate that anybody knows.
				if f.webhooks {
					c.GetCertificate = g.certificate.Get
				}
			}},
		},
		HealthProbeBindAddress:        f.probeAddress,
		LeaderElection:                f.leaderElect,
		LeaderElectionID:              kube.LeaderLease,
		LeaderElectionNamespace:       f.namespace,
		LeaderElectionLabels:          map[string]string{v1alpha1.MissingRightsLabel: right.Label(missing)},
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("set up the manager: %w", err)
	}
	return mgr, account, nil
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}
