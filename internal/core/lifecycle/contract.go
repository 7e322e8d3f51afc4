package lifecycle

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const maxProviderID = 512

// ReadInfrastructure reads an infrastructure object. It is ready when
// status.initialization.provisioned or, in the older contract, status.ready is true.
func ReadInfrastructure(object *unstructured.Unstructured, machine *v1alpha1.Machine) External {
	r := reader{object: object.Object}
	e := r.identify(object, machine)
	if e.ProviderID = r.text("spec", "providerID"); len(e.ProviderID) > maxProviderID {
		r.note(fmt.Errorf("spec.providerID has %d characters, more than %d", len(e.ProviderID), maxProviderID))
		e.ProviderID = ""
	}
	e.Ready = r.firstFlag([]string{"status", "initialization", "provisioned"}, []string{"status", "ready"})
	e.Failure, e.Fault = r.failure(), r.fault
	return e
}

// ReadBootstrap reads a bootstrap config. It is ready when status.initialization.dataSecretCreated
// or, in the older contract, status.ready is true; an object with neither when it has
// status.dataSecretName.
func ReadBootstrap(object *unstructured.Unstructured, machine *v1alpha1.Machine) External {
	r := reader{object: object.Object}
	e := r.identify(object, machine)
	e.DataSecretName = r.text("status", "dataSecretName")
	created, ready := []string{"status", "initialization", "dataSecretCreated"}, []string{"status", "ready"}
	e.Ready = e.DataSecretName != ""
	if r.has(created...) || r.has(ready...) {
		e.Ready = r.firstFlag(created, ready)
	}
	e.Failure, e.Fault = r.failure(), r.fault
	return e
}

// ReadControlPlane reads the object that manages a control plane. Only its deletion matters.
func ReadControlPlane(object *unstructured.Unstructured, machine *v1alpha1.Machine) External {
	r := reader{object: object.Object}
	return r.identify(object, machine)
}

// reader reads fields of a foreign object. It ignores invalid ones and keeps the first fault.
type reader struct {
	object map[string]any
	fault  string
}

func (r *reader) identify(object *unstructured.Unstructured, machine *v1alpha1.Machine) External {
	controller := metav1.GetControllerOf(object)
	return External{
		Kind: object.GetKind(), Name: object.GetName(), UID: object.GetUID(),
		Controller: controller, Owned: controller != nil && controller.UID == machine.UID,
		Deleting: object.GetDeletionTimestamp() != nil,
	}
}

func (r *reader) failure() string {
	reason, message := r.text("status", "failureReason"), r.text("status", "failureMessage")
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

func (r *reader) firstFlag(fields ...[]string) bool {
	for _, field := range fields {
		if r.has(field...) {
			return r.flag(field...)
		}
	}
	return false
}

func (r *reader) has(field ...string) bool {
	_, found, err := unstructured.NestedFieldNoCopy(r.object, field...)
	return found && err == nil
}

func (r *reader) flag(field ...string) bool {
	value, _, err := unstructured.NestedBool(r.object, field...)
	r.note(err)
	return value
}

func (r *reader) text(field ...string) string {
	value, _, err := unstructured.NestedString(r.object, field...)
	r.note(err)
	return value
}

func (r *reader) note(err error) {
	if err != nil && r.fault == "" {
		r.fault = fmt.Sprintf("it does not follow Cluster API's contract: %v", err)
	}
}
