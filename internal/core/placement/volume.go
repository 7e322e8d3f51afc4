package placement

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

const (
	bindCompleted = "pv.kubernetes.io/bind-completed"
	selectedNode  = "volume.kubernetes.io/selected-node"
	defaultClass  = "storageclass.kubernetes.io/is-default-class"
	noProvisioner = "kubernetes.io/no-provisioner"
)

// zoneKeys are labels of volumes that nodes must have, too, if they have any of them.
var zoneKeys = []string{
	corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
}

type storage struct {
	claimed map[string]*corev1.PersistentVolumeClaim
	volume  map[string]*corev1.PersistentVolume
	spare   map[string][]*corev1.PersistentVolume // by class, the smallest first
	class   map[string]*storagev1.StorageClass
	usual   string                              // the default class
	bound   map[string]*corev1.PersistentVolume // by claim, as pods were placed
	taken   map[string]bool                     // volumes that were bound so
}

func newStorage(w World) storage {
	s := storage{
		claimed: make(map[string]*corev1.PersistentVolumeClaim, len(w.Claims)),
		volume:  make(map[string]*corev1.PersistentVolume, len(w.Volumes)),
		spare:   map[string][]*corev1.PersistentVolume{}, class: map[string]*storagev1.StorageClass{},
		bound: map[string]*corev1.PersistentVolume{}, taken: map[string]bool{},
	}
	for _, claim := range w.Claims {
		s.claimed[claim.Namespace+"/"+claim.Name] = claim
	}
	for _, v := range w.Volumes {
		s.volume[v.Name] = v
		if v.DeletionTimestamp == nil && (v.Status.Phase == corev1.VolumeAvailable || v.Spec.ClaimRef != nil) {
			s.spare[v.Spec.StorageClassName] = append(s.spare[v.Spec.StorageClassName], v)
		}
	}
	for _, all := range s.spare {
		slices.SortFunc(all, func(a, b *corev1.PersistentVolume) int {
			return cmp.Or(a.Spec.Capacity.Storage().Cmp(*b.Spec.Capacity.Storage()), cmp.Compare(a.Name, b.Name))
		})
	}
	var newest *storagev1.StorageClass
	for _, c := range w.Classes {
		s.class[c.Name] = c
		if c.Annotations[defaultClass] != "true" {
			continue
		}
		if newest == nil || newest.CreationTimestamp.Before(&c.CreationTimestamp) {
			newest, s.usual = c, c.Name
		}
	}
	return s
}

type volumes struct {
	claims  []string // all that they name
	alone   []string // those that only one pod may use
	reaches []*reach
	open    []openClaim
}

// reach is which nodes a volume can be used on.
type reach struct {
	name     string
	affinity *nodeaffinity.LazyErrorNodeSelector
	zones    []zone
	seen     []bool
	reaches  []bool
}

type zone struct {
	key    string
	values []string
}

func (e *Estimate) reachOf(v *corev1.PersistentVolume, zoned bool) *reach {
	key := v.Name
	if zoned {
		key += "|zoned"
	}
	r := e.reaches[key]
	if r != nil {
		return r
	}
	r = &reach{name: v.Name, seen: make([]bool, len(e.nodes)), reaches: make([]bool, len(e.nodes))}
	if v.Spec.NodeAffinity != nil && v.Spec.NodeAffinity.Required != nil {
		r.affinity = nodeaffinity.NewLazyErrorNodeSelector(v.Spec.NodeAffinity.Required)
	}
	for _, key := range zoneKeys {
		if value, has := v.Labels[key]; has && zoned {
			r.zones = append(r.zones, zone{key, strings.Split(value, "__")})
		}
	}
	e.reaches[key] = r
	return r
}

func (r *reach) includes(n *node) bool {
	if !r.seen[n.at] {
		r.seen[n.at], r.reaches[n.at] = true, r.judge(n)
	}
	return r.reaches[n.at]
}

