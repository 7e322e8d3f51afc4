package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/drainplan"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/validate"
	"ebbtide.dev/ebbtide/internal/kube"
)

const (
	// reviewsAtOnce bounds the nodes that are reviewed concurrently.
	reviewsAtOnce = 32
	// othersWithin bounds the read of other NodeMaintenances, which only serve warnings.
	othersWithin = time.Second
	// maxUser bounds the recorded name of a user, in bytes.
	maxUser = 256
)

// maintenanceDefaulter completes the drain plan of a new NodeMaintenance, so that it shows all waves.
type maintenanceDefaulter struct{}

// Handle completes the plan of a new NodeMaintenance, or of a changed one whose completed plan is the
// old one: the plan is immutable, and a manifest may be applied again. It also adds the finalizer, which
// saves the controller a write.
func (maintenanceDefaulter) Handle(_ context.Context, request admission.Request) admission.Response {
	before, after, err := decodeMaintenances(request)
	if err != nil || slices.ContainsFunc(after.Spec.DrainPlan, isNull) {
		// The schema, which is checked next, has the better error.
		return admission.Allowed("")
	}
	operations := append(finalizer(after), requestedBy(before, after, request.UserInfo.Username)...)
	full := drainplan.Inject(after.Spec.DrainPlan)
	if before == nil || equality.Semantic.DeepEqual(before.Spec.DrainPlan, full) {
		operations = append(operations, insertions(after.Spec.DrainPlan, full)...)
	}
	return admission.Patched("", operations...)
}

// requestedBy records the user who requested a maintenance, and keeps the record.
func requestedBy(before, after *v1alpha1.NodeMaintenance, user string) []jsonpatch.Operation {
	if before != nil && (!holdsNodes(after) || before.Spec.Stage == after.Spec.Stage) {
		user = before.Annotations[v1alpha1.RequestedByAnnotation]
	}
	return recordUser(after.Annotations, user)
}

// recordUser has the annotations name this user; none if it is empty.
func recordUser(annotations map[string]string, user string) []jsonpatch.Operation {
	noted, wanted := annotations[v1alpha1.RequestedByAnnotation], excerpt.Line(user, maxUser)
	switch {
	case noted == wanted:
		return nil
	case wanted == "":
		return []jsonpatch.Operation{jsonpatch.NewOperation("remove", requestedByPath, nil)}
	case annotations == nil:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/annotations", map[string]string{v1alpha1.RequestedByAnnotation: wanted})}
	}
	return []jsonpatch.Operation{jsonpatch.NewOperation("add", requestedByPath, wanted)}
}

var requestedByPath = "/metadata/annotations/" + strings.ReplaceAll(v1alpha1.RequestedByAnnotation, "/", "~1")

// holdsNodes reports whether the stage of a maintenance holds nodes.
func holdsNodes(m *v1alpha1.NodeMaintenance) bool {
	return m.Spec.Stage == v1alpha1.StageCordon || m.Spec.Stage == v1alpha1.StageDrain
}

// finalizer adds the finalizer to a maintenance that holds nodes.
func finalizer(m *v1alpha1.NodeMaintenance) []jsonpatch.Operation {
	switch {
	case !holdsNodes(m), m.DeletionTimestamp != nil, slices.Contains(m.Finalizers, v1alpha1.MaintenanceCompletionFinalizer):
		return nil
	case len(m.Finalizers) == 0:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/finalizers", []string{v1alpha1.MaintenanceCompletionFinalizer})}
	default:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/finalizers/-", v1alpha1.MaintenanceCompletionFinalizer)}
	}
}

// insertions completes a plan without rewriting its entries: a label without a value would become an
// empty one, which is valid.
func insertions(plan, full []v1alpha1.DrainPlanEntry) (operations []jsonpatch.Operation) {
	if len(plan) == 0 && len(full) > 0 {
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/spec/drainPlan", full)}
	}
	for at, entry := range full {
		if len(plan) > 0 && equality.Semantic.DeepEqual(entry, plan[0]) {
			plan = plan[1:]
			continue
		}
		operations = append(operations, jsonpatch.NewOperation("add", fmt.Sprintf("/spec/drainPlan/%d", at), entry))
	}
	return operations
}

// isNull reports whether an entry is null in JSON; others have a type by the schema.
func isNull(entry v1alpha1.DrainPlanEntry) bool { return entry.PodType == "" }

// maintenanceValidator requires the right to delete the drained nodes.
type maintenanceValidator struct {
	reader  client.Reader
	reviews reviewer
	now     kube.Now
}

// Handle denies a change by a user who may not delete every node that is selected before or after it, and
// warns of likely mistakes.
func (v maintenanceValidator) Handle(ctx context.Context, request admission.Request) admission.Response {
	change, err := v.observe(ctx, request)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	refusal, err := v.reviews.refusal(ctx, request, change)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if refusal == "" {
		refusal = cmp.Or(change.DeadlineRefusal(), change.CompletedRefusal())
	}
	if refusal != "" {
		return admission.Denied(refusal)
	}
	return admission.Allowed("").WithWarnings(change.Warnings()...)
}

func (v maintenanceValidator) observe(ctx context.Context, request admission.Request) (change validate.MaintenanceChange, err error) {
	if change.Old, change.New, err = decodeMaintenances(request); err != nil {
		return change, err
	}
	change.Now = v.now.Earliest()
	nodes := &corev1.NodeList{}
	// They are read-only, and the manager's own writes do not change what matches.
	if err := v.reader.List(ctx, nodes, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		return change, fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		change.Nodes = append(change.Nodes, &nodes.Items[i])
	}
	if change.Drains() {
		limited, cancel := context.WithTimeout(ctx, othersWithin)
		defer cancel()
		change.Others, change.OthersUnknown = maintenances(limited, v.reader)
	}
	return change, nil
}

// maintenances returns all NodeMaintenances, which are read-only.
func maintenances(ctx context.Context, reader client.Reader) ([]*v1alpha1.NodeMaintenance, error) {
	list := &v1alpha1.NodeMaintenanceList{}
	if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		return nil, fmt.Errorf("list NodeMaintenances: %w", err)
	}
	return kube.Pointers(list.Items), nil
}

// deleteNode returns the right to delete a node; without a name, every node.
func deleteNode(name string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: "delete", Resource: "nodes", Version: "v1", Name: name}
}

// decodeMaintenances reads the old and the new object; nil if there is none.
func decodeMaintenances(request admission.Request) (before, after *v1alpha1.NodeMaintenance, err error) {
	if request.Operation != admissionv1.Create {
		if before, err = decodeMaintenance(request.OldObject); err != nil {
			return nil, nil, fmt.Errorf("read the old NodeMaintenance: %w", err)
		}
	}
	if request.Operation != admissionv1.Delete {
		if after, err = decodeMaintenance(request.Object); err != nil {
			return nil, nil, fmt.Errorf("read the NodeMaintenance: %w", err)
		}
	}
	return before, after, nil
}

// decodeMaintenance ignores the status, so that an invalid one does not prevent the deletion.
func decodeMaintenance(object runtime.RawExtension) (*v1alpha1.NodeMaintenance, error) {
	var read struct {
		Metadata metav1.ObjectMeta            `json:"metadata"`
		Spec     v1alpha1.NodeMaintenanceSpec `json:"spec"`
	}
	if err := json.Unmarshal(object.Raw, &read); err != nil {
		return nil, err
	}
	return &v1alpha1.NodeMaintenance{ObjectMeta: read.Metadata, Spec: read.Spec}, nil
}
