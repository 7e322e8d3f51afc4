package webhook

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/fault"
)

// machineOf is a Machine whose infrastructure is a ConfigMap, which the API
// server knows, and whose bootstrap config is of a kind that it does not know.
func machineOf(namespace, name string) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.MachineSpec{
			ClusterName:       "east",
			InfrastructureRef: v1alpha1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: name},
			Bootstrap: v1alpha1.MachineBootstrap{
				ConfigRef: &v1alpha1.ObjectReference{APIVersion: "boot.example.com/v1", Kind: "BareConfig", Name: name},
			},
		},
	}
}

// An answer that nobody could give is no yes.
func TestAMachineWhoseClusterCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	api := fault.NewServer(t)
	api.Refuse = func(string) error { return context.Canceled }
	response := machineValidator{reviewer{api.Manager}}.Handle(t.Context(), creation(t, machineOf("fleet", "m")))
	if response.Allowed || !strings.Contains(response.Result.Message, "get Cluster east: ") {
		t.Errorf("answer %+v, want a refusal because the Cluster could not be read", response)
	}
}
