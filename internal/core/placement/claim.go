package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// openClaim is a claim without a volume, which its first pod binds or provisions.
type openClaim struct {
	name     string // empty for one that each pod has anew
	shown    string
	claim    *corev1.PersistentVolumeClaim
	node     string // that a provisioner was told
	makes    bool
	topology []corev1.TopologySelectorTerm
	choice   []*corev1.PersistentVolume
}

func (e *Estimate) unbound(all *volumes, claim *corev1.PersistentVolumeClaim, anew bool) (problem string) {
	name := claim.Namespace + "/" + claim.Name
	if e.unread.Classes != "" {
		return unknownPrefix + "the class of its claims could not be read: " + e.unread.Classes
	}
	if e.unread.Volumes != "" {
		return unknownPrefix + "the volumes for its claims could not be read: " + e.unread.Volumes
	}
	className := classOfClaim(claim)
	class := e.class[className]
	if className == "" {
		return "its PersistentVolumeClaim " + shown(name) + " has no volume and no StorageClass that makes one"
	}
	if class == nil {
		return "its PersistentVolumeClaim " + shown(name) + " has no volume, and the StorageClass " + shown(className) + " for one does not exist"
	}
	makes := class.Provisioner != "" && class.Provisioner != noProvisioner
	waits := class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	if !waits {
		// One that is made for a new pod does not wait for it, and where it will be it is unknown.
		if anew && makes {
			return ""
		}
		return "its PersistentVolumeClaim " + shown(name) + " is not bound yet"
	}
	open := openClaim{
		shown: name, claim: claim, node: claim.Annotations[selectedNode], makes: makes,
		topology: class.AllowedTopologies, choice: candidates(claim, e.spare[className]),
	}
	if !anew {
		open.name = name
	}
	all.open = append(all.open, open)
	return ""
}

func classOfClaim(claim *corev1.PersistentVolumeClaim) string {
	if name, has := claim.Annotations[corev1.BetaStorageClassAnnotation]; has {
		return name
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}

// candidates returns the volumes that could be bound to a claim, on whatever node.
func candidates(claim *corev1.PersistentVolumeClaim, spare []*corev1.PersistentVolume) (all []*corev1.PersistentVolume) {
	selector := labels.Everything()
	if claim.Spec.Selector != nil {
		selector = selectorOf(claim.Spec.Selector)
	}
	for _, v := range spare {
		ref := v.Spec.ClaimRef
		own := ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name && (ref.UID == "" || ref.UID == claim.UID)
		if v.Spec.Capacity.Storage().Cmp(*claim.Spec.Resources.Requests.Storage()) < 0 || modeOf(v.Spec.VolumeMode) != modeOf(claim.Spec.VolumeMode) {
			continue
		}
		if own {
			return []*corev1.PersistentVolume{v}
		}
		if ref == nil && selector.Matches(labels.Set(v.Labels)) && offers(v.Spec.AccessModes, claim.Spec.AccessModes) {
			all = append(all, v)
		}
	}
	return all
}

func modeOf(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	return ptr.Deref(mode, corev1.PersistentVolumeFilesystem)
}

func offers(all, some []corev1.PersistentVolumeAccessMode) bool {
	return !slices.ContainsFunc(some, func(mode corev1.PersistentVolumeAccessMode) bool { return !slices.Contains(all, mode) })
}

// opens returns what keeps a node from having a volume for a claim.
func (e *Estimate) opens(c *openClaim, n *node) obstacle {
	if v := e.bound[c.name]; v != nil && c.name != "" {
		if e.reachOf(v, true).includes(n) {
			return fit
		}
		return obstacle{kind: outOfReach, detail: e.reason(v.Name)}
	}
	if c.node != "" && c.node != n.Name || e.offer(c, n) == nil && !c.made(n) {
		return obstacle{kind: noVolume, detail: e.reason(c.shown)}
	}
	return fit
}

// offer returns the volume that a pod on the node would bind to a claim.
func (e *Estimate) offer(c *openClaim, n *node) *corev1.PersistentVolume {
	for _, v := range c.choice {
		if !e.taken[v.Name] && e.reachOf(v, false).includes(n) {
			return v
		}
	}
	return nil
}

// made reports whether a volume could be made that the node reaches.
func (c *openClaim) made(n *node) bool {
	if !c.makes || len(c.topology) == 0 {
		return c.makes
	}
	return slices.ContainsFunc(c.topology, func(t corev1.TopologySelectorTerm) bool {
		return !slices.ContainsFunc(t.MatchLabelExpressions, func(r corev1.TopologySelectorLabelRequirement) bool {
			value, has := n.Labels[r.Key]
			return !has || !slices.Contains(r.Values, value)
		})
	})
}

func (e *Estimate) bind(c *class, n *node) {
	for i := range c.open {
		open := &c.open[i]
		if open.name != "" && e.bound[open.name] != nil || open.node != "" {
			continue
		}
		if v := e.offer(open, n); v != nil {
			e.taken[v.Name] = true
			if open.name != "" {
				e.bound[open.name] = v
			}
		}
	}
}

func metaOf(n *node) metav1.ObjectMeta { return metav1.ObjectMeta{Labels: n.Labels} }
