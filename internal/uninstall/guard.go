package uninstall

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/apierror"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// doorName is the ConfigMap in Ebbtide's namespace while which exists the policy of
	// the same name lets nobody begin anything.
	doorName = "ebbtide-uninstall"
	// closesWithin is how long API servers may take to see it.
	closesWithin = 15 * time.Second
)

// door keeps others from beginning what nobody would end any more.
type door struct {
	client    client.Client
	namespace string
}

func (d door) object() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: doorName}}
}

// close has the API server refuse what begins something, and returns when it does. It is
// false if it goes on to let it through, because the policy is not installed.
//
// Errors: it cannot be closed, or no manager answers.
func (d door) close(ctx context.Context) (bool, error) {
	if err := d.client.Create(ctx, d.object()); err != nil && !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("create ConfigMap %s/%s, while which exists nothing is begun: %w", d.namespace, doorName, err)
	}
	ctx, cancel := context.WithTimeout(ctx, closesWithin)
	defer cancel()
	for {
		err := d.client.Create(ctx, probe(), client.DryRunAll)
		switch {
		case err != nil && apierror.Policy(err.Error()) == doorName:
			return true, nil
		case err != nil && ctx.Err() == nil && !notCalled(err):
			return false, fmt.Errorf("ask whether a NodeMaintenance could still be created: %w", err)
		}
		if kube.Wait(ctx, betweenCalls) {
			continue
		}
		if err != nil && notCalled(err) {
			return false, noManager(err)
		}
		return false, nil
	}
}

// open lets others begin again.
func (d door) open(ctx context.Context) error {
	if err := d.client.Delete(ctx, d.object()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ConfigMap %s/%s, while which exists nothing can be begun: %w", d.namespace, doorName, err)
	}
	return nil
}

// probe is a plan for a node that does not exist. It is never stored.
func probe() *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "ebbtide-probe-"},
		Spec: v1alpha1.NodeMaintenanceSpec{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"no-node"}},
			}},
		}}},
	}
}
