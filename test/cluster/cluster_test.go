package cluster_test

import (
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

func TestAnAPIServerAloneServesOurKinds(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	if err := c.Client.List(t.Context(), &v1alpha1.NodeMaintenanceList{}); err != nil {
		t.Errorf("list NodeMaintenances: %v", err)
	}
	if err := c.Client.List(t.Context(), &v1alpha1.EvacuationList{}, client.InNamespace(c.Namespace(t))); err != nil {
		t.Errorf("list Evacuations: %v", err)
	}
}
