package lifecycle_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lifecycle"
)

// born is a story of a creation, with the phase that it is in.
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

// bootstrapped is a Machine whose bootstrap data is there.
func bootstrapped() lifecycle.Snapshot {
	s := running()
	s.Machine.Spec.ProviderID, s.Machine.Status.NodeRef, s.Nodes = "", nil, nil
	s.Infrastructure = read(lifecycle.External{Kind: "DockerMachine", Name: "worker-1"})
	return s
}

// provisioned is a Machine whose Node is waited for.
func provisioned() lifecycle.Snapshot {
	s := running()
	s.Machine.Status.NodeRef, s.Nodes = nil, nil
	return s
}

var creations = map[string]born{
	"the finalizer comes first": {story{
		of: newborn, change: func(s *lifecycle.Snapshot) { s.Machine.Finalizers = nil },
		does: "WaitingForBootstrap, add finalizer",
	}, v1alpha1.MachinePending},
	"bootstrap config is adopted": {story{
		of: newborn, does: "WaitingForBootstrap, adopt bootstrap",
		says: map[string]string{v1alpha1.ConditionBootstrapReady: "False/NotReady"},
	}, v1alpha1.MachinePending},
	"bootstrap data is waited for": {story{
		of: newborn, change: func(s *lifecycle.Snapshot) { own(s.Bootstrap.Object) },
		does: "WaitingForBootstrap",
		says: map[string]string{v1alpha1.ConditionBootstrapReady: "False/NotReady"},
	}, v1alpha1.MachinePending},
	"bootstrap data without its Secret": {story{
		of: newborn, change: func(s *lifecycle.Snapshot) { own(s.Bootstrap.Object); s.Bootstrap.Object.Ready = true },
		does: "WaitingForBootstrap",
		says: map[string]string{v1alpha1.ConditionBootstrapReady: "False/NotReady"},
	}, v1alpha1.MachinePending},
	"bootstrap config does not exist": {story{
		of: newborn, change: func(s *lifecycle.Snapshot) { s.Bootstrap = &lifecycle.Reading[lifecycle.External]{} },
		does:   "WaitingForBootstrap",
		says:   map[string]string{v1alpha1.ConditionBootstrapReady: "False/NotFound"},
		events: []string{"NotFound"},
	}, v1alpha1.MachinePending},
	"bootstrap config has failed": {story{
		of: newborn, change: func(s *lifecycle.Snapshot) {
			own(s.Bootstrap.Object)
			s.Bootstrap.Object.Failure = "InvalidConfiguration: no such token"
		},
		does:   "WaitingForBootstrap",
		says:   map[string]string{v1alpha1.ConditionBootstrapReady: "False/Failed"},
		events: []string{"Failed"},
	}, v1alpha1.MachineFailed},
	"no bootstrap config is named": {story{
		of: newborn, change: func(s *lifecycle.Snapshot) { s.Bootstrap, s.Machine.Spec.Bootstrap.ConfigRef = nil, nil },
		does: "WaitingForInfrastructure, adopt infrastructure",
		says: map[string]string{v1alpha1.ConditionBootstrapReady: "True/Ready"},
	}, v1alpha1.MachineProvisioning},
	"infrastructure is adopted": {story{of: bootstrapped, does: "WaitingForInfrastructure, adopt infrastructure"}, v1alpha1.MachineProvisioning},
	"infrastructure is waited for": {story{
		of: bootstrapped, change: func(s *lifecycle.Snapshot) { own(s.Infrastructure.Object) },
		does: "WaitingForInfrastructure",
		says: map[string]string{infraCondition: "False/NotReady"},
	}, v1alpha1.MachineProvisioning},
	"infrastructure does not exist": {story{
		of: bootstrapped, change: func(s *lifecycle.Snapshot) { s.Infrastructure = lifecycle.Reading[lifecycle.External]{} },
		does:   "WaitingForInfrastructure",
		says:   map[string]string{infraCondition: "False/NotFound"},
		events: []string{"NotFound"},
	}, v1alpha1.MachineProvisioning},
	"infrastructure cannot be read": {story{
		of: bootstrapped, change: func(s *lifecycle.Snapshot) {
			s.Infrastructure = lifecycle.Reading[lifecycle.External]{Problem: "no kind DockerMachine"}
		},
		does:   "WaitingForInfrastructure",
		says:   map[string]string{infraCondition: "Unknown/Unknown"},
		events: []string{"Unknown"},
	}, v1alpha1.MachineProvisioning},
	"infrastructure belongs to another Machine": {story{
		of: bootstrapped, change: foreignInfrastructure,
		does:   "WaitingForInfrastructure",
		says:   map[string]string{infraCondition: "False/NotOwned"},
		events: []string{"NotOwned"},
	}, v1alpha1.MachineProvisioning},
	"infrastructure is being deleted": {story{
		of: bootstrapped, change: func(s *lifecycle.Snapshot) { s.Infrastructure.Object.Deleting = true },
		does: "WaitingForInfrastructure",
		says: map[string]string{infraCondition: "False/NotReady"},
	}, v1alpha1.MachineProvisioning},
	"infrastructure is against the contract": {story{
		of: bootstrapped, change: func(s *lifecycle.Snapshot) {
			own(s.Infrastructure.Object)
			s.Infrastructure.Object.Fault = "status.ready is no boolean"
		},
		does: "WaitingForInfrastructure",
		says: map[string]string{infraCondition: "False/NotReady"},
	}, v1alpha1.MachineProvisioning},
	"infrastructure has failed": {story{
		of: bootstrapped, change: func(s *lifecycle.Snapshot) {
			own(s.Infrastructure.Object)
			s.Infrastructure.Object.Failure = "CreateError: quota"
		},
		does:   "WaitingForInfrastructure",
		says:   map[string]string{infraCondition: "False/Failed"},
		events: []string{"Failed"},
	}, v1alpha1.MachineFailed},
	"infrastructure is ready without providerID": {story{
		of: bootstrapped, change: func(s *lifecycle.Snapshot) { own(s.Infrastructure.Object); s.Infrastructure.Object.Ready = true },
		does: "WaitingForInfrastructure",
		says: map[string]string{infraCondition: "False/NotReady"},
	}, v1alpha1.MachineProvisioning},
	"providerID is recorded": {story{
		of: provisioned, change: func(s *lifecycle.Snapshot) { s.Machine.Spec.ProviderID = "" },
		does: "WaitingForInfrastructure, record, set providerID docker://worker-1",
	}, v1alpha1.MachineProvisioning},
	"the Machine has another providerID": {story{
		of: provisioned, change: func(s *lifecycle.Snapshot) { s.Machine.Spec.ProviderID = "docker://mine" },
		does: "WaitingForInfrastructure",
		says: map[string]string{infraCondition: "False/NotReady"},
	}, v1alpha1.MachineProvisioning},
	"the Node is waited for": {story{
		of: provisioned, does: "WaitingForNode",
		says: map[string]string{nodeCondition: "False/NotReady"},
	}, v1alpha1.MachineProvisioned},
	"the Node is waited for, whatever becomes of the infrastructure's reading": {story{
		of: provisioned, change: func(s *lifecycle.Snapshot) {
			s.Infrastructure = lifecycle.Reading[lifecycle.External]{Problem: "timeout"}
		},
		does: "WaitingForNode", events: []string{"Unknown"},
	}, v1alpha1.MachineProvisioned},
	"nodes cannot be read": {story{
		of: provisioned, change: func(s *lifecycle.Snapshot) { s.NodesProblem = "connection refused" },
		does:   "WaitingForNode",
		says:   map[string]string{nodeCondition: "Unknown/Unknown"},
		events: []string{"Unknown"},
	}, v1alpha1.MachineProvisioned},
	"two Nodes have the providerID": {story{
		of: provisioned, change: twins,
		does:   "WaitingForNode",
		says:   map[string]string{nodeCondition: "Unknown/Ambiguous"},
		events: []string{"Ambiguous"},
	}, v1alpha1.MachineProvisioned},
	"the Node is recorded": {story{
		of: running, change: func(s *lifecycle.Snapshot) { s.Machine.Status.NodeRef = nil },
		does: "WaitingForNode, record",
	}, v1alpha1.MachineRunning},
	"it runs": {story{of: running, does: "Running"}, v1alpha1.MachineRunning},
	"it runs, its bootstrap config is gone": {story{
		of: running, change: func(s *lifecycle.Snapshot) { s.Bootstrap = &lifecycle.Reading[lifecycle.External]{} },
		does: "Running",
		says: map[string]string{v1alpha1.ConditionBootstrapReady: "True/Ready"},
	}, v1alpha1.MachineRunning},
	"it ran, its infrastructure is gone": {story{
		of: running, change: func(s *lifecycle.Snapshot) { s.Infrastructure = lifecycle.Reading[lifecycle.External]{} },
		does:   "WaitingForInfrastructure",
		says:   map[string]string{infraCondition: "False/NotFound"},
		events: []string{"NotFound"},
	}, v1alpha1.MachineFailed},
	"it runs, its Node is gone": {story{
		of: running, change: func(s *lifecycle.Snapshot) { s.Nodes = nil },
		does: "Running", says: map[string]string{nodeCondition: "False/NotFound"}, events: []string{"NotFound"},
	}, v1alpha1.MachineRunning},
	"it runs and does not look at its Node": {story{
		of: running, change: func(s *lifecycle.Snapshot) { s.Nodes, s.NodesUnneeded = nil, true },
		does: "Running", says: map[string]string{nodeCondition: "True/Ready"},
	}, v1alpha1.MachineRunning},
	"the Cluster does not exist": {story{
		of: newborn, change: func(s *lifecycle.Snapshot) {
			s.Cluster, s.Machine.Finalizers = lifecycle.Reading[v1alpha1.Cluster]{}, nil
		},
		does:   "WaitingForPreCreateHook",
		says:   map[string]string{v1alpha1.ConditionCreatable: "False/NotFound"},
		events: []string{"NotFound"},
	}, v1alpha1.MachinePending},
	"a hook and a providerID of its own": {story{
		of: newborn, change: func(s *lifecycle.Snapshot) {
			s.Machine.Spec.ProviderID = "docker://worker-1"
			s.Machine.Spec.LifecycleHooks.PreCreate = hook("IPAMController")
		},
		does: "WaitingForPreCreateHook", events: []string{"HeldByHooks"},
	}, v1alpha1.MachinePending},
}

