package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/skew"
	"ebbtide.dev/ebbtide/internal/kube"
)

// evictionGate refuses evictions while a budget of the pod is locked or its evacuators work. Callers such
// as kubectl drain and autoscalers retry on 429, and fail on other codes.
type evictionGate struct {
	pods registry
	// cached may be stale, direct bypasses the cache.
	cached  client.Reader
	direct  client.Client
	locks   *locks
	callers *callers
	// responders is nil without EvictionRequests.
	responders *responders
	// notices is nil if disabled.
	notices *notices
	// writes bounds the writes for callers.
	writes      flowcontrol.RateLimiter
	longestLock time.Duration
	now         kube.Now
}

// callers remembers the pods that callers of the eviction API wait for: they evict by name, and a
// StatefulSet recreates a pod with its name elsewhere. A caller that is forgotten evicts that pod, too.
type callers = memory[caller, types.UID]

// caller is a user who evicts the pods of a name.
type caller struct {
	user string
	pod  types.NamespacedName
}

func newCallers() *callers { return newMemory[caller, types.UID](evacuation.CallerPatience) }

func newEvictionGate(pods registry, cached client.Reader, direct client.Client, options Options) evictionGate {
	gate := evictionGate{
		pods: pods, cached: cached, direct: direct, locks: newLocks(direct), callers: newCallers(),
		longestLock: options.LongestLock, now: options.Now,
		writes: flowcontrol.NewTokenBucketRateLimiter(writesPerSecond, writesAtOnce),
	}
	if options.EvictionNotice {
		gate.notices = newNotices(cached)
	}
	return gate
}

// Handle admits an eviction, or requests an Evacuation in the name of the caller, who has to retry.
func (g evictionGate) Handle(ctx context.Context, request admission.Request) admission.Response {
	eviction := &policyv1.Eviction{}
	// All versions of Eviction have these fields.
	if err := json.Unmarshal(request.Object.Raw, eviction); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("read the Eviction: %w", err))
	}
	call, err := g.observe(ctx, request, eviction)
	if err != nil {
		return wait(fmt.Sprintf("cannot read the PodDisruptionBudgets and evacuators of pod %s, try again: %v", request.Name, err))
	}
	verdict := evacuation.Admit(call)
	// They may be large, and the rest may take a while.
	call.Budgets = nil
	if dryRun(request, eviction) {
		return answerOf(request.Name, verdict, nil)
	}
	g.remember(request, call, verdict)
	err = g.record(ctx, call.Evacuation, verdict)
	if err != nil && !verdict.Asks() {
		log.FromContext(ctx).V(1).Info("Failed to record an eviction attempt", "reason", err.Error())
		err = nil
	}
	return answerOf(request.Name, verdict, err).WithWarnings(g.notice(ctx, request, eviction, call)...)
}

// answerOf returns the response to a verdict about a pod, or to an error to record it.
func answerOf(pod string, verdict evacuation.Verdict, err error) admission.Response {
	// A concurrent call has requested the same Evacuation.
	if apierrors.IsAlreadyExists(err) {
		err = nil
	}
	switch {
	case verdict.Admitted:
		return admission.Allowed("")
	case verdict.Gone:
		return gone(verdict.Message)
	case hopeless(err):
		return admission.Allowed("").WithWarnings(fmt.Sprintf("pod %s is evicted without its evacuators, because the Evacuation cannot be created: %v", pod, err))
	case err != nil:
		return wait(fmt.Sprintf("cannot request the Evacuation of pod %s, try again: %v", pod, err))
	}
	return wait(verdict.Message)
}

// notice returns the warning about NodeMaintenances. Evictions for Machines and EvictionRequests are
// Ebbtide's own; a caller that forges their annotations only loses the warning and, for a Machine, the
// protection by the lock of the pod's own node.
func (g evictionGate) notice(ctx context.Context, request admission.Request, eviction *policyv1.Eviction, call evacuation.Call) []string {
	if hasAnnotation(eviction, v1alpha1.MachineDrainAnnotation) || hasAnnotation(eviction, v1alpha1.EvictionRequestAnnotation) || g.notices == nil || call.Pod == nil {
		return nil
	}
	return g.notices.of(ctx, request.UserInfo.Username, call.Pod.Spec.NodeName, call.Now)
}

