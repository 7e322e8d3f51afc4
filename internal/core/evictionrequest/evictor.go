package evictionrequest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	// EvictorFieldManager is who the default evictor is in server-side apply.
	EvictorFieldManager = "ebbtide-evictor"
	// HeartbeatEvery is how often a responder of ours says that it is there.
	HeartbeatEvery = 3 * time.Minute
	// NewsEvery is how often it does at most, when it has something else to say.
	NewsEvery = 20 * time.Second

	// maxMessage is what the API takes for a message.
	maxMessage = 4000
)

// unevictable is why the default evictor leaves a pod alone; empty if it does not. A
// NodeMaintenance removes such pods in its own way.
func unevictable(pod *corev1.Pod) string {
	switch podclass.Type(pod) {
	case v1alpha1.PodTypeDaemonSet:
		return "DaemonSet pods are not evicted: a NodeMaintenance removes them"
	case v1alpha1.PodTypeStatic:
		return "Static pods are not evicted: a NodeMaintenance takes them down"
	}
	return ""
}

// ended is that the pod of an Eviction is no more; empty if it is.
func ended(e *lifecyclev1alpha1.Eviction, pod *corev1.Pod) string {
	target, _ := EvictionTarget(e)
	switch {
	case pod == nil:
		return fmt.Sprintf("Pod %s is gone.", target.Name)
	case podclass.Terminal(pod):
		return fmt.Sprintf("Pod %s has ended: %s.", target.Name, pod.Status.Phase)
	}
	return ""
}

// terminates is that it is about to be no more.
func terminates(pod *corev1.Pod) string {
	return fmt.Sprintf("Pod %s is evicted and terminates; it has until %s.", pod.Name, pod.DeletionTimestamp.UTC().Format(time.RFC3339))
}

// sign is a heartbeat. No time of it is before an earlier one, whatever our clock says.
func sign(own *lifecyclev1alpha1.ResponderStatus, now time.Time, words string) *lifecyclev1alpha1.ResponderStatus {
	at := moment(now)
	if last := lastSign(own); last.After(at.Time) {
		at = moment(last)
	}
	return &lifecyclev1alpha1.ResponderStatus{Name: own.Name, HeartbeatTime: at, Message: &words}
}

// completion is the last word.
func completion(own *lifecyclev1alpha1.ResponderStatus, now time.Time, words string) *lifecyclev1alpha1.ResponderStatus {
	report := sign(own, now, words)
	report.CompletionTime = report.HeartbeatTime
	return report
}
