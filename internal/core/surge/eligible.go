// Package surge decides how the pods of a Deployment are replaced before they are evicted. It
// detaches a pod by changing its pod-template-hash label, so that the ReplicaSet creates another
// one elsewhere while the first still serves. At most maxSurge pods are detached, replicas is
// never written, and a detached pod carries what is needed to return it. A pod that is not
// replaced in time, or is no longer asked to leave, is returned.
package surge

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// ByReplicaSet returns the Deployments by the UIDs of their ReplicaSets.
func ByReplicaSet(deployments []*appsv1.Deployment, sets []*appsv1.ReplicaSet) map[types.UID]*appsv1.Deployment {
	byUID := make(map[types.UID]*appsv1.Deployment, len(deployments))
	for _, d := range deployments {
		byUID[d.UID] = d
	}
	found := make(map[types.UID]*appsv1.Deployment, len(sets))
	for _, set := range sets {
		if owner := metav1.GetControllerOfNoCopy(set); owner != nil && byUID[owner.UID] != nil {
			found[set.UID] = byUID[owner.UID]
		}
	}
	return found
}

// Ineligible returns why the spec of a Deployment prevents surging; empty if it does not.
func Ineligible(d *appsv1.Deployment) string {
	switch {
	case d.DeletionTimestamp != nil:
		return "it is being deleted"
	case d.Spec.Paused:
		return "it is paused"
	case d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType && d.Spec.Strategy.Type != "":
		return fmt.Sprintf("its strategy is %s", d.Spec.Strategy.Type)
	case maxSurge(d) < 1:
		return "its maxSurge is 0"
	case selectsHash(d.Spec.Selector):
		return fmt.Sprintf("its selector names the label %s", appsv1.DefaultDeploymentUniqueLabelKey)
	}
	if port := hostPort(&d.Spec.Template.Spec); port != 0 {
		return fmt.Sprintf("two of its pods cannot share host port %d", port)
	}
	return ""
}

// maxSurge returns how many pods may be detached, rounded up like the Deployment controller.
func maxSurge(d *appsv1.Deployment) int {
	most := intstr.FromString("25%")
	if rolling := d.Spec.Strategy.RollingUpdate; rolling != nil && rolling.MaxSurge != nil {
		most = *rolling.MaxSurge
	}
	number, err := intstr.GetScaledValueFromIntOrPercent(&most, int(replicas(d)), true)
	if err != nil {
		return 0
	}
	return number
}

// replicas returns how many pods the Deployment wants; 1 if it does not say.
func replicas(d *appsv1.Deployment) int32 {
	return ptr.Deref(d.Spec.Replicas, 1)
}

func selectsHash(selector *metav1.LabelSelector) bool {
	if selector == nil {
		return false
	}
	_, matched := selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey]
	return matched || slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return r.Key == appsv1.DefaultDeploymentUniqueLabelKey
	})
}

func hostPort(spec *corev1.PodSpec) int32 {
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, port := range container.Ports {
			if port.HostPort != 0 {
				return port.HostPort
			}
		}
	}
	return 0
}

// Exclusive returns which volume only one node can mount; empty if there is none.
func Exclusive(claims []*corev1.PersistentVolumeClaim) string {
	for _, claim := range claims {
		if slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany) {
			continue
		}
		for _, mode := range claim.Spec.AccessModes {
			if mode == corev1.ReadWriteOnce || mode == corev1.ReadWriteOncePod {
				return fmt.Sprintf("only one node can mount its volume claim %s, which is %s", claim.Name, mode)
			}
		}
	}
	return ""
}
