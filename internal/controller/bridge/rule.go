package bridge

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/drainrule"
	"ebbtide.dev/ebbtide/internal/kube"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=machinedrainrules,verbs=list;watch

// observeRules reads the MachineDrainRules that are meant for a Machine: those of Cluster
// API and ours, of its namespace.
func (r *reconciler) observeRules(ctx context.Context, seen *observed) error {
	namespace := seen.Machine.Ref.Namespace
	var ours v1alpha1.MachineDrainRuleList
	if err := r.client.List(ctx, &ours, client.InNamespace(namespace), client.DisableReadYourWritesConsistency); err != nil {
		return fmt.Errorf("list the MachineDrainRules of namespace %s: %w", namespace, err)
	}
	theirs, err := r.kinds.list(ctx, core.ClusterAPIRule, client.InNamespace(namespace))
	if err != nil {
		return fmt.Errorf("list the MachineDrainRules of Cluster API in namespace %s: %w", namespace, err)
	}
	all := kube.Pointers(ours.Items)
	for i := range theirs {
		rule := &v1alpha1.MachineDrainRule{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(theirs[i].Object, rule); err != nil {
			return fmt.Errorf("read MachineDrainRule %s/%s of Cluster API: %w", namespace, theirs[i].GetName(), err)
		}
		all = append(all, rule)
	}
	var around map[string]string
	if seen.Around != nil {
		around = seen.Around.Labels
	}
	seen.rules = drainrule.ForMachine(all, seen.Machine.Labels, around)
	seen.Ruled = !seen.rules.None()
	return nil
}
