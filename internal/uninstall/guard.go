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
	// guardName is a ConfigMap in Ebbtide's namespace. While it exists, the policy of the same name
	// rejects new objects.
	guardName = "ebbtide-uninstall"
	// closesWithin bounds the delay until API servers see it.
	closesWithin = 15 * time.Second
)

// guard is the creation guard: it prevents new objects that no manager would end.
type guard struct {
	client    client.Client
	namespace string
}

func (d guard) object() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: guardName}}
}

// close creates the guard and waits until the API server rejects new objects. It returns false if the
// policy is not installed.
//
// Errors: the guard cannot be created, or no manager answers.
func (d guard) close(ctx context.Context) (bool, error) {
	if err := d.client.Create(ctx, d.object()); err != nil && !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("create ConfigMap %s/%s, which prevents new NodeMaintenances: %w", d.namespace, guardName, err)
	}
	ctx, cancel := context.WithTimeout(ctx, closesWithin)
	defer cancel()
	for {
		err := d.client.Create(ctx, probe(), client.DryRunAll)
		switch {
		case err != nil && apierror.Policy(err.Error()) == guardName:
			return true, nil
		case err != nil && ctx.Err() == nil && !notCalled(err):
			return false, fmt.Errorf("check whether NodeMaintenances are rejected: %w", err)
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

// open removes the guard.
func (d guard) open(ctx context.Context) error {
	if err := d.client.Delete(ctx, d.object()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ConfigMap %s/%s, which prevents new NodeMaintenances: %w", d.namespace, guardName, err)
	}
	return nil
}

// probe returns a maintenance of a node that does not exist, for a dry run.
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
