package validate_test

import (
	"maps"
	"strings"
	"testing"

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
func TestMachineInDeletionRefusesNewHooks(t *testing.T) {
	refused := func(path string) string { return path + ": Forbidden" }
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
			refused("spec.lifecycleHooks.preCreate"),
			refused("spec.lifecycleHooks.preDrain"),
			refused("spec.lifecycleHooks.preTerminate"),
		}},
		"one added and one changed": {func(m *v1alpha1.Machine) {
			m.Spec.LifecycleHooks.PreDrain = []v1alpha1.LifecycleHook{another, {Name: "MoveApps", Owner: "somebody"}}
		}, []string{refused("spec.lifecycleHooks.preDrain")}},
		"one renamed": {func(m *v1alpha1.Machine) {
			m.Spec.LifecycleHooks.PreTerminate[0].Name = "BackUp"
		}, []string{refused("spec.lifecycleHooks.preTerminate")}},
		"moved to another point": {func(m *v1alpha1.Machine) {
			m.Spec.LifecycleHooks.PreTerminate, m.Spec.LifecycleHooks.PreDrain = m.Spec.LifecycleHooks.PreDrain, nil
		}, []string{refused("spec.lifecycleHooks.preTerminate")}},
		"annotated": {func(m *v1alpha1.Machine) {
			maps.Copy(m.Annotations, map[string]string{drains + "/b": "me", drains + "/a": "me", terminates: "me"})
		}, []string{
			refused("metadata.annotations"),
			refused("metadata.annotations"),
		}},
		"an annotation changed": {func(m *v1alpha1.Machine) {
			m.Annotations[drains+"/apps"] = ""
		}, []string{refused("metadata.annotations")}},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, tt.want, validate.MachineChange{Old: hooked(unchanged), New: hooked(tt.change)}.Invalid())
		})
	}
}

func TestMachineBeforeDeletionAllowsNewHooks(t *testing.T) {
	living := hooked(func(m *v1alpha1.Machine) {
		m.DeletionTimestamp = nil
		m.Spec.LifecycleHooks.PreDrain[0].Owner = "somebody"
	})
	if refused := (validate.MachineChange{Old: hooked(unchanged), New: living}).Invalid(); len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
}

func TestMachineWithPartsThatAreMissingWarns(t *testing.T) {
	annotated := func(annotations map[string]string) *v1alpha1.Machine {
		return hooked(func(m *v1alpha1.Machine) { m.Annotations = annotations })
	}
	in := func(phase v1alpha1.MachinePhase) *v1alpha1.Machine {
		return hooked(func(m *v1alpha1.Machine) { m.Status.Phase, m.Spec.LifecycleHooks.PreCreate = phase, nil })
	}
	for name, tt := range map[string]struct {
		change validate.MachineChange
		want   int
	}{
		"a good one": {validate.MachineChange{New: hooked(unchanged)}, 0},
		"no Cluster": {
			validate.MachineChange{New: hooked(unchanged), NoCluster: true},
			1,
		},
		"unknown kinds": {
			validate.MachineChange{New: hooked(unchanged), Parts: parts(true, func(p *validate.MachinePart) { p.Unknown = true })},
			2,
		},
		"hooks without a name and without an owner": {
			validate.MachineChange{New: annotated(map[string]string{drains: "me", terminates + "/etcd": " "})},
			2,
		},
		"such hooks as before": {
			validate.MachineChange{Old: annotated(map[string]string{drains: "me"}), New: annotated(map[string]string{drains: "me"})}, 0,
		},
		"a preCreate hook in time": {validate.MachineChange{Old: in(v1alpha1.MachinePending), New: hooked(unchanged)}, 0},
		"a preCreate hook too late": {
			validate.MachineChange{Old: in(v1alpha1.MachineProvisioning), New: hooked(unchanged)},
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			expectWarnings(t, tt.want, tt.change.Warnings())
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

func TestMachineWithoutRightsToItsPartsIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		parts   []validate.MachinePart
		refused bool
	}{
		"all": {parts(true, func(*validate.MachinePart) {}), false},
		"none": {
			parts(true, func(p *validate.MachinePart) { p.Refused = true }),
			true,
		},
		"one, and the authorizer says why": {
			parts(false, func(p *validate.MachinePart) { p.Refused, p.Why = true, "no role" }),
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			expectRefusal(t, tt.refused, validate.MachineChange{New: hooked(unchanged), Parts: tt.parts}.Refusal("jane"))
		})
	}
}

func TestMachineRefusesPartsOutsideOfNamespaces(t *testing.T) {
	change := validate.MachineChange{New: hooked(unchanged), Parts: parts(false, func(p *validate.MachinePart) { p.Cluster = true })}
	expect(t, []string{"spec.infrastructureRef.kind: Invalid value"}, change.Invalid())
}
