package volume

import (
	"ebbtide.dev/ebbtide/internal/core/nodedrain"
)

const namedVolumes = 5

// message names the attached volumes, and why they could not be detached.
func (f finder) message(left map[string]attached) string {
	var claims, volumes, unknown, attachments []string
	errors := map[string][]string{}
	for _, one := range left {
		name := one.name
		switch volume := f.Volumes[one.volume]; {
		case volume == nil && one.volume != "":
			name = one.volume
			unknown = append(unknown, name)
		case volume == nil:
			attachments = append(attachments, name)
		case volume.Spec.ClaimRef == nil:
			name = volume.Name
			volumes = append(volumes, name)
		default:
			name = volume.Spec.ClaimRef.Namespace + "/" + volume.Spec.ClaimRef.Name
			claims = append(claims, name)
		}
		if one.attachment != nil && one.attachment.Status.DetachError != nil {
			reason := one.attachment.Status.DetachError.Message
			errors[reason] = append(errors[reason], name)
		}
	}
	r := nodedrain.NewReport("Volumes are still attached to the Node:", namedVolumes)
	r.Names("PersistentVolumeClaims", claims)
	r.Names("PersistentVolumes without a claim", volumes)
	r.Names("PersistentVolumes without further information", unknown)
	r.Names("Attachments without a PersistentVolume", attachments)
	r.Groups("Detach failed", nodedrain.ByReason(errors))
	r.Text("No volume is ignored because its pod could not be determined", f.Problem)
	return r.String()
}
