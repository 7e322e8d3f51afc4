package bridge

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// excludedBecause explains the annotation with which Cluster API skips its own drain.
const excludedBecause = "drained by Ebbtide"

// Change returns the Machine with the step done; nil if nothing changes. It fails on a malformed
// Machine.
func Change(object *unstructured.Unstructured, step Step, now time.Time) (*unstructured.Unstructured, error) {
	m := Read(object)
	if step == Keep || m.Hooked == (step == Put) || m.Taken {
		return nil, nil
	}
	changed := object.DeepCopy()
	if m.Bridge == OpenShift {
		return changed, changeList(changed, step)
	}
	annotations := changed.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	switch step {
	case Put:
		annotations[v1alpha1.BridgeHookAnnotation] = v1alpha1.BridgeOwner
	case Begin:
		annotations[v1alpha1.BridgeDrainStartAnnotation] = now.UTC().Format(time.RFC3339)
	case Finish:
		annotations[v1alpha1.ExcludeNodeDrainingAnnotation] = excludedBecause
		fallthrough
	default:
		delete(annotations, v1alpha1.BridgeHookAnnotation)
		delete(annotations, v1alpha1.BridgeDrainStartAnnotation)
	}
	changed.SetAnnotations(annotations)
	return changed, nil
}

// changeList changes the hooks of a Machine of OpenShift, whose own drain then finds no pods.
func changeList(object *unstructured.Unstructured, step Step) error {
	path := []string{"spec", "lifecycleHooks", "preDrain"}
	hooks, _, err := unstructured.NestedSlice(object.Object, path...)
	if err != nil {
		return err
	}
	hooks = slices.DeleteFunc(hooks, func(hook any) bool {
		one, _ := hook.(map[string]any)
		return one["name"] == v1alpha1.BridgeHookName && one["owner"] == v1alpha1.BridgeOwner
	})
	if step == Put {
		hooks = append(hooks, map[string]any{"name": v1alpha1.BridgeHookName, "owner": v1alpha1.BridgeOwner})
	}
	if len(hooks) == 0 {
		unstructured.RemoveNestedField(object.Object, path...)
		return nil
	}
	return unstructured.SetNestedSlice(object.Object, hooks, path...)
}
