package volume

import (
	"fmt"
	"strings"

	"ebbtide.dev/ebbtide/internal/core/nodedrain"
)

// namedVolumes is how many of a kind are named.
const namedVolumes = 5

// message names what is left.
func (f finder) message(left map[string]attached) string {
	var claims, volumes, attachments []string
	for _, one := range left {
		switch volume := f.Volumes[one.volume]; {
		case volume == nil:
			attachments = append(attachments, one.name)
		case volume.Spec.ClaimRef == nil:
			volumes = append(volumes, volume.Name)
		default:
			claims = append(claims, volume.Spec.ClaimRef.Namespace+"/"+volume.Spec.ClaimRef.Name)
		}
	}
	var text strings.Builder
	text.WriteString("Volumes are still attached to the Node:")
	for _, kind := range []struct {
		title string
		names []string
	}{
		{"PersistentVolumeClaims", claims},
		{"PersistentVolumes without a claim", volumes},
		{"Attachments without a PersistentVolume", attachments},
	} {
		if len(kind.names) > 0 {
			fmt.Fprintf(&text, "\n* %s: %s", kind.title, nodedrain.List(kind.names, namedVolumes))
		}
	}
	if f.Problem != "" {
		fmt.Fprintf(&text, "\n* Whose they are could not be found out, so none is ignored: %s", f.Problem)
	}
	return text.String()
}
