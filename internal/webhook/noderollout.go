package webhook

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/core/validate"
	"ebbtide.dev/ebbtide/internal/kube"
)

// rolloutDefaulter records the user of a rollout, and withdraws an approval.
type rolloutDefaulter struct{}

// Handle records the user who created a rollout or last changed what it does, and keeps the record:
// the NodeMaintenances of the rollout get it. It withdraws the approval of a rollout that gets other
// nodes or another target.
func (rolloutDefaulter) Handle(_ context.Context, request admission.Request) admission.Response {
	before, after, err := decodeRollouts(request)
	if err != nil {
		// The schema, which is checked next, has the better error.
		return admission.Allowed("")
	}
	wanted := request.UserInfo.Username
	if before != nil && (after.Spec.State != v1alpha1.RolloutRunning || equality.Semantic.DeepEqual(before.Spec, after.Spec)) {
		wanted = before.Annotations[v1alpha1.RequestedByAnnotation]
	}
	operations := recordUser(after.Annotations, wanted)
	if (validate.RolloutChange{Old: before, New: after}).WithdrawsApproval() {
		operations = append(operations, jsonpatch.NewOperation("replace", "/spec/canary/approved", false))
	}
	return admission.Patched("", operations...)
}

// rolloutValidator requires the right to delete the nodes of a rollout.
type rolloutValidator struct {
	reader  client.Reader
	reviews reviewer
	now     kube.Now
	// machines are the kinds that rollouts may delete.
	machines rollout.MachineKinds
}

// Handle denies an invalid rollout, and a change by a user who may not delete every node that is
// selected before or after it. It warns of likely mistakes.
func (v rolloutValidator) Handle(ctx context.Context, request admission.Request) admission.Response {
	change, err := v.observe(ctx, request)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if refusals := change.Refusals(); len(refusals) > 0 {
		return admission.Denied(strings.Join(refusals, "; "))
	}
	refusal, err := v.reviews.refusal(ctx, request, change)
	if err == nil && refusal == "" {
		refusal, err = v.reviews.refusalOfJob(ctx, request, change)
	}
	if err == nil && refusal == "" {
		refusal, err = v.reviews.refusedGate(ctx, request.UserInfo, change)
	}
	if err == nil && refusal == "" {
		refusal, err = v.refusesReplacement(ctx, request, change)
	}
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case refusal != "":
		return admission.Denied(refusal)
	}
	return admission.Allowed("").WithWarnings(change.Warnings()...)
}

func (v rolloutValidator) observe(ctx context.Context, request admission.Request) (change validate.RolloutChange, err error) {
	if change.Old, change.New, err = decodeRollouts(request); err != nil {
		return change, err
	}
	change.Now = v.now.Earliest()
	nodes := &corev1.NodeList{}
	// They are read-only, and the manager's own writes do not change what matches.
	if err := v.reader.List(ctx, nodes, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		return change, fmt.Errorf("list nodes: %w", err)
	}
	change.Nodes = kube.Pointers(nodes.Items)
	return change, nil
}

// refusalOfJob returns why the user may not have the rollout run its Job.
func (r reviewer) refusalOfJob(ctx context.Context, request admission.Request, change validate.RolloutChange) (string, error) {
	job := change.RunsJob()
	if job == nil {
		return "", nil
	}
	allowed, why, err := r.may(ctx, request.UserInfo, authorizationv1.ResourceAttributes{
		Namespace: job.Namespace, Verb: "create", Group: "batch", Resource: "jobs",
	})
	if err != nil || allowed {
		return "", err
	}
	return validate.JobRefusal(request.UserInfo.Username, job, why), nil
}

// rolloutWithoutStatus is a NodeRollout whose status was not read, so that an invalid one does not
// prevent the deletion.
type rolloutWithoutStatus struct {
	Metadata metav1.ObjectMeta        `json:"metadata"`
	Spec     v1alpha1.NodeRolloutSpec `json:"spec"`
}

func (r *rolloutWithoutStatus) rollout() *v1alpha1.NodeRollout {
	if r == nil {
		return nil
	}
	return &v1alpha1.NodeRollout{ObjectMeta: r.Metadata, Spec: r.Spec}
}

// decodeRollouts reads the old and the new object; nil if there is none.
func decodeRollouts(request admission.Request) (before, after *v1alpha1.NodeRollout, err error) {
	old, changed, err := decodeChange[rolloutWithoutStatus](request)
	return old.rollout(), changed.rollout(), err
}
