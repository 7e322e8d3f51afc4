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

// reviewsAtOnce is how many nodes are reviewed at the same time.
const reviewsAtOnce = 32

// othersWithin is how long a request waits to hear of other NodeMaintenances.
const othersWithin = time.Second

// maintenanceDefaulter writes the default entries into the drain plan of a new
// NodeMaintenance, so that its reader sees what will happen.
type maintenanceDefaulter struct{}

// Handle completes the plan of a new NodeMaintenance. It also completes that of
// a changed one if it becomes the old one by that: who applies the same manifest
// again has not changed the plan, which is immutable. And it puts the finalizer on
// what is acted on, which the controller would have to write otherwise.
func (maintenanceDefaulter) Handle(_ context.Context, request admission.Request) admission.Response {
	before, after, err := decodeMaintenances(request)
	if err != nil || slices.ContainsFunc(after.Spec.DrainPlan, isNull) {
		// The schema, which the API server checks next, says better what is wrong.
		return admission.Allowed("")
	}
	operations := append(finalizer(after), startedBy(before, after, request.UserInfo.Username)...)
	full := drainplan.Inject(after.Spec.DrainPlan)
	if before == nil || equality.Semantic.DeepEqual(before.Spec.DrainPlan, full) {
		operations = append(operations, insertions(after.Spec.DrainPlan, full)...)
	}
	return admission.Patched("", operations...)
}

// maxUser is how many bytes of the name of a user are kept.
const maxUser = 256

// startedBy notes who began a maintenance, and keeps what was noted.
func startedBy(before, after *v1alpha1.NodeMaintenance, user string) []jsonpatch.Operation {
	noted, wanted := after.Annotations[v1alpha1.StartedByAnnotation], excerpt.Line(user, maxUser)
	begins := after.Spec.Stage == v1alpha1.StageCordon || after.Spec.Stage == v1alpha1.StageDrain
	if before != nil && (!begins || before.Spec.Stage == after.Spec.Stage) {
		wanted = before.Annotations[v1alpha1.StartedByAnnotation]
	}
	switch {
	case noted == wanted:
		return nil
	case wanted == "":
		return []jsonpatch.Operation{jsonpatch.NewOperation("remove", startedByPath, nil)}
	case after.Annotations == nil:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/annotations", map[string]string{v1alpha1.StartedByAnnotation: wanted})}
	}
	return []jsonpatch.Operation{jsonpatch.NewOperation("add", startedByPath, wanted)}
}

var startedByPath = "/metadata/annotations/" + strings.ReplaceAll(v1alpha1.StartedByAnnotation, "/", "~1")

// finalizer adds the finalizer to a maintenance that holds nodes.
func finalizer(m *v1alpha1.NodeMaintenance) []jsonpatch.Operation {
	holds := m.Spec.Stage == v1alpha1.StageCordon || m.Spec.Stage == v1alpha1.StageDrain
	switch {
	case !holds, m.DeletionTimestamp != nil, slices.Contains(m.Finalizers, v1alpha1.MaintenanceCompletionFinalizer):
		return nil
	case len(m.Finalizers) == 0:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/finalizers", []string{v1alpha1.MaintenanceCompletionFinalizer})}
	default:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/finalizers/-", v1alpha1.MaintenanceCompletionFinalizer)}
	}
}

// insertions make the full plan of a plan and leave alone what its author wrote:
// a label without a value would get an empty one, and not be refused any more.
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

// isNull is true for an entry that is null in JSON: any other has got a type from
// the schema by now.
func isNull(entry v1alpha1.DrainPlanEntry) bool { return entry.PodType == "" }

// maintenanceValidator lets nobody drain a node who may not delete it.
type maintenanceValidator struct {
	reader  client.Reader
	reviews reviewer
	now     kube.Now
}

// Handle refuses a change by somebody who may not delete every node that is
// selected before or after it, and warns of what its author may not have meant.
func (v maintenanceValidator) Handle(ctx context.Context, request admission.Request) admission.Response {
	change, err := v.observe(ctx, request)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	refusal, err := v.refusal(ctx, request, change)
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
	// They are only read, and the manager's own writes do not change what matches.
	if err := v.reader.List(ctx, nodes, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		return change, fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		change.Nodes = append(change.Nodes, &nodes.Items[i])
	}
	if change.Drains() {
		change.Others, change.OthersUnknown = v.others(ctx)
	}
	return change, nil
}

// others reads all NodeMaintenances. They are for warnings only, so nobody waits
// for them for long.
func (v maintenanceValidator) others(ctx context.Context) ([]*v1alpha1.NodeMaintenance, error) {
	ctx, cancel := context.WithTimeout(ctx, othersWithin)
	defer cancel()
	return maintenances(ctx, v.reader)
}

// maintenances are all NodeMaintenances. They are only read.
func maintenances(ctx context.Context, reader client.Reader) ([]*v1alpha1.NodeMaintenance, error) {
	list := &v1alpha1.NodeMaintenanceList{}
	if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		return nil, fmt.Errorf("list NodeMaintenances: %w", err)
	}
	return kube.Pointers(list.Items), nil
}

// refusal asks for the whole cluster first, because most who maintain nodes may
// delete any of them.
func (v maintenanceValidator) refusal(ctx context.Context, request admission.Request, change validate.MaintenanceChange) (string, error) {
	everywhere, why, err := v.reviews.may(ctx, request.UserInfo, deleteNode(""))
	if err != nil || everywhere {
		return "", err
	}
	affected, err := change.Affected()
	if err != nil {
		return err.Error(), nil
	}
	rights := validate.NodeRights{
		User: request.UserInfo.Username, Why: why, Later: change.TakesLaterNodes(), Ends: change.Ends(), Affected: len(affected), Unknown: len(affected),
	}
	for rights.Unknown > 0 && !rights.Enough() {
		next := affected[len(affected)-rights.Unknown:]
		next = next[:min(len(next), reviewsAtOnce)]
		refused, err := v.reviews.refused(ctx, request.UserInfo, next)
		if err != nil {
			return "", err
		}
		rights.Refused = append(rights.Refused, refused...)
		rights.Unknown -= len(next)
	}
	return rights.Refusal(), nil
}

// deleteNode is the right to delete a node; without a name, every node.
func deleteNode(name string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: "delete", Resource: "nodes", Version: "v1", Name: name}
}

// decodeMaintenances reads what was there and what is to be; nil is nothing.
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

// decodeMaintenance leaves the status out: nobody shall be kept from deleting a
// NodeMaintenance because of what somebody wrote there.
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
