package volume

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Claims returns the claims of a pod, including its generic ephemeral volumes.
func Claims(pod *corev1.Pod) (claims []types.NamespacedName) {
	for _, volume := range pod.Spec.Volumes {
		if name, _ := claimName(pod, volume); name != "" {
			claims = append(claims, types.NamespacedName{Namespace: pod.Namespace, Name: name})
		}
	}
	return claims
}

// claimName returns the claim of a volume, perhaps ephemeral; empty without one.
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

// used holds the volumes that the ignored pods have attached to the node.
type used struct {
	volumes map[string]bool
	// names holds the names in the node's status, also of volumes without a PersistentVolume.
	names  map[corev1.UniqueVolumeName]bool
	inline []map[string]any
}

func (f finder) used() used {
	u := used{volumes: map[string]bool{}, names: map[corev1.UniqueVolumeName]bool{}}
	for _, pod := range f.Ignored {
		for _, own := range pod.Spec.Volumes {
			if name, ephemeral := claimName(pod, own); name == "" {
				u.addInline(own)
			} else if volume := f.bound(pod, name, ephemeral); volume != nil {
				u.addVolume(volume)
			}
		}
	}
	// Several volumes may share one disk, which is attached once.
	for _, volume := range f.Volumes {
		if slices.ContainsFunc(AttachedNames(volume), func(name corev1.UniqueVolumeName) bool { return u.names[name] }) {
			u.volumes[volume.Name] = true
		}
	}
	return u
}

func (u used) addVolume(volume *corev1.PersistentVolume) {
	u.volumes[volume.Name] = true
	for _, name := range AttachedNames(volume) {
		u.names[name] = true
	}
}

func (u *used) addInline(volume corev1.Volume) {
	source := fields(&volume.VolumeSource)
	u.inline = append(u.inline, source)
	for _, name := range pluginNames(volume.Name, source) {
		u.names[name] = true
	}
}

// has reports whether an ignored pod uses the volume, whatever other pods do.
func (u used) has(_ string, one attached) bool {
	if one.volume != "" {
		return u.volumes[one.volume]
	}
	name := corev1.UniqueVolumeName(one.name)
	return u.names[name] || slices.ContainsFunc(u.inline, func(volume map[string]any) bool { return tookOver(name, volume) })
}

// bound returns the volume of a claim of the pod; nil unless claim and volume refer to each other.
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

// tookOver reports whether a CSI volume is the pod's migrated volume, apart from prefixes.
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
