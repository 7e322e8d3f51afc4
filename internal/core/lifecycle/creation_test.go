package lifecycle_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
)

type born struct {
	story
	phase v1alpha1.MachinePhase
}

func TestCreation(t *testing.T) {
	t.Parallel()
	for name, c := range creations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
			s := c.of()
			if c.change != nil {
				c.change(&s)
			}
			if got := lifecycle.Decide(s).Status.Phase; got != c.phase {
				t.Errorf("phase %s, want %s", got, c.phase)
			}
		})
	}
}

func bootstrapped() lifecycle.Snapshot {
	s := running()
	s.Machine.Spec.ProviderID, s.Machine.Status.NodeRef, s.Nodes = "", nil, nil
	s.Infrastructure = read(lifecycle.External{Kind: "DockerMachine", Name: "worker-1"})
	return s
}

func provisioned() lifecycle.Snapshot {
	s := running()
	s.Machine.Status.NodeRef, s.Nodes = nil, nil
	return s
}

var creations = map[string]born{
	"the finalizer comes first":         {story{newborn, func(s *lifecycle.Snapshot) { s.Machine.Finalizers = nil }, "WaitingForBootstrap, add finalizer", "", ""}, v1alpha1.MachinePending},
	"bootstrap config is adopted":       {story{newborn, nil, "WaitingForBootstrap, adopt bootstrap", "BootstrapReady=False/NotReady", ""}, v1alpha1.MachinePending},
	"bootstrap data is waited for":      {story{newborn, func(s *lifecycle.Snapshot) { own(s.Bootstrap.Object) }, "WaitingForBootstrap", "BootstrapReady=False/NotReady", ""}, v1alpha1.MachinePending},
	"bootstrap data without its Secret": {story{newborn, func(s *lifecycle.Snapshot) { own(s.Bootstrap.Object); s.Bootstrap.Object.Ready = true }, "WaitingForBootstrap", "BootstrapReady=False/NotReady", ""}, v1alpha1.MachinePending},
	"bootstrap config does not exist":   {story{newborn, func(s *lifecycle.Snapshot) { s.Bootstrap = &lifecycle.Reading[lifecycle.External]{} }, "WaitingForBootstrap", "BootstrapReady=False/NotFound", "NotFound"}, v1alpha1.MachinePending},
	"bootstrap config has failed": {story{newborn, func(s *lifecycle.Snapshot) {
		own(s.Bootstrap.Object)
		s.Bootstrap.Object.Failure = "InvalidConfiguration: no such token"
	}, "WaitingForBootstrap", "BootstrapReady=False/Failed", "Failed"}, v1alpha1.MachineFailed},
	"no bootstrap config is named":  {story{newborn, func(s *lifecycle.Snapshot) { s.Bootstrap, s.Machine.Spec.Bootstrap.ConfigRef = nil, nil }, "WaitingForInfrastructure, adopt infrastructure", "BootstrapReady=True/Ready", ""}, v1alpha1.MachineProvisioning},
	"infrastructure is adopted":     {story{bootstrapped, nil, "WaitingForInfrastructure, adopt infrastructure", "", ""}, v1alpha1.MachineProvisioning},
	"infrastructure is waited for":  {story{bootstrapped, func(s *lifecycle.Snapshot) { own(s.Infrastructure.Object) }, "WaitingForInfrastructure", "InfrastructureReady=False/NotReady", ""}, v1alpha1.MachineProvisioning},
	"infrastructure does not exist": {story{bootstrapped, func(s *lifecycle.Snapshot) { s.Infrastructure = lifecycle.Reading[lifecycle.External]{} }, "WaitingForInfrastructure", "InfrastructureReady=False/NotFound", "NotFound"}, v1alpha1.MachineProvisioning},
	"infrastructure cannot be read": {story{bootstrapped, func(s *lifecycle.Snapshot) {
		s.Infrastructure = lifecycle.Reading[lifecycle.External]{Problem: "no kind DockerMachine"}
	}, "WaitingForInfrastructure", "InfrastructureReady=Unknown/Unknown", "Unknown"}, v1alpha1.MachineProvisioning},
	"infrastructure belongs to another Machine": {story{bootstrapped, foreignInfrastructure, "WaitingForInfrastructure", "InfrastructureReady=False/NotOwned", "NotOwned"}, v1alpha1.MachineProvisioning},
	"infrastructure is being deleted":           {story{bootstrapped, func(s *lifecycle.Snapshot) { s.Infrastructure.Object.Deleting = true }, "WaitingForInfrastructure", "InfrastructureReady=False/NotReady", ""}, v1alpha1.MachineProvisioning},
	"infrastructure is against the contract": {story{bootstrapped, func(s *lifecycle.Snapshot) {
		own(s.Infrastructure.Object)
		s.Infrastructure.Object.Fault = "status.ready is no boolean"
	}, "WaitingForInfrastructure", "InfrastructureReady=False/NotReady", ""}, v1alpha1.MachineProvisioning},
	"infrastructure has failed": {story{bootstrapped, func(s *lifecycle.Snapshot) {
		own(s.Infrastructure.Object)
		s.Infrastructure.Object.Failure = "CreateError: quota"
	}, "WaitingForInfrastructure", "InfrastructureReady=False/Failed", "Failed"}, v1alpha1.MachineFailed},
	"infrastructure is ready without providerID": {story{bootstrapped, func(s *lifecycle.Snapshot) { own(s.Infrastructure.Object); s.Infrastructure.Object.Ready = true }, "WaitingForInfrastructure", "InfrastructureReady=False/NotReady", ""}, v1alpha1.MachineProvisioning},
	"providerID is recorded":                     {story{provisioned, func(s *lifecycle.Snapshot) { s.Machine.Spec.ProviderID = "" }, "WaitingForInfrastructure, record, set providerID docker://worker-1", "", ""}, v1alpha1.MachineProvisioning},
	"the Machine has another providerID":         {story{provisioned, func(s *lifecycle.Snapshot) { s.Machine.Spec.ProviderID = "docker://mine" }, "WaitingForInfrastructure", "InfrastructureReady=False/NotReady", ""}, v1alpha1.MachineProvisioning},
	"the Node is waited for":                     {story{provisioned, nil, "WaitingForNode", "NodeReady=False/NotReady", ""}, v1alpha1.MachineProvisioned},
	"the Node is waited for, whatever becomes of the infrastructure's reading": {story{provisioned, func(s *lifecycle.Snapshot) {
		s.Infrastructure = lifecycle.Reading[lifecycle.External]{Problem: "timeout"}
	}, "WaitingForNode", "", "Unknown"}, v1alpha1.MachineProvisioned},
	"nodes cannot be read":                  {story{provisioned, func(s *lifecycle.Snapshot) { s.NodesProblem = "connection refused" }, "WaitingForNode", "NodeReady=Unknown/Unknown", "Unknown"}, v1alpha1.MachineProvisioned},
	"two Nodes have the providerID":         {story{provisioned, twins, "WaitingForNode", "NodeReady=Unknown/Ambiguous", "Ambiguous"}, v1alpha1.MachineProvisioned},
	"the Node is recorded":                  {story{running, func(s *lifecycle.Snapshot) { s.Machine.Status.NodeRef = nil }, "WaitingForNode, record", "", ""}, v1alpha1.MachineRunning},
	"it runs":                               {story{running, nil, "Running", "", ""}, v1alpha1.MachineRunning},
	"it runs, its bootstrap config is gone": {story{running, func(s *lifecycle.Snapshot) { s.Bootstrap = &lifecycle.Reading[lifecycle.External]{} }, "Running", "BootstrapReady=True/Ready", ""}, v1alpha1.MachineRunning},
	"it ran, its infrastructure is gone":    {story{running, func(s *lifecycle.Snapshot) { s.Infrastructure = lifecycle.Reading[lifecycle.External]{} }, "WaitingForInfrastructure", "InfrastructureReady=False/NotFound", "NotFound"}, v1alpha1.MachineFailed},
	"it runs, its Node is gone":             {story{running, func(s *lifecycle.Snapshot) { s.Nodes = nil }, "Running", "NodeReady=False/NotFound", "NotFound"}, v1alpha1.MachineRunning},
	"it runs and does not look at its Node": {story{running, func(s *lifecycle.Snapshot) { s.Nodes, s.NodesUnneeded = nil, true }, "Running", "NodeReady=True/Ready", ""}, v1alpha1.MachineRunning},
	"the Cluster does not exist": {story{newborn, func(s *lifecycle.Snapshot) {
		s.Cluster, s.Machine.Finalizers = lifecycle.Reading[v1alpha1.Cluster]{}, nil
	}, "WaitingForPreCreateHook", "Creatable=False/NotFound", "NotFound"}, v1alpha1.MachinePending},
	"a hook and a providerID of its own": {story{newborn, func(s *lifecycle.Snapshot) {
		s.Machine.Spec.ProviderID = "docker://worker-1"
		s.Machine.Spec.LifecycleHooks.PreCreate = hook("IPAMController")
	}, "WaitingForPreCreateHook", "", "HeldByHooks"}, v1alpha1.MachinePending},
}

