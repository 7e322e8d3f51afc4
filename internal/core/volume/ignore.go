package volume

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Claims returns the claims of a pod, those of its generic ephemeral volumes, too.
func Claims(pod *corev1.Pod) (claims []types.NamespacedName) {
	for _, volume := range pod.Spec.Volumes {
		if name, _ := claimName(pod, volume); name != "" {
			claims = append(claims, types.NamespacedName{Namespace: pod.Namespace, Name: name})
		}
	}
	return claims
}

// claimName is empty if the volume has no claim. A claim that is ephemeral is
// made for the pod, and belongs to it.
func claimName(pod *corev1.Pod, volume corev1.Volume) (name string, ephemeral bool) {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName, false
	case volume.Ephemeral != nil:
		return pod.Name + "-" + volume.Name, true
	default:
		return "", false
	}
}

// without leaves out what the ignored pods use.
func (f finder) without(all map[string]attached) map[string]attached {
	volumes, names, inline := f.ignored()
	left := maps.Clone(all)
	maps.DeleteFunc(left, func(_ string, one attached) bool {
		if one.volume != "" {
			return volumes[one.volume]
		}
		return names[corev1.UniqueVolumeName(one.name)] || slices.ContainsFunc(inline, func(volume map[string]any) bool {
			return tookOver(corev1.UniqueVolumeName(one.name), volume)
		})
	})
	return left
}

// ignored is what the ignored pods use: PersistentVolumes, what is attached for
// their own volumes without a claim, and these volumes themselves.
func (f finder) ignored() (volumes map[string]bool, names map[corev1.UniqueVolumeName]bool, inline []map[string]any) {
	volumes, names = map[string]bool{}, map[corev1.UniqueVolumeName]bool{}
	for _, pod := range f.Ignored {
		for _, own := range pod.Spec.Volumes {
			if name, ephemeral := claimName(pod, own); name == "" {
				inline = append(inline, fields(&own.VolumeSource))
			} else if volume := f.bound(pod, name, ephemeral); volume != nil {
				volumes[volume.Name] = true
				addAll(names, AttachedNames(volume))
			}
		}
	}
	for _, volume := range inline {
		addAll(names, pluginNames(volume))
	}
	// Volumes may share a disk, which is attached once.
	for _, volume := range f.Volumes {
		if slices.ContainsFunc(AttachedNames(volume), func(name corev1.UniqueVolumeName) bool { return names[name] }) {
			volumes[volume.Name] = true
		}
	}
	return volumes, names, inline
}

func addAll(set map[corev1.UniqueVolumeName]bool, names []corev1.UniqueVolumeName) {
	for _, name := range names {
		set[name] = true
	}
}

// bound returns the volume that the pod has by the claim; nil unless claim and
// volume both say so.
func (f finder) bound(pod *corev1.Pod, name string, ephemeral bool) *corev1.PersistentVolume {
	claim := f.Claims[types.NamespacedName{Namespace: pod.Namespace, Name: name}]
	if claim == nil || ephemeral && !metav1.IsControlledBy(claim, pod) {
		return nil
	}
	volume := f.Volumes[claim.Spec.VolumeName]
	if volume == nil || volume.Spec.ClaimRef == nil {
		return nil
	}
	if ref := volume.Spec.ClaimRef; ref.Namespace != claim.Namespace || ref.Name != claim.Name || ref.UID != claim.UID {
		return nil
	}
	return volume
}

// tookOver reports whether a CSI volume is what became of the volume of a pod
// that was made for a plugin inside Kubernetes. Either of their names may have
// more in front, such as the zone.
func tookOver(name corev1.UniqueVolumeName, volume map[string]any) bool {
	driver, handle, csi := Handle(name)
	return csi && slices.ContainsFunc(plugins, func(p plugin) bool {
		if p.driver != driver {
			return false
		}
		id := p.id(volume)
		return id != "" && (strings.HasSuffix("/"+handle, "/"+id) || strings.HasSuffix("/"+id, "/"+handle))
	})
}