func (r *reach) judge(n *node) bool {
	if r.affinity != nil {
		// The scheduler goes by the labels alone.
		if matches, err := r.affinity.Match(&corev1.Node{ObjectMeta: metaOf(n)}); err != nil || !matches {
			return false
		}
	}
	if !slices.ContainsFunc(zoneKeys, func(key string) bool { _, has := n.Labels[key]; return has }) {
		return true
	}
	return !slices.ContainsFunc(r.zones, func(z zone) bool { return !slices.Contains(z.values, labelOf(n, z.key)) })
}

// labelOf returns a label of a node by its name of today if it does not have the old one.
func labelOf(n *node, key string) string {
	if value, has := n.Labels[key]; has {
		return value
	}
	switch key {
	case corev1.LabelFailureDomainBetaZone:
		key = corev1.LabelTopologyZone
	case corev1.LabelFailureDomainBetaRegion:
		key = corev1.LabelTopologyRegion
	}
	return n.Labels[key]
}

func (e *Estimate) volumesOf(pod *corev1.Pod) (all volumes, problem string) {
	all.claims = claimsOf(pod)
	for _, name := range all.claims {
		if problem = e.claim(&all, name); problem != "" {
			return all, problem
		}
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Ephemeral == nil || v.Ephemeral.VolumeClaimTemplate == nil {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{Spec: v.Ephemeral.VolumeClaimTemplate.Spec}
		claim.Namespace, claim.Name, claim.Labels = pod.Namespace, v.Name, v.Ephemeral.VolumeClaimTemplate.Labels
		claim.Annotations = v.Ephemeral.VolumeClaimTemplate.Annotations
		if claim.Spec.StorageClassName == nil {
			claim.Spec.StorageClassName = &e.usual
		}
		if problem = e.unbound(&all, claim, true); problem != "" {
			return all, problem
		}
	}
	return all, ""
}

func (e *Estimate) claim(all *volumes, name string) (problem string) {
	if e.unread.Claims != "" {
		return unknownPrefix + "its claims could not be read: " + e.unread.Claims
	}
	claim := e.claimed[name]
	if claim == nil {
		return "its PersistentVolumeClaim " + shown(name) + " does not exist"
	}
	switch {
	case claim.Status.Phase == corev1.ClaimLost:
		return "its PersistentVolumeClaim " + shown(name) + " has lost its volume " + shown(claim.Spec.VolumeName)
	case claim.DeletionTimestamp != nil:
		return "its PersistentVolumeClaim " + shown(name) + " is being deleted"
	}
	if slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
		all.alone = append(all.alone, name)
	}
	if claim.Spec.VolumeName == "" {
		return e.unbound(all, claim, false)
	}
	if _, completed := claim.Annotations[bindCompleted]; !completed {
		return "its PersistentVolumeClaim " + shown(name) + " is not bound yet"
	}
	if e.unread.Volumes != "" {
		return unknownPrefix + "its volumes could not be read: " + e.unread.Volumes
	}
	volume := e.volume[claim.Spec.VolumeName]
	if volume == nil {
		return "its PersistentVolumeClaim " + shown(name) + " is bound to " + shown(claim.Spec.VolumeName) + ", which does not exist"
	}
	all.reaches = append(all.reaches, e.reachOf(volume, true))
	return ""
}

// reachable returns what the volumes of pods say to a node.
func (e *Estimate) reachable(c *class, n *node) obstacle {
	for _, name := range c.alone {
		if e.users[name] > 0 {
			return obstacle{kind: claimInUse, detail: e.reason(name)}
		}
	}
	for _, r := range c.reaches {
		if !r.includes(n) {
			return obstacle{kind: outOfReach, detail: e.reason(r.name)}
		}
	}
	for i := range c.open {
		if o := e.opens(&c.open[i], n); o != fit {
			return o
		}
	}
	return fit
}

func shown(name string) string { return excerpt.Line(name, 2*maxDetail) }
