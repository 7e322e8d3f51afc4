package blocker

import (
	"fmt"
	"strings"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/event"
	"ebbtide.dev/ebbtide/internal/core/evictionrequest"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

const maxReport = 300

// failedRequest explains a pod whose EvictionRequest has failed, which is final.
func failedRequest(f *Facts) (v1alpha1.Blocker, bool) {
	if f.Request == nil {
		return v1alpha1.Blocker{}, false
	}
	failure := evictionrequest.Failure(f.Request)
	if failure == nil || failure.Reason == string(lifecyclev1alpha1.EvictionConditionReasonCanceledDueToNoRequesters) {
		return v1alpha1.Blocker{}, false
	}
	b := one(v1alpha1.BlockerEvictionRequestFailed, ofRequest(f.Request), failure.LastTransitionTime.Time)
	b.Message = fmt.Sprintf("The EvictionRequest of pod %s/%s has failed (%s): %s",
		f.Pod.Namespace, f.Pod.Name, excerpt.Line(failure.Reason, maxReport), ended(failure.Message))
	b.Suggestion = command.Of("Solve the problem and retry: kubectl -n %s delete evictionrequest %s. Or remove the pod yourself: kubectl -n %s delete pod %s",
		f.Pod.Namespace, f.Request.Name, f.Pod.Namespace, f.Pod.Name)
	return b, true
}

// pendingRequest explains a pod that waits to be asked.
func pendingRequest(f *Facts) (v1alpha1.Blocker, bool) {
	if f.Waits == "" {
		return v1alpha1.Blocker{}, false
	}
	b := one(v1alpha1.BlockerEvictionRequestPending, ofPod(f.Pod), time.Time{})
	b.Message = fmt.Sprintf("Pod %s/%s names evictionResponders (%s), which cannot be asked yet: %s",
		f.Pod.Namespace, f.Pod.Name, event.Responders(f.Pod), ended(f.Waits))
	b.Suggestion = "If that does not pass: let Ebbtide read and delete EvictionRequests (chart value evictionRequests.enabled), or run it with --eviction-requests=off."
	return b, true
}

func responding(f *Facts) (v1alpha1.Blocker, bool) {
	if f.Request == nil || f.Eviction == nil || evictionrequest.Final(&f.Eviction.Status) {
		return v1alpha1.Blocker{}, false
	}
	active := evictionrequest.Active(&f.Eviction.Status)
	if active == nil || active.StartTime == nil || active.Name == evictionrequest.DefaultEvictor {
		return v1alpha1.Blocker{}, false
	}
	said := ""
	if active.Message != nil {
		said = excerpt.Line(*active.Message, maxReport)
	}
	name := excerpt.Line(active.Name, maxReport)
	b := one(v1alpha1.BlockerEvacuatorRunning, v1alpha1.BlockerObject{Kind: "Responder", Name: name}, active.StartTime.Time)
	b.Message = fmt.Sprintf("Responder %s moves the pod.", name)
	if said != "" {
		b.Message += " It says: " + said
	}
	b.Suggestion = command.Of("Wait: if it is silent for %d minutes, the next one takes over. Its reports: kubectl -n %s describe evictions.lifecycle.k8s.io %s",
		int(evictionrequest.HeartbeatDeadline.Minutes()), f.Pod.Namespace, f.Eviction.Name)
	return b, true
}

func ofRequest(request *lifecyclev1alpha1.EvictionRequest) v1alpha1.BlockerObject {
	return v1alpha1.BlockerObject{
		APIVersion: lifecyclev1alpha1.SchemeGroupVersion.String(), Kind: "EvictionRequest",
		Namespace: request.Namespace, Name: request.Name, UID: request.UID,
	}
}

// ended are somebody's words as a sentence of ours.
func ended(words string) string {
	return strings.TrimRight(excerpt.Line(words, maxReport), ". ") + "."
}