func hasAnnotation(eviction *policyv1.Eviction, key string) bool {
	_, has := eviction.Annotations[key]
	return has
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=list;watch

func (g evictionGate) observe(ctx context.Context, request admission.Request, eviction *policyv1.Eviction) (evacuation.Call, error) {
	key := podKey{NamespacedName: types.NamespacedName{Namespace: request.Namespace, Name: request.Name}, only: preconditions(eviction)}
	found, err := g.pods.find(ctx, key)
	if err != nil {
		return evacuation.Call{}, err
	}
	call := evacuation.Call{
		Snapshot: evacuation.Snapshot{Pod: found.pod, Evacuators: found.evacuators},
		Only:     key.only, LongestLock: g.longestLock, NodeGoes: hasAnnotation(eviction, v1alpha1.MachineDrainAnnotation),
	}
	call.Now, call.ClockSkewed = g.now()
	call.Meant = g.callers.recall(callerOf(request), call.Now)
	if found.pod == nil {
		return call, nil
	}
	// A forged responder is only not delayed by that responder.
	call.As, call.Responding = eviction.Annotations[v1alpha1.EvictionRequestAnnotation], g.responders.of(ctx, found.pod, skew.Earliest(call.Now, call.ClockSkewed))
	if call.Budgets, err = g.locks.of(ctx, request.Namespace); err != nil {
		return evacuation.Call{}, err
	}
	e := &v1alpha1.Evacuation{}
	err = g.cached.Get(ctx, types.NamespacedName{Namespace: request.Namespace, Name: evacuation.Name(found.pod)}, e, client.DisableReadYourWritesConsistency)
	switch {
	case err == nil:
		call.Evacuation = e
	case !apierrors.IsNotFound(err):
		return evacuation.Call{}, fmt.Errorf("get the evacuation: %w", err)
	}
	return call, nil
}

func callerOf(request admission.Request) caller {
	return caller{request.UserInfo.Username, types.NamespacedName{Namespace: request.Namespace, Name: request.Name}}
}

// remember records the pod that the caller waits for.
func (g evictionGate) remember(request admission.Request, call evacuation.Call, verdict evacuation.Verdict) {
	switch {
	case verdict.Gone:
		g.callers.forget(callerOf(request))
	case !verdict.Admitted || call.Evacuation != nil:
		g.callers.note(callerOf(request), call.Pod.UID, call.Now)
	}
}

func preconditions(eviction *policyv1.Eviction) evacuation.PodVersion {
	options := eviction.DeleteOptions
	if options == nil || options.Preconditions == nil {
		return evacuation.PodVersion{}
	}
	return evacuation.PodVersion{
		UID:             ptr.Deref(options.Preconditions.UID, ""),
		ResourceVersion: ptr.Deref(options.Preconditions.ResourceVersion, ""),
	}
}

// dryRun reports whether the request or the Eviction is a dry run.
func dryRun(request admission.Request, eviction *policyv1.Eviction) bool {
	return request.DryRun != nil && *request.DryRun ||
		eviction.DeleteOptions != nil && slices.Contains(eviction.DeleteOptions.DryRun, metav1.DryRunAll)
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=create;patch

// record writes the verdict for the controller.
func (g evictionGate) record(ctx context.Context, e *v1alpha1.Evacuation, verdict evacuation.Verdict) error {
	if writes := verdict.Create != nil || verdict.Attempt != "" || verdict.Join; writes && !g.writes.TryAccept() {
		return fmt.Errorf("more than %d Evacuations a second are requested", writesPerSecond)
	}
	if verdict.Create != nil {
		if err := g.direct.Create(ctx, verdict.Create); err != nil {
			return fmt.Errorf("create the evacuation: %w", err)
		}
		log.FromContext(ctx).Info("Created Evacuation for a caller of the eviction API", "evacuation", verdict.Create.Name)
		return nil
	}
	if verdict.Attempt != "" {
		var err error
		if e, err = kube.Annotate(ctx, g.direct, e, v1alpha1.EvictionAttemptAnnotation, verdict.Attempt); err != nil {
			return fmt.Errorf("record the eviction attempt: %w", err)
		}
	}
	if verdict.Join {
		if _, err := kube.AddFinalizer(ctx, g.direct, e, v1alpha1.EvictionInstigator); err != nil {
			return fmt.Errorf("join the evacuation: %w", err)
		}
	}
	return nil
}

// hopeless reports whether a retry is useless. The pod is then evicted as without Ebbtide.
func hopeless(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// wait is the response on which callers retry.
func wait(message string) admission.Response {
	return refused(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, message)
}

// gone is the response on which callers are done.
func gone(message string) admission.Response {
	return refused(http.StatusNotFound, metav1.StatusReasonNotFound, message)
}

func refused(code int32, reason metav1.StatusReason, message string) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}}
}
