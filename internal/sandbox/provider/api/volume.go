package api

const (
	// VolumeDriver is the CSI driver whose volumes the provider attaches.
	VolumeDriver = "sandbox.ebbtide.dev"
	// VolumeFinalizer holds a VolumeAttachment until the volume is detached.
	VolumeFinalizer = "sandbox.ebbtide.dev/attacher"
	// DetachAfter on a PersistentVolume is how long it takes to be detached, a Go
	// duration; without it the volume is detached at once.
	DetachAfter = "sandbox.ebbtide.dev/detach-after"
)
