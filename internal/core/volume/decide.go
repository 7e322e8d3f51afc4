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

// Snapshot describes the volumes of a node. Missing objects do not exist, unless Problem is set.
type Snapshot struct {
	// Node is nil if it does not exist. Then nothing is attached to it.
	Node        *corev1.Node
	Attachments []*storagev1.VolumeAttachment
	// Ignored are the pods whose volumes are not awaited.
	Ignored []*corev1.Pod
	// Claims are at least those of the ignored pods, see Claims.
	Claims map[types.NamespacedName]*corev1.PersistentVolumeClaim
	// Volumes are, by name, at least those of the claims and attachments, and those of an
	// AttachedName in the node's status.
	Volumes map[string]*corev1.PersistentVolume
	// Problem is set if claims or volumes could not be read. Then nothing is ignored.
	Problem string
}

// Decision tells whether volumes are awaited.
type Decision struct {
	Done    bool
	Message string
}

// Decide returns whether relevant volumes are still attached to the node.
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

type attached struct {
	volume string
	// name is its name in the node's status, or that of its VolumeAttachment.
	name string
	// attachment is nil if only the node's status has it.
	attachment *storagev1.VolumeAttachment
}

func (a attached) key() string {
	if a.volume != "" {
		return "PersistentVolume/" + a.volume
	}
	return a.name
}

type finder struct {
	Snapshot
	// attachments are by name, volumes by their name in the node's status.
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
			// Volumes may share a disk; the named one must be stable.
			if other := f.volumes[name]; other == nil || volume.Name < other.Name {
				f.volumes[name] = volume
			}
		}
	}
	return f
}

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

// holds reports whether a volume may still be attached. Attached is true only between a successful
// attach and detach; before and in between the attacher keeps the object with a finalizer, because
// an attach that has not succeeded may have happened.
func holds(attachment *storagev1.VolumeAttachment) bool {
	return attachment.Status.Attached || len(attachment.Finalizers) > 0
}

// named identifies a volume in the node's status, perhaps by a migrated in-tree name.
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
