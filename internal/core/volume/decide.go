// Package volume decides whether volumes are still attached to a Machine's node that have to be
// detached before the Machine is deleted (machine-deletion-process, machine-drain-rules). It
// reads the node's status and the VolumeAttachments, because either can lag. Volumes of pods
// that are not drained are ignored. A volume that cannot be attributed is awaited and named.
package volume

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Snapshot is what is known of the volumes of a node. What is in no map is known
// not to exist, unless there is a Problem.
type Snapshot struct {
	// Node is nil if it is known not to exist. Nothing is attached to it then.
	Node *corev1.Node
	// Attachments are those of the node.
	Attachments []*storagev1.VolumeAttachment
	// Ignored are the pods whose volumes nobody waits for.
	Ignored []*corev1.Pod
	// Claims are at least those of the ignored pods, see Claims.
	Claims map[types.NamespacedName]*corev1.PersistentVolumeClaim
	// Volumes are, by name, at least those of the claims, those that the
	// attachments name, and those of an AttachedName that the node's status has.
	Volumes map[string]*corev1.PersistentVolume
	// Problem is why claims or volumes could not be read. Nothing is ignored then.
	Problem string
}

// Decision is whether volumes have to be waited for.
type Decision struct {
	// Done is true if nothing is attached that matters.
	Done bool
	// Message names what is; empty if nothing is.
	Message string
}

// Decide says whether volumes are still attached to the node that matter.
func Decide(s Snapshot) Decision {
	if s.Node == nil {
		return Decision{Done: true}
	}
	f := newFinder(s)
	left := f.attached()
	if s.Problem == "" {
		maps.DeleteFunc(left, f.used().has)
	}
	if len(left) == 0 {
		return Decision{Done: true}
	}
	return Decision{Message: f.message(left)}
}

// attached is something that is attached to the node.
type attached struct {
	// volume is the name of the PersistentVolume; empty if it is none.
	volume string
	// name is what else it is known by: its name in the node's status, or that of
	// its VolumeAttachment.
	name string
	// attachment is nil if only the node's status tells of it.
	attachment *storagev1.VolumeAttachment
}

// key is the same for all that tells of one volume.
func (a attached) key() string {
	if a.volume != "" {
		return "PersistentVolume/" + a.volume
	}
	return a.name
}

// finder finds out which volume is meant.
type finder struct {
	Snapshot
	// attachments are by name, volumes by what the node's status calls them.
	attachments map[string]*storagev1.VolumeAttachment
	volumes     map[corev1.UniqueVolumeName]*corev1.PersistentVolume
}

func newFinder(s Snapshot) finder {
	f := finder{
		Snapshot:    s,
		attachments: make(map[string]*storagev1.VolumeAttachment, len(s.Attachments)),
		volumes:     make(map[corev1.UniqueVolumeName]*corev1.PersistentVolume, len(s.Volumes)),
	}
	for _, attachment := range s.Attachments {
		f.attachments[attachment.Name] = attachment
	}
	for _, volume := range s.Volumes {
		for _, name := range AttachedNames(volume) {
			// Volumes may share a disk; which of them is named must not flap.
			if other := f.volumes[name]; other == nil || volume.Name < other.Name {
				f.volumes[name] = volume
			}
		}
	}
	return f
}

// attached returns all that is attached, by key.
func (f finder) attached() map[string]attached {
	all := map[string]attached{}
	for _, volume := range f.Node.Status.VolumesAttached {
		one := f.named(volume.Name)
		all[one.key()] = one
	}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(f.attachments))) {
		if attachment := f.attachments[name]; holds(attachment) {
			one := f.by(attachment)
			all[one.key()] = one
		}
	}
	return all
}

// holds reports whether an attachment tells of a volume that may still be
// attached. Attached is true only after an attach has succeeded and until the
// detach has; before and in between, whoever attaches the volume keeps the object
// with a finalizer, because an attach that has not succeeded may have happened.
func holds(attachment *storagev1.VolumeAttachment) bool {
	return attachment.Status.Attached || len(attachment.Finalizers) > 0
}

// named finds what the node's status tells of. The attachment knows best: it has
// the name of a volume that was made for a plugin inside Kubernetes, too.
func (f finder) named(name corev1.UniqueVolumeName) attached {
	if driver, handle, csi := Handle(name); csi {
		if attachment, found := f.attachments[attachmentName(driver, handle, f.Node.Name)]; found {
			return f.by(attachment)
		}
	}
	if volume, found := f.volumes[name]; found {
		return attached{volume: volume.Name, name: string(name)}
	}
	return attached{name: string(name)}
}

// by finds what an attachment tells of.
func (f finder) by(attachment *storagev1.VolumeAttachment) attached {
	one := attached{name: attachment.Name, attachment: attachment}
	source := attachment.Spec.Source
	switch {
	case source.PersistentVolumeName != nil:
		one.volume = *source.PersistentVolumeName
	case source.InlineVolumeSpec != nil && source.InlineVolumeSpec.CSI != nil:
		one.name = string(csiName(source.InlineVolumeSpec.CSI.Driver, source.InlineVolumeSpec.CSI.VolumeHandle))
	}
	return one
}
