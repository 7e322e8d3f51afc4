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

// evictionGate has those who call the eviction API wait while a budget of the pod is
// locked, and for the evacuators of a pod: kubectl drain, autoscalers, Cluster API.
// They try again on 429 and give up on anything else.
type evictionGate struct {
	pods registry
	// cached may be behind, direct reads and writes past the cache.
	cached  client.Reader
	direct  client.Client
	locks   *locks
	callers *callers
	// responders is nil where nobody is to ask by EvictionRequests.
	responders *responders
	// notices is nil if nobody is to be told of NodeMaintenances.
	notices *notices
	// writes bounds what is written for those who call.
	writes flowcontrol.RateLimiter
	// longestLock is how long a lock may hold; see budget.LockOf.
	longestLock time.Duration
	now         kube.Now
}

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

// Handle lets a call through, or asks the pod's evacuators in the name of its
// author, who has to wait.
func (g evictionGate) Handle(ctx context.Context, request admission.Request) admission.Response {
	eviction := &policyv1.Eviction{}
	// The versions of Eviction are alike.
	if err := json.Unmarshal(request.Object.Raw, eviction); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("read the Eviction: %w", err))
	}
	call, err := g.observe(ctx, request, eviction)
	if err != nil {
		return wait(fmt.Sprintf("the budgets and evacuators of pod %s could not be found, try again: %v", request.Name, err))
	}
	verdict := evacuation.Admit(call)
	// They may be large, and what follows may take a while.
	call.Budgets = nil
	if dryRun(request, eviction) {
		return answerOf(request.Name, verdict, nil)
	}
	g.remember(request, call, verdict)
	err = g.record(ctx, call.Evacuation, verdict)
	if err != nil && !verdict.Asks() {
		log.FromContext(ctx).V(1).Info("An attempt to evict could not be noted", "because", err.Error())
		err = nil
	}
	return answerOf(request.Name, verdict, err).WithWarnings(g.notice(ctx, request, eviction, call)...)
}

// answerOf is the verdict about a pod, or why it could not be recorded.
func answerOf(pod string, verdict evacuation.Verdict, err error) admission.Response {
	// Who was faster has asked the same evacuators.
	if apierrors.IsAlreadyExists(err) {
		err = nil
	}
	switch {
	case verdict.Admitted:
		return admission.Allowed("")
	case verdict.Gone:
		return gone(verdict.Message)
	case hopeless(err):
		return admission.Allowed("").WithWarnings(fmt.Sprintf("pod %s is evicted without its evacuators, because they cannot be asked: %v", pod, err))
	case err != nil:
		return wait(fmt.Sprintf("the evacuators of pod %s could not be asked, try again: %v", pod, err))
	}
	return wait(verdict.Message)
}

// notice is what to tell the caller of NodeMaintenances. Who empties a node for a
// Machine is Ebbtide.
func (g evictionGate) notice(ctx context.Context, request admission.Request, eviction *policyv1.Eviction, call evacuation.Call) []string {
	if ofMachine(eviction) || fromEvictionRequest(eviction) || g.notices == nil || call.Pod == nil {
		return nil
	}
	return g.notices.of(ctx, request.UserInfo.Username, call.Pod.Spec.NodeName, call.Now)
}

// ofMachine is true of an eviction whose author says that it is for a Machine. Who
// says so without being Ebbtide has only the lock of the pod's own node not count: its
// budget still does.
func ofMachine(eviction *policyv1.Eviction) bool {
	_, says := eviction.Annotations[v1alpha1.MachineDrainAnnotation]
	return says
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
		Only:     key.only, LongestLock: g.longestLock, NodeGoes: ofMachine(eviction),
	}
	call.Now, call.ClockSkewed = g.now()
	call.Meant = g.callers.recall(callerOf(request), call.Now)
	if found.pod == nil {
		return call, nil
	}
	call.As, call.Responding = asResponder(eviction), g.responders.of(ctx, found.pod, skew.Earliest(call.Now, call.ClockSkewed))
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

// remember keeps in mind for which pod the caller waits: for the evacuators, or
// for its budget after them.
func (g evictionGate) remember(request admission.Request, call evacuation.Call, verdict evacuation.Verdict) {
	switch {
	case verdict.Gone:
		g.callers.forget(callerOf(request))
	case !verdict.Admitted || call.Evacuation != nil:
		g.callers.note(callerOf(request), call.Pod.UID, call.Now)
	}
}

// fromEvictionRequest is true of an eviction whose author says that it is for an EvictionRequest. Who
// says so without being Ebbtide is told nothing of NodeMaintenances.
func fromEvictionRequest(eviction *policyv1.Eviction) bool {
	_, says := eviction.Annotations[v1alpha1.EvictionRequestAnnotation]
	return says
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

// dryRun reports whether the caller asked for a dry run, in either of two ways.
func dryRun(request admission.Request, eviction *policyv1.Eviction) bool {
	return request.DryRun != nil && *request.DryRun ||
		eviction.DeleteOptions != nil && slices.Contains(eviction.DeleteOptions.DryRun, metav1.DryRunAll)
}

// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=create;patch

// record makes the verdict known to the controller.
func (g evictionGate) record(ctx context.Context, e *v1alpha1.Evacuation, verdict evacuation.Verdict) error {
	if writes := verdict.Create != nil || verdict.Attempt != "" || verdict.Join; writes && !g.writes.TryAccept() {
		return fmt.Errorf("more than %d evacuations a second are asked for in this way", writesPerSecond)
	}
	if verdict.Create != nil {
		if err := g.direct.Create(ctx, verdict.Create); err != nil {
			return fmt.Errorf("create the evacuation: %w", err)
		}
		log.FromContext(ctx).Info("Asked for an evacuation in the name of a caller of the eviction API", "evacuation", verdict.Create.Name)
		return nil
	}
	if verdict.Attempt != "" {
		noted := e.DeepCopy()
		metav1.SetMetaDataAnnotation(&noted.ObjectMeta, v1alpha1.EvictionAttemptAnnotation, verdict.Attempt)
		if err := g.direct.Patch(ctx, noted, kube.Change(e)); err != nil {
			return fmt.Errorf("note the attempt to evict: %w", err)
		}
		e = noted
	}
	if verdict.Join {
		if _, err := kube.AddFinalizer(ctx, g.direct, e, v1alpha1.EvictionInstigator); err != nil {
			return fmt.Errorf("ask for the evacuation: %w", err)
		}
	}
	return nil
}

// hopeless reports whether trying again would not help. The pod is then evicted
// as if there were no Ebbtide.
func hopeless(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// wait is the answer on which drainers try again. It does not say when: they have
// their own ideas.
func wait(message string) admission.Response {
	return refused(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, message)
}

// gone is the answer on which drainers know that they are done.
func gone(message string) admission.Response {
	return refused(http.StatusNotFound, metav1.StatusReasonNotFound, message)
}

func refused(code int32, reason metav1.StatusReason, message string) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}}
}
