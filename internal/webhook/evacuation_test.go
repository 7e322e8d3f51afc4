package webhook

import (
	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// registered are annotations by which evacuators register: classes and values.
func registered(pairs ...string) map[string]string {
	annotations := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		annotations[v1alpha1.EvacuatorAnnotationPrefix+pairs[i]] = pairs[i+1]
	}
	return annotations
}
