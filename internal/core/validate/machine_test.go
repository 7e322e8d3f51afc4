package validate_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/validate"
)

const (
	drains     = v1alpha1.PreDrainHookAnnotationPrefix
	terminates = v1alpha1.PreTerminateHookAnnotationPrefix
)

// hooked is a Machine with one hook of every form.
func hooked(change func(m *v1alpha1.Machine)) *v1alpha1.Machine {
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet", Name: "m-1", DeletionTimestamp: &metav1.Time{},
			Annotations: map[string]string{drains + "/apps": "mover", terminates + "/etcd": "keeper", "example.com/note": "first"},
		},
		Spec: v1alpha1.MachineSpec{
			ClusterName:       "east",
			InfrastructureRef: v1alpha1.ObjectReference{APIVersion: "infra.example.com/v1", Kind: "BareMachine", Name: "m-1"},
			LifecycleHooks: v1alpha1.LifecycleHooks{
				PreCreate:    []v1alpha1.LifecycleHook{{Name: "Address", Owner: "ipam"}},
				PreDrain:     []v1alpha1.LifecycleHook{{Name: "MoveApps", Owner: "mover"}},
				PreTerminate: []v1alpha1.LifecycleHook{{Name: "Backup", Owner: "keeper"}},
			},
		},
	}
	change(m)
	return m
}

func unchanged(*v1alpha1.Machine) {}