// TestCluster: a Cluster that is paused, or of which that is not known, stops everything.
func TestCluster(t *testing.T) {
	t.Parallel()
	paused := func(s *lifecycle.Snapshot) { s.Cluster.Object.Spec.Paused = true }
	unknown := func(s *lifecycle.Snapshot) {
		s.Cluster = lifecycle.Reading[v1alpha1.Cluster]{Problem: "etcd has no leader"}
	}
	run(t, map[string]story{
		"paused newborn":  {of: newborn, change: paused, does: "Paused", says: map[string]string{v1alpha1.ConditionPaused: "True/Paused"}},
		"paused deletion": {of: terminating, change: paused, does: "Paused", says: map[string]string{v1alpha1.ConditionPaused: "True/Paused", deletingCondition: ""}},
		"not paused any more": {
			of: running, change: func(s *lifecycle.Snapshot) {
				s.Machine.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue}}
			},
			does: "Running", says: map[string]string{v1alpha1.ConditionPaused: ""},
		},
		"unknown newborn": {
			of: newborn, change: unknown, does: "Unknown",
			says: map[string]string{v1alpha1.ConditionCreatable: "Unknown/Unknown"}, events: []string{"Unknown"},
		},
		"unknown while it runs": {
			of: running, change: unknown, does: "Unknown",
			says: map[string]string{nodeCondition: "Unknown/Unknown"}, events: []string{"Unknown"},
		},
		"unknown deletion": {
			of: terminating, change: unknown, does: "Unknown",
			says: map[string]string{deletingCondition: "True/Unknown"}, events: []string{"Unknown"},
		},
		"a Machine that we do not hold is let go": {
			of: deleted, change: func(s *lifecycle.Snapshot) { s.Machine.Finalizers = []string{"other.example.com"} },
			does: "Released",
		},
	})
}

func foreignInfrastructure(s *lifecycle.Snapshot) {
	s.Infrastructure.Object.Owned = false
	s.Infrastructure.Object.Controller = &metav1.OwnerReference{Kind: "Machine", Name: "worker-2", UID: "other-uid"}
}

// twins gives the Machine's providerID to two Nodes.
func twins(s *lifecycle.Snapshot) {
	s.Nodes = nil
	for _, name := range []string{"node-2", "node-1"} {
		s.Nodes = append(s.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: "docker://worker-1"}})
	}
}
