package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

var (
	annotationsPath = field.NewPath("metadata", "annotations")
	hooksPath       = field.NewPath("spec", "lifecycleHooks")
	preCreatePath   = hooksPath.Child("preCreate")
)

type hookPoint struct {
	name string
	path *field.Path
	// annotation is the prefix of annotations that are hooks; empty if none are.
	annotation string
	hooks      func(v1alpha1.LifecycleHooks) []v1alpha1.LifecycleHook
}

var hookPoints = []hookPoint{
	{
		"pre-create", preCreatePath, "",
		func(hooks v1alpha1.LifecycleHooks) []v1alpha1.LifecycleHook { return hooks.PreCreate },
	},
	{
		"pre-drain", hooksPath.Child("preDrain"), v1alpha1.PreDrainHookAnnotationPrefix,
		func(hooks v1alpha1.LifecycleHooks) []v1alpha1.LifecycleHook { return hooks.PreDrain },
	},
	{
		"pre-terminate", hooksPath.Child("preTerminate"), v1alpha1.PreTerminateHookAnnotationPrefix,
		func(hooks v1alpha1.LifecycleHooks) []v1alpha1.LifecycleHook { return hooks.PreTerminate },
	},
}

// changedHooks refuses new or changed hooks during a deletion (machine-deletion-hooks).
func changedHooks(m, old *v1alpha1.Machine) field.ErrorList {
	if m.DeletionTimestamp == nil {
		return nil
	}
	var refused field.ErrorList
	for _, point := range hookPoints {
		refused = append(refused, point.frozen(point.path, point.newHooks(m, old))...)
		refused = append(refused, point.frozen(annotationsPath, point.newAnnotations(m, old))...)
	}
	return refused
}

func (p hookPoint) frozen(path *field.Path, hooks []string) field.ErrorList {
	if len(hooks) == 0 {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
		"%s hooks are immutable when machine is marked for deletion: the following hooks are new or changed: %s", p.name, strings.Join(hooks, ", ")))}
}

// newHooks returns the typed hooks that old, if any, does not have.
func (p hookPoint) newHooks(m, old *v1alpha1.Machine) (names []string) {
	var before []v1alpha1.LifecycleHook
	if old != nil {
		before = p.hooks(old.Spec.LifecycleHooks)
	}
	for _, hook := range p.hooks(m.Spec.LifecycleHooks) {
		if !slices.Contains(before, hook) {
			names = append(names, hook.Name)
		}
	}
	return names
}

// newAnnotations returns the hook annotations that old, if any, does not have, in order.
func (p hookPoint) newAnnotations(m, old *v1alpha1.Machine) (keys []string) {
	if p.annotation == "" {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(m.Annotations)) {
		if !strings.HasPrefix(key, p.annotation) {
			continue
		}
		if old != nil {
			if value, exists := old.Annotations[key]; exists && value == m.Annotations[key] {
				continue
			}
		}
		keys = append(keys, key)
	}
	return keys
}

// MachineChange is a request to create (Old is nil) or change a Machine.
type MachineChange struct {
	Old, New  *v1alpha1.Machine
	NoCluster bool
	// Parts are the objects of a new Machine that are deleted with it.
	Parts []MachinePart
}

// MachinePart is an object that is deleted with its Machine.
type MachinePart struct {
	Path *field.Path
	Ref  *v1alpha1.ObjectReference
	// Resource serves the kind, or would by the contract of Cluster API.
	Resource schema.GroupVersionResource
	Unknown  bool
	Cluster  bool
	// Refused is true if the author may not delete it, with the authorizer's reason in Why.
	Refused bool
	Why     string
}

// MachineParts returns the objects that are deleted with a Machine, with their names only.
func MachineParts(m *v1alpha1.Machine) []MachinePart {
	parts := []MachinePart{{Path: field.NewPath("spec", "infrastructureRef"), Ref: &m.Spec.InfrastructureRef}}
	if ref := m.Spec.Bootstrap.ConfigRef; ref != nil {
		parts = append(parts, MachinePart{Path: field.NewPath("spec", "bootstrap", "configRef"), Ref: ref})
	}
	return parts
}

// Invalid refuses changed hooks during a deletion, and cluster-scoped parts.
func (c MachineChange) Invalid() field.ErrorList {
	if c.Old != nil {
		return changedHooks(c.New, c.Old)
	}
	var refused field.ErrorList
	for _, part := range c.Parts {
		if part.Cluster {
			refused = append(refused, field.Invalid(part.Path.Child("kind"), part.Ref.Kind,
				"objects of this kind are in no namespace; name an object in the namespace of the Machine"))
		}
	}
	return refused
}

// Refusal names the parts of the Machine that the user may not delete; empty if there are none.
func (c MachineChange) Refusal(user string) string {
	var objects, resources []string
	for _, part := range c.Parts {
		if !part.Refused {
			continue
		}
		object := fmt.Sprintf("%s %s", part.Ref.Kind, part.Ref.Name)
		if part.Why != "" {
			object += " (" + part.Why + ")"
		}
		objects = append(objects, object)
		resources = append(resources, part.Resource.GroupResource().String())
	}
	if len(objects) == 0 {
		return ""
	}
	return fmt.Sprintf("user %q may not delete %s in namespace %s, and what a Machine names is deleted with it: "+
		`ask for the verb "delete" on %s in this namespace`,
		user, strings.Join(objects, " and "), c.New.Namespace, strings.Join(resources, " and "))
}

// Warnings reports what the Machine will wait for, and hooks that are not understood or too late.
func (c MachineChange) Warnings() (warnings []string) {
	if c.NoCluster {
		warnings = append(warnings, fmt.Sprintf("spec.clusterName: there is no Cluster %s in namespace %s; the Machine waits for it",
			c.New.Spec.ClusterName, c.New.Namespace))
	}
	for _, part := range c.Parts {
		if part.Unknown {
			warnings = append(warnings, fmt.Sprintf("%s: the API server knows no kind %s of %s; the Machine waits for it",
				part.Path, part.Ref.Kind, part.Ref.APIVersion))
		}
	}
	for _, point := range hookPoints {
		for _, key := range point.newAnnotations(c.New, c.Old) {
			warnings = append(warnings, point.unclear(key, c.New.Annotations[key])...)
		}
	}
	return append(warnings, c.late()...)
}

// unclear warns of a hook by annotation without a name or owner.
func (p hookPoint) unclear(key, value string) (warnings []string) {
	if strings.Trim(strings.TrimPrefix(key, p.annotation), "/") == "" {
		warnings = append(warnings, fmt.Sprintf("annotation %s is a %s hook without a name: give it one, as in %s/migrate-important-app", key, p.name, p.annotation))
	}
	if strings.TrimSpace(value) == "" {
		warnings = append(warnings, fmt.Sprintf("annotation %s is a %s hook without an owner: say in its value who removes it", key, p.name))
	}
	return warnings
}

// late warns of preCreate hooks that are added after the creation has begun.
func (c MachineChange) late() []string {
	if c.Old == nil || c.Old.Status.Phase == "" || c.Old.Status.Phase == v1alpha1.MachinePending {
		return nil
	}
	names := hookPoints[0].newHooks(c.New, c.Old)
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: the creation of the infrastructure has begun already, so that these hooks come too late: %s",
		preCreatePath, strings.Join(names, ", "))}
}
