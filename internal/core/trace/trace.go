// Package trace finds what Ebbtide has left on an object, and returns the object without it. An
// object without traces is not changed. A node that was cordoned before stays cordoned, and one
// whose earlier state is unknown stays as it is. Labels, annotations and planned maintenances
// that people wrote stay, but for locks. No pod is evicted or deleted.
package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/bridge"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// Object can bear traces.
type Object interface {
	metav1.Object
	runtime.Object
}

// Facts hold information that the object does not contain.
type Facts struct {
	Now time.Time
	// Homeless is true for a pod whose ReplicaSet no longer exists.
	Homeless bool
	// Why is the message of a maintenance that is cut short.
	Why string
}

// Finding describes the traces on one object, removed in the order status, object, deletion.
type Finding struct {
	Object Object
	// Announced are the types of Node conditions to remove.
	Announced []corev1.NodeConditionType
	Status    *v1alpha1.NodeMaintenanceStatus
	// Without is the object without traces; nil if its metadata and spec have none.
	Without Object
	Delete  bool
	// Does describes the changes, such as "remove annotation ebbtide.dev/cordon".
	Does []string
	// Notes describe remaining manual steps. They are safe for a terminal.
	Notes []string
}

// Of returns what Ebbtide left on an object; found is false if that is nothing.
func Of(object Object, facts Facts) (f Finding, found bool) {
	switch o := object.(type) {
	case *v1alpha1.NodeMaintenance:
		f = ofMaintenance(o, facts)
	case *v1alpha1.NodeRollout:
		f = ofRollout(o)
	case *v1alpha1.Evacuation:
		f = ofEvacuation(o)
	case *lifecyclev1alpha1.EvictionRequest:
		f = ofRequest(o)
	case *v1alpha1.DrainRecord:
		f = Finding{Delete: true, Does: []string{"delete it"}}
	case *v1alpha1.NodeAgent:
		f = ofAgent(o)
	case *v1alpha1.Machine:
		f = ofMachine(o)
	case *v1alpha1.Cluster:
		f = held(o, is(v1alpha1.ClusterFinalizer))
	case *corev1.Node:
		f = ofNode(o)
	case *corev1.Pod:
		f = ofPod(o, facts)
	case *policyv1.PodDisruptionBudget:
		f = ofBudget(o, facts)
	case *unstructured.Unstructured:
		f = ofBridged(o)
	}
	f.Object = object
	return f, len(f.Does) > 0
}

const (
	maxNote       = 300
	maxFinalizers = 3
)

// ofBridged handles a Machine of Cluster API. Invalid hooks are ignored.
func ofBridged(o *unstructured.Unstructured) (f Finding) {
	kind := o.GroupVersionKind()
	if kind != bridge.ClusterAPIMachine && kind != bridge.OpenShiftMachine {
		return f
	}
	without, err := bridge.Change(o, bridge.Take, time.Time{})
	if err != nil || without == nil {
		return f
	}
	f.Without, f.Does = without, []string{"remove the pre-drain hook of Ebbtide"}
	return f
}

func held[T Object](object T, ours func(finalizer string) bool) Finding {
	var f Finding
	var kept []string
	removed := 0
	for _, finalizer := range object.GetFinalizers() {
		if !ours(finalizer) {
			kept = append(kept, finalizer)
			continue
		}
		if removed++; removed <= maxFinalizers {
			f.Does = append(f.Does, "remove finalizer "+excerpt.Line(finalizer, maxNote))
		}
	}
	if removed == 0 {
		return f
	}
	if more := removed - maxFinalizers; more > 0 {
		f.Does = append(f.Does, fmt.Sprintf("remove %d more of these", more))
	}
	without, _ := object.DeepCopyObject().(T)
	without.SetFinalizers(kept)
	f.Without = without
	if object.GetDeletionTimestamp() != nil && len(kept) > 0 {
		f.Notes = append(f.Notes, "its deletion waits for the owner of "+nameFinalizers(kept))
	}
	return f
}

func is(ours string) func(string) bool { return func(one string) bool { return one == ours } }

func nameFinalizers(all []string) string {
	text := "finalizer " + excerpt.Line(all[0], maxNote)
	if more := len(all) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// ofEvacuation withdraws every request, because no manager acts on it any more.
func ofEvacuation(e *v1alpha1.Evacuation) Finding {
	ours := func(finalizer string) bool { return strings.HasPrefix(finalizer, v1alpha1.InstigatorFinalizerPrefix) }
	f := held(e, ours)
	f.Delete, f.Does = true, append([]string{"delete it"}, f.Does...)
	kept := slices.DeleteFunc(slices.Clone(e.Finalizers), ours)
	if len(kept) > 0 && len(f.Notes) == 0 {
		f.Notes = append(f.Notes, "its deletion waits for the owner of "+nameFinalizers(kept))
	}
	return f
}

// ofRequest withdraws only EvictionRequests of Ebbtide, since other controllers answer them, too.
func ofRequest(request *lifecyclev1alpha1.EvictionRequest) Finding {
	if !evictionrequest.Own(request) {
		return Finding{}
	}
	f := Finding{Delete: true, Does: []string{"delete it"}}
	if len(request.Finalizers) > 0 {
		f.Notes = append(f.Notes, "its deletion waits for the owner of "+nameFinalizers(request.Finalizers))
	}
	return f
}

func ofMachine(m *v1alpha1.Machine) Finding {
	f := held(m, is(v1alpha1.MachineFinalizer))
	switch {
	case len(f.Does) == 0:
	case m.DeletionTimestamp != nil:
		f.Notes = append(f.Notes, "it will be deleted immediately, without draining its node or waiting for hooks")
	default:
		f.Notes = append(f.Notes, "when it is deleted, its node will not be drained and hooks will not be waited for")
	}
	return f
}
