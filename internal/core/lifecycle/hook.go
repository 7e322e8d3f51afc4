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
	// namedHooks is how many hooks a message names.
	namedHooks = 5
	// maxOwner is how many bytes are shown of an owner. A typed one has no more,
	// but an annotation may hold a whole book.
	maxOwner = 512
)

// preCreateHooks are in front of the creation; there are no annotations for it.
func preCreateHooks(m *v1alpha1.Machine) []string {
	return typedHooks(m.Spec.LifecycleHooks.PreCreate)
}

// preDrainHooks are in front of the drain.
func preDrainHooks(m *v1alpha1.Machine) []string {
	return append(typedHooks(m.Spec.LifecycleHooks.PreDrain), annotatedHooks(m, v1alpha1.PreDrainHookAnnotationPrefix)...)
}

// preTerminateHooks are in front of the deletion of the infrastructure.
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

// annotatedHooks are the annotations whose key begins with the prefix.
func annotatedHooks(m *v1alpha1.Machine, prefix string) []string {
	var names []string
	for key, owner := range m.Annotations {
		if strings.HasPrefix(key, prefix) {
			names = append(names, fmt.Sprintf("annotation %s (owner %s)", key, cmp.Or(oneLine(owner), "not given")))
		}
	}
	return names
}

// heldBy says which hooks hold the Machine, sorted.
func heldBy(point string, hooks []string) string {
	return fmt.Sprintf("Held by %s hooks: %s", point, nodedrain.List(hooks, namedHooks))
}

// oneLine makes a foreign text fit into a list.
func oneLine(text string) string {
	return excerpt.Of(strings.Join(strings.Fields(text), " "), maxOwner)
}

// recordHookSeen remembers the pre-terminate hook of a KubeadmControlPlane.
func (p *pass) recordHookSeen() {
	if _, present := p.Machine.Annotations[v1alpha1.ControlPlaneHookAnnotation]; present && !p.Machine.Status.ControlPlaneHookSeen {
		p.decision.Status.ControlPlaneHookSeen, p.decision.Record = true, true
	}
}

// leftControlPlane tells whether the KubeadmControlPlane of the Machine has taken
// its Node out of the control plane: its hook was seen and is gone. The Node's
// kubelet may have no API server to talk to then.
func (p *pass) leftControlPlane() bool {
	_, present := p.Machine.Annotations[v1alpha1.ControlPlaneHookAnnotation]
	return p.Machine.Status.ControlPlaneHookSeen && !present && ownedByKubeadm(p.Machine)
}

// kubeadm is the KubeadmControlPlane of Cluster API, in any version.
var kubeadm = schema.GroupKind{Group: "controlplane.cluster.x-k8s.io", Kind: "KubeadmControlPlane"}

func ownedByKubeadm(m *v1alpha1.Machine) bool {
	return slices.ContainsFunc(m.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() == kubeadm
	})
}
