package preflight

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/podclass"
)

func (t *forecaster) ownerOf(object *corev1.Pod) *Owner {
	if d := t.owners.deploymentOf(object); d != nil {
		return &Owner{Kind: "Deployment", Name: d.Name}
	}
	if owner := podclass.Owner(object); owner != nil {
		return &Owner{Kind: owner.Kind, Name: owner.Name}
	}
	return nil
}

const maxVolumes = 10

// dataLost returns what goes with a pod that leaves its node, or stays behind there.
func (o *owners) dataLost(object *corev1.Pod) []string {
	var lost []string
	for i := range object.Spec.Volumes {
		if one := o.volumeLost(object.Namespace, &object.Spec.Volumes[i]); one != "" {
			lost = append(lost, one)
		}
	}
	if more := len(lost) - maxVolumes; more > 0 {
		lost = append(lost[:maxVolumes:maxVolumes], fmt.Sprintf("%d more volumes", more))
	}
	return lost
}

func (o *owners) volumeLost(namespace string, volume *corev1.Volume) string {
	if kind := podclass.Temporary(volume); kind != "" {
		return fmt.Sprintf("%s volume %s", kind, volume.Name)
	}
	if volume.PersistentVolumeClaim == nil {
		return ""
	}
	claim := o.claims[types.NamespacedName{Namespace: namespace, Name: volume.PersistentVolumeClaim.ClaimName}]
	if claim == nil || o.volumes[claim.Spec.VolumeName] == nil {
		return ""
	}
	if source := &o.volumes[claim.Spec.VolumeName].Spec; source.Local != nil || source.HostPath != nil {
		return fmt.Sprintf("local volume %s of claim %s, which stays on the node", claim.Spec.VolumeName, claim.Name)
	}
	return ""
}

// sizeOf returns the CPU and memory requests of a pod as one number, to order pods.
func sizeOf(object *corev1.Pod) *resource.Quantity {
	sum := &resource.Quantity{}
	for i := range object.Spec.Containers {
		requests := object.Spec.Containers[i].Resources.Requests
		// A core counts as much as 4 GiB.
		sum.Add(*resource.NewQuantity(requests.Cpu().MilliValue()<<22+requests.Memory().Value(), resource.BinarySI))
	}
	return sum
}

func (t *forecaster) budgetsUnread(p *pod) bool {
	return p.evicted() && p.object.Status.Phase != corev1.PodPending && slices.ContainsFunc(t.Unread, func(u Unread) bool {
		return u.Kind == "PodDisruptionBudget" && (u.Namespace == "" || u.Namespace == p.object.Namespace)
	})
}

// consequences says what is unknown if a kind of objects could not be read.
var consequences = map[string]string{
	"PodDisruptionBudget":   "whether pods may be evicted",
	"NodeMaintenance":       "which other maintenances the nodes have",
	"Pod":                   "which pods there are",
	"Evacuation":            "which pods have been asked to leave before",
	"MachineDrainRule":      "how pods are treated that rules are about",
	"DrainRecord":           "which locks nodes have taken",
	"NodeAgent":             "which static pods leave",
	"Namespace":             "which pods rules for namespaces are about",
	"Deployment":            "which pods surge",
	"ReplicaSet":            "which pods surge",
	"StatefulSet":           "whether StatefulSets make their pods one after the other: they are thought to",
	"Job":                   "whether Jobs make other pods: they are thought to",
	"PersistentVolumeClaim": "where pods with volumes fit, and which of them cannot surge",
	"PersistentVolume":      "where pods with volumes fit, and which volumes stay behind",
	"StorageClass":          "where pods with new volumes fit",
}

func (t *forecaster) unread() []Unread {
	told := slices.Clone(t.Unread)
	for i := range told {
		if told[i].Consequence == "" {
			told[i].Consequence = consequences[told[i].Kind]
		}
	}
	return told
}

// ignores lists the limits of every forecast.
var ignores = []string{
	"admission webhooks and policies that refuse evictions or new pods, and quotas",
	"what evacuators of others do: their pods are thought to be evicted",
	"new pods that never become ready although they run: those are thought to serve whose predecessors do",
	"whatever else changes in the cluster meanwhile",
}
