package evictionrequest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	// AnswerDeadline is the time after which an unanswered request of ours is withdrawn.
	AnswerDeadline = 30 * time.Second
	// KeptFor is the time for which our withdrawn requests are kept for their responders.
	KeptFor = time.Minute
)

// RequestState is the state of Ebbtide's request for a pod.
type RequestState string

// States of Ebbtide's request for a pod.
const (
	Unasked   RequestState = ""
	Asked     RequestState = "Asked"
	Withdrawn RequestState = "Withdrawn"
	// Unanswered means that it was withdrawn because no controller has answered.
	Unanswered RequestState = "Unanswered"
	// Taken means that the object of that name is not ours, or is being deleted.
	Taken RequestState = "Taken"
)

// NameFor returns the name of the request for a pod, which all NodeMaintenances share.
func NameFor(pod types.UID) string { return "node-maintenance-" + string(pod) }

// Own reports whether a request is one of NodeMaintenances.
func Own(request *lifecyclev1alpha1.EvictionRequest) bool {
	target, named := TargetOf(request)
	return named && request.Spec.Requester == v1alpha1.NodeMaintenanceRequester && request.Name == NameFor(target.UID)
}

// Requestable reports whether a pod names responders and is supported by the API.
func Requestable(pod *corev1.Pod) bool {
	return len(pod.Spec.EvictionResponders) > 0 && pod.Spec.SchedulingGroup == nil && podclass.Type(pod) == v1alpha1.PodTypeDefault
}

// New returns the request for a pod.
func New(pod *corev1.Pod) *lifecyclev1alpha1.EvictionRequest {
	return &lifecyclev1alpha1.EvictionRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: NameFor(pod.UID), Annotations: map[string]string{v1alpha1.NodeAnnotation: pod.Spec.NodeName},
		},
		Spec: lifecyclev1alpha1.EvictionRequestSpec{
			Target:    lifecyclev1alpha1.EvictionRequestTarget{Pod: &lifecyclev1alpha1.EvictionRequestPodReference{Name: pod.Name, UID: pod.UID}},
			Requester: v1alpha1.NodeMaintenanceRequester, Intent: lifecyclev1alpha1.EvictionRequestIntentEviction,
		},
	}
}

// WithdrawnAt returns our request as withdrawn at the API server's time.
func WithdrawnAt(request *lifecyclev1alpha1.EvictionRequest, now time.Time, unanswered bool) *lifecyclev1alpha1.EvictionRequest {
	withdrawn := request.DeepCopy()
	withdrawn.Spec.Intent = lifecyclev1alpha1.EvictionRequestIntentWithdrawn
	metav1.SetMetaDataAnnotation(&withdrawn.ObjectMeta, v1alpha1.WithdrawnAnnotation, now.UTC().Format(time.RFC3339))
	delete(withdrawn.Annotations, v1alpha1.UnansweredAnnotation)
	if unanswered {
		withdrawn.Annotations[v1alpha1.UnansweredAnnotation] = "true"
	}
	return withdrawn
}

// RequestStateOf returns the state of the object with the name of our request; nil if there is
// none.
func RequestStateOf(request *lifecyclev1alpha1.EvictionRequest, pod *corev1.Pod) RequestState {
	if request == nil {
		return Unasked
	}
	target, _ := TargetOf(request)
	switch {
	case !Own(request), target.UID != pod.UID, target.Name != pod.Name, request.DeletionTimestamp != nil:
		return Taken
	case request.Spec.Intent == lifecyclev1alpha1.EvictionRequestIntentEviction:
		return Asked
	case IsUnanswered(request):
		return Unanswered
	}
	return Withdrawn
}

// Located returns our request with the node of its pod; nil if that is correct or it is withdrawn.
func Located(request *lifecyclev1alpha1.EvictionRequest, pod *corev1.Pod) *lifecyclev1alpha1.EvictionRequest {
	node := pod.Spec.NodeName
	if RequestStateOf(request, pod) != Asked || node == "" || request.Annotations[v1alpha1.NodeAnnotation] == node {
		return nil
	}
	located := request.DeepCopy()
	metav1.SetMetaDataAnnotation(&located.ObjectMeta, v1alpha1.NodeAnnotation, node)
	return located
}

// IsUnanswered reports whether a request was withdrawn because no controller has answered it.
func IsUnanswered(request *lifecyclev1alpha1.EvictionRequest) bool {
	return request.Annotations[v1alpha1.UnansweredAnnotation] == "true"
}

// AwaitsAnswer reports whether no controller has answered a request yet.
func AwaitsAnswer(request *lifecyclev1alpha1.EvictionRequest) bool {
	return request.Status.ObservedGeneration == nil
}

// Failure returns why a request has failed as it is now; nil if it has not.
func Failure(request *lifecyclev1alpha1.EvictionRequest) *metav1.Condition {
	if !observed(request) {
		return nil
	}
	failed := meta.FindStatusCondition(request.Status.Conditions, conditionFailed)
	if failed == nil || failed.Status != metav1.ConditionTrue {
		return nil
	}
	return failed
}

// Cleanup is the decision about one of Ebbtide's requests.
type Cleanup struct {
	Delete bool
	// Record is the request with the time of its withdrawal; nil if it has that.
	Record       *lifecyclev1alpha1.EvictionRequest
	RequeueAfter time.Duration
}

// DecideCleanup decides whether our request is deleted. Gone is the time since its pod is gone; nil
// if it exists. NodeMaintenances decide about requests for existing pods.
func DecideCleanup(request *lifecyclev1alpha1.EvictionRequest, now time.Time, gone *time.Duration) Cleanup {
	if request.DeletionTimestamp != nil {
		return Cleanup{}
	}
	final := observed(request) && (Failure(request) != nil || meta.IsStatusConditionTrue(request.Status.Conditions, conditionEvicted))
	if request.Spec.Intent != lifecyclev1alpha1.EvictionRequestIntentEviction {
		return cleanUpWithdrawn(request, now, final)
	}
	failure := Failure(request)
	switch {
	case gone == nil && failure != nil && failure.Reason == string(lifecyclev1alpha1.EvictionConditionReasonCanceledDueToNoRequesters):
		return Cleanup{Delete: true}
	case gone == nil:
		return Cleanup{}
	case *gone >= KeptFor:
		return Cleanup{Delete: true}
	}
	return Cleanup{RequeueAfter: KeptFor - *gone}
}

func cleanUpWithdrawn(request *lifecyclev1alpha1.EvictionRequest, now time.Time, final bool) Cleanup {
	if final {
		return Cleanup{Delete: true}
	}
	since, err := time.Parse(time.RFC3339, request.Annotations[v1alpha1.WithdrawnAnnotation])
	if err != nil || since.Sub(now) > KeptFor {
		// Another client has withdrawn it, or has written this.
		return Cleanup{Record: WithdrawnAt(request, now, IsUnanswered(request)), RequeueAfter: KeptFor}
	}
	if left := since.Add(KeptFor).Sub(now); left > 0 {
		return Cleanup{RequeueAfter: left}
	}
	return Cleanup{Delete: true}
}