// TestCluster: a Cluster that is paused, or of which that is not known, stops everything.
func TestCluster(t *testing.T) {
	t.Parallel()
	paused := func(s *lifecycle.Snapshot) { s.Cluster.Object.Spec.Paused = true }
	unknown := func(s *lifecycle.Snapshot) {
		s.Cluster = lifecycle.Reading[v1alpha1.Cluster]{Problem: "etcd has no leader"}
	}
	run(t, map[string]story{
		"paused newborn":  {newborn, paused, "Paused", "Paused=True/Paused", ""},
		"paused deletion": {terminating, paused, "Paused", "Deleting=absent Paused=True/Paused", ""},
		"not paused any more": {running, func(s *lifecycle.Snapshot) {
			s.Machine.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue}}
		}, "Running", "Paused=absent", ""},
		"unknown newborn":                         {newborn, unknown, "Unknown", "Creatable=Unknown/Unknown", "Unknown"},
		"unknown while it runs":                   {running, unknown, "Unknown", "NodeReady=Unknown/Unknown", "Unknown"},
		"unknown deletion":                        {terminating, unknown, "Unknown", "Deleting=True/Unknown", "Unknown"},
		"a Machine that we do not hold is let go": {deleted, func(s *lifecycle.Snapshot) { s.Machine.Finalizers = []string{"other.example.com"} }, "Released", "", ""},
	})
}

func foreignInfrastructure(s *lifecycle.Snapshot) {
	s.Infrastructure.Object.Owned = false
	s.Infrastructure.Object.Controller = &metav1.OwnerReference{Kind: "Machine", Name: "worker-2", UID: "other-uid"}
}

func twins(s *lifecycle.Snapshot) {
	s.Nodes = nil
	for _, name := range []string{"node-2", "node-1"} {
		s.Nodes = append(s.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: "docker://worker-1"}})
	}
}
