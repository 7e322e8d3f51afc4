package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// deletion refuses to delete a Machine in the foreground: the garbage collector
// deletes what it owns at once then, the infrastructure before its Node is drained
// and whatever hooks hold it.
func deletion(request admission.Request) admission.Response {
	var options metav1.DeleteOptions
	if err := json.Unmarshal(request.Options.Raw, &options); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the options of the deletion: %w", err))
	}
	if ptr.Deref(options.PropagationPolicy, "") != metav1.DeletePropagationForeground {
		return admission.Allowed("")
	}
	return admission.Denied(fmt.Sprintf(
		"Machine %s cannot be deleted in the foreground: its infrastructure would be deleted at once, before its Node is drained and its hooks are gone; "+
			"delete it with the propagation policy Background, which is the default", request.Name))
}
