package webhook

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// cachedKinds are the kinds that responses read from the cache.
func cachedKinds() []client.Object {
	return []client.Object{
		&corev1.Node{}, &corev1.Pod{}, &appsv1.ReplicaSet{}, &appsv1.Deployment{}, &v1alpha1.Evacuation{}, &v1alpha1.NodeMaintenance{},
	}
}

// informers are the watches of cachedKinds. A replica that does not lead has no controllers that
// would start them.
type informers map[string]cache.Informer

// startInformers lets the cache watch cachedKinds from its start.
func startInformers(objects cache.Cache) (informers, error) {
	started := informers{}
	for _, kind := range cachedKinds() {
		informer, err := objects.GetInformer(context.Background(), kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch %T for the webhooks: %w", kind, err)
		}
		started[fmt.Sprintf("%T", kind)] = informer
	}
	return started, nil
}

// synced returns an error that names a kind that is not synced yet.
func (i informers) synced() error {
	for kind, informer := range i {
		if !informer.HasSynced() {
			return fmt.Errorf("the cache of %s is not synced yet", kind)
		}
	}
	return nil
}
