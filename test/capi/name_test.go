package capi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// forMachine is a maintenance as the manager makes it for the Machine of another controller.
func forMachine(name, machine, node string) *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{v1alpha1.BridgeLabel: string(core.ClusterAPI)},
			Annotations: map[string]string{v1alpha1.BridgeMachineAnnotation: machine},
		},
		Spec: v1alpha1.NodeMaintenanceSpec{
			Stage: v1alpha1.StageDrain, DrainDepth: v1alpha1.PodTypeDefault,
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
			}}}},
		},
	}
}

// A maintenance that an earlier version has made is used, and deleted with its node. Attack:
// one that the Machine of another namespace had got under that name holds nothing up.
func TestLongMaintenancesUnderFormerNames(t *testing.T) {
	w, _ := bareWorld(t)
	begun := w.bareNode(w.ns+"-begun", "sandbox:///begun", w.ns, "begun")
	robbed := w.bareNode(w.ns+"-robbed", "sandbox:///robbed", w.ns, "robbed")
	former := forMachine(core.FormerName(w.ns, "begun"), w.ns+"/begun", begun.Name)
	others := forMachine(core.FormerName(w.ns, "robbed"), "team/robbed", w.ns+"-theirs")
	w.create(former)
	w.create(others)
	for name, node := range map[string]*corev1.Node{"begun": begun, "robbed": robbed} {
		machine := newMachine(w.ns, name, "sandbox:///"+name)
		w.create(machine)
		w.waitsAtHooks(w.c.Client, machine, node.Name)
		w.awaitEvent(machine, v1alpha1.EventBridgeDone, node.Name+" is drained; the hook is removed")
		w.letGoOf(machine)
	}
	want := []string{core.MaintenanceName(core.ClusterAPI, w.ns, "robbed") + " Drain", former.Name + " Drain", others.Name + " Drain"}
	if all := w.maintenances(); !slices.Equal(all, want) {
		t.Errorf("maintenances %q, want %q", all, want)
	}
	w.delete(begun)
	w.delete(robbed)
	w.awaitNoMaintenance("robbed")
	w.await("the former maintenance to be gone", func() (string, bool) {
		all := w.maintenances()
		return strings.Join(all, ", "), slices.Equal(all, want[2:])
	})
	w.delete(others)
}

// Attack: who has the manager's token makes a maintenance under the name of another Machine's.
func TestTheManagersAccountNamesMaintenancesAfterTheirMachines(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, bare)
	c.StartReplica(t) // The chart comes with it.
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: cluster.Account.User(), Groups: []string{"system:masters"}}
	manager, err := client.New(config, client.Options{Scheme: c.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	// The API server reads policies from a cache of its own.
	patience.Eventually(t, "the policies to be obeyed", func(ctx context.Context) (string, bool) {
		err := manager.Create(ctx, forMachine("openshift.team.worker", "team/worker", "node-7"), client.DryRunAll)
		return fmt.Sprint(err), apierrors.IsForbidden(err)
	})
	long := strings.Repeat("w", 250)
	for _, m := range []struct {
		name, machine string
		refused       bool
	}{
		{"cluster-api.team.a.b", "team/a.b", false},
		{core.MaintenanceName(core.ClusterAPI, "team", long), "team/" + long, false},
		{core.MaintenanceName(core.ClusterAPI, "team-a", long), "team/" + long, true},
		{"cluster-api.team.a.b", "team.a/b", true},
		{"cluster-api.team-a.worker", "team/worker", true},
		{"openshift.team.worker", "team/worker", true},
		{core.FormerName("team", "worker"), "team/worker", true},
	} {
		err := manager.Create(t.Context(), forMachine(m.name, m.machine, "node-7"), client.DryRunAll)
		if m.refused != apierrors.IsForbidden(err) || !m.refused && err != nil {
			t.Errorf("%s for %s: %v, want it refused: %t", m.name, m.machine, err, m.refused)
		}
	}
}
