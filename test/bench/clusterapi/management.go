package main

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// The management cluster holds one Machine, whose rules are beside it.
var (
	inManagement = metav1.ObjectMeta{Namespace: "bench", Name: "bench"}
	machine      = &clusterv1.Machine{ObjectMeta: inManagement}
	cluster      = &clusterv1.Cluster{ObjectMeta: inManagement}
)

// newManagement is a management cluster in memory. Its MachineDrainRules have the
// pods of the benchmark's Deployments app-1, app-2 and so on leave one after the
// other, so many of them.
func newManagement(orders int) (client.Client, error) {
	if err := clusterv1.AddToScheme(scheme.Scheme); err != nil {
		return nil, fmt.Errorf("register Cluster API types: %w", err)
	}
	management := fake.NewClientBuilder().WithScheme(scheme.Scheme)
	for order := 1; order <= orders; order++ {
		name := fmt.Sprintf("app-%d", order)
		management.WithObjects(&clusterv1.MachineDrainRule{
			ObjectMeta: metav1.ObjectMeta{Namespace: inManagement.Namespace, Name: name},
			Spec: clusterv1.MachineDrainRuleSpec{
				Drain: clusterv1.MachineDrainRuleDrainConfig{
					Behavior: clusterv1.MachineDrainRuleDrainBehaviorDrain, Order: new(int32(order)),
				},
				Pods: []clusterv1.MachineDrainRulePodSelector{{
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
				}},
			},
		})
	}
	return management.Build(), nil
}
