package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
)

const (
	namedHooks = 5
	maxOwner   = 512
)

func preCreateHooks(m *v1alpha1.Machine) []string {
	return typedHooks(m.Spec.LifecycleHooks.PreCreate)
}

func preDrainHooks(m *v1alpha1.Machine) []string {
	return append(typedHooks(m.Spec.LifecycleHooks.PreDrain), annotatedHooks(m, v1alpha1.PreDrainHookAnnotationPrefix)...)
}

func preTerminateHooks(m *v1alpha1.Machine) []string {
	return append(typedHooks(m.Spec.LifecycleHooks.PreTerminate), annotatedHooks(m, v1alpha1.PreTerminateHookAnnotationPrefix)...)
}

func typedHooks(hooks []v1alpha1.LifecycleHook) []string {
	var names []string
	for _, hook := range hooks {
		names = append(names, fmt.Sprintf("%s (owner %s)", hook.Name, oneLine(hook.Owner)))
	}
	return names
}

func annotatedHooks(m *v1alpha1.Machine, prefix string) []string {
	var names []string
	for key, owner := range m.Annotations {
		if strings.HasPrefix(key, prefix) {
			names = append(names, fmt.Sprintf("annotation %s (owner %s)", key, cmp.Or(oneLine(owner), "not given")))
		}
	}
	return names
}

func heldBy(point string, hooks []string) string {
	return fmt.Sprintf("Waiting for %s hooks: %s", point, nodedrain.List(hooks, namedHooks))
}

func oneLine(text string) string {
	return excerpt.Of(strings.Join(strings.Fields(text), " "), maxOwner)
}

// recordHookSeen records the pre-terminate hook of a KubeadmControlPlane.
func (p *planner) recordHookSeen() {
	if _, present := p.Machine.Annotations[v1alpha1.ControlPlaneHookAnnotation]; present && !p.Machine.Status.ControlPlaneHookSeen {
		p.decision.Status.ControlPlaneHookSeen, p.decision.Record = true, true
	}
}

// leftControlPlane reports whether the hook of the KubeadmControlPlane was seen and is gone.
func (p *planner) leftControlPlane() bool {
	_, present := p.Machine.Annotations[v1alpha1.ControlPlaneHookAnnotation]
	return p.Machine.Status.ControlPlaneHookSeen && !present && ownedByKubeadm(p.Machine)
}

var kubeadm = schema.GroupKind{Group: "controlplane.cluster.x-k8s.io", Kind: "KubeadmControlPlane"}

func ownedByKubeadm(m *v1alpha1.Machine) bool {
	return slices.ContainsFunc(m.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() == kubeadm
	})
}