// Once a Machine is marked for deletion no hook may be added or changed (machine-deletion-hooks).
func TestHooksOfAMachineThatIsBeingDeleted(t *testing.T) {
	refuses := func(path, point, hooks string) string {
		return path + ": Forbidden: " + point + " hooks are immutable when machine is marked for deletion: the following hooks are new or changed: " + hooks
	}
	another := v1alpha1.LifecycleHook{Name: "Another", Owner: "somebody"}
	for name, tt := range map[string]struct {
		change func(m *v1alpha1.Machine)
		want   []string
	}{
		"nothing": {unchanged, nil},
		"all removed": {func(m *v1alpha1.Machine) {
			m.Annotations, m.Spec.LifecycleHooks = nil, v1alpha1.LifecycleHooks{}
		}, nil},
		"another annotation changed": {func(m *v1alpha1.Machine) { m.Annotations["example.com/note"] = "second" }, nil},
		"added to each": {func(m *v1alpha1.Machine) {
			hooks := &m.Spec.LifecycleHooks
			hooks.PreCreate = append(hooks.PreCreate, another)
			hooks.PreDrain = append(hooks.PreDrain, another)
			hooks.PreTerminate = append(hooks.PreTerminate, another)
		}, []string{
			refuses("spec.lifecycleHooks.preCreate", "pre-create", "Another"),
			refuses("spec.lifecycleHooks.preDrain", "pre-drain", "Another"),
			refuses("spec.lifecycleHooks.preTerminate", "pre-terminate", "Another"),
		}},
		"one added and one changed": {func(m *v1alpha1.Machine) {
			m.Spec.LifecycleHooks.PreDrain = []v1alpha1.LifecycleHook{another, {Name: "MoveApps", Owner: "somebody"}}
		}, []string{refuses("spec.lifecycleHooks.preDrain", "pre-drain", "Another, MoveApps")}},
		"one renamed": {func(m *v1alpha1.Machine) {
			m.Spec.LifecycleHooks.PreTerminate[0].Name = "BackUp"
		}, []string{refuses("spec.lifecycleHooks.preTerminate", "pre-terminate", "BackUp")}},
		"moved to another point": {func(m *v1alpha1.Machine) {
			m.Spec.LifecycleHooks.PreTerminate, m.Spec.LifecycleHooks.PreDrain = m.Spec.LifecycleHooks.PreDrain, nil
		}, []string{refuses("spec.lifecycleHooks.preTerminate", "pre-terminate", "MoveApps")}},
		"annotated": {func(m *v1alpha1.Machine) {
			maps.Copy(m.Annotations, map[string]string{drains + "/b": "me", drains + "/a": "me", terminates: "me"})
		}, []string{
			refuses("metadata.annotations", "pre-drain", drains+"/a, "+drains+"/b"),
			refuses("metadata.annotations", "pre-terminate", terminates),
		}},
		"an annotation changed": {func(m *v1alpha1.Machine) {
			m.Annotations[drains+"/apps"] = ""
		}, []string{refuses("metadata.annotations", "pre-drain", drains+"/apps")}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, refused := range (validate.MachineChange{Old: hooked(unchanged), New: hooked(tt.change)}).Invalid() {
				got = append(got, refused.Error())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHooksBeforeTheDeletionMayChange(t *testing.T) {
	living := hooked(func(m *v1alpha1.Machine) {
		m.DeletionTimestamp = nil
		m.Spec.LifecycleHooks.PreDrain[0].Owner = "somebody"
	})
	if refused := (validate.MachineChange{Old: hooked(unchanged), New: living}).Invalid(); len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
}

func TestWarningsOfAMachine(t *testing.T) {
	annotated := func(annotations map[string]string) *v1alpha1.Machine {
		return hooked(func(m *v1alpha1.Machine) { m.Annotations = annotations })
	}
	in := func(phase v1alpha1.MachinePhase) *v1alpha1.Machine {
		return hooked(func(m *v1alpha1.Machine) { m.Status.Phase, m.Spec.LifecycleHooks.PreCreate = phase, nil })
	}
	for name, tt := range map[string]struct {
		change validate.MachineChange
		want   []string
	}{
		"a good one": {validate.MachineChange{New: hooked(unchanged)}, nil},
		"no Cluster": {
			validate.MachineChange{New: hooked(unchanged), NoCluster: true},
			[]string{"spec.clusterName: there is no Cluster east in namespace fleet; the Machine waits for it"},
		},
		"unknown kinds": {
			validate.MachineChange{New: hooked(unchanged), Parts: parts(true, func(p *validate.MachinePart) { p.Unknown = true })},
			[]string{
				"spec.infrastructureRef: the API server knows no kind BareMachine of infra.example.com/v1; the Machine waits for it",
				"spec.bootstrap.configRef: the API server knows no kind BareConfig of boot.example.com/v1; the Machine waits for it",
			},
		},
		"hooks without a name and without an owner": {
			validate.MachineChange{New: annotated(map[string]string{drains: "me", terminates + "/etcd": " "})},
			[]string{
				"annotation " + drains + " is a pre-drain hook without a name: give it one, as in " + drains + "/migrate-important-app",
				"annotation " + terminates + "/etcd is a pre-terminate hook without an owner: say in its value who removes it",
			},
		},
		"such hooks as before": {
			validate.MachineChange{Old: annotated(map[string]string{drains: "me"}), New: annotated(map[string]string{drains: "me"})}, nil,
		},
		"a preCreate hook in time": {validate.MachineChange{Old: in(v1alpha1.MachinePending), New: hooked(unchanged)}, nil},
		"a preCreate hook too late": {
			validate.MachineChange{Old: in(v1alpha1.MachineProvisioning), New: hooked(unchanged)},
			[]string{"spec.lifecycleHooks.preCreate: the creation of the infrastructure has begun already, so that these hooks come too late: Address"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.change.Warnings()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// parts are those of a Machine, with a bootstrap config if so, after a change.
func parts(config bool, change func(part *validate.MachinePart)) []validate.MachinePart {
	all := validate.MachineParts(hooked(func(m *v1alpha1.Machine) {
		if config {
			m.Spec.Bootstrap.ConfigRef = &v1alpha1.ObjectReference{APIVersion: "boot.example.com/v1", Kind: "BareConfig", Name: "m-1-boot"}
		}
	}))
	for i := range all {
		group, _, _ := strings.Cut(all[i].Ref.APIVersion, "/")
		all[i].Resource.Group, all[i].Resource.Resource = group, strings.ToLower(all[i].Ref.Kind)+"s"
		change(&all[i])
	}
	return all
}

func TestRightsToThePartsOfAMachine(t *testing.T) {
	for name, tt := range map[string]struct {
		parts []validate.MachinePart
		want  string
	}{
		"all": {parts(true, func(*validate.MachinePart) {}), ""},
		"none": {
			parts(true, func(p *validate.MachinePart) { p.Refused = true }),
			`user "jane" may not delete BareMachine m-1 and BareConfig m-1-boot in namespace fleet, and what a Machine names is deleted with it: ` +
				`ask for the verb "delete" on baremachines.infra.example.com and bareconfigs.boot.example.com in this namespace`,
		},
		"one, and the authorizer says why": {
			parts(false, func(p *validate.MachinePart) { p.Refused, p.Why = true, "no role" }),
			`user "jane" may not delete BareMachine m-1 (no role) in namespace fleet, and what a Machine names is deleted with it: ` +
				`ask for the verb "delete" on baremachines.infra.example.com in this namespace`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := validate.MachineChange{New: hooked(unchanged), Parts: tt.parts}.Refusal("jane")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPartsOutsideOfNamespaces(t *testing.T) {
	change := validate.MachineChange{New: hooked(unchanged), Parts: parts(false, func(p *validate.MachinePart) { p.Cluster = true })}
	want := `spec.infrastructureRef.kind: Invalid value: "BareMachine": objects of this kind are in no namespace; name an object in the namespace of the Machine`
	if diff := cmp.Diff(want, change.Invalid().ToAggregate().Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
