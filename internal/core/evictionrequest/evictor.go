package evictionrequest

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const (
	// EvictorFieldManager is who the default evictor is in server-side apply.
	EvictorFieldManager = "ebbtide-evictor"
	// HeartbeatEvery is how often a responder of ours says that it is there.
	HeartbeatEvery = 3 * time.Minute
	// NewsEvery is how often it does at most, when it has something else to say.
	NewsEvery = 20 * time.Second

	// refusedWords begin what an Evacuation says of refusals.
	refusedWords = "Eviction refused: "
	// maxMessage is what the API takes for a message.
	maxMessage = 4000
)

// EvictorSnapshot is what the default evictor knows of an Eviction.
type EvictorSnapshot struct {
	// Now is the API server's time.
	Now      time.Time
	Eviction *lifecyclev1alpha1.Eviction
	// Pod is the target as the API server has it; nil if it is gone.
	Pod *corev1.Pod
	// Refusal is what the pod was last refused with, and how often since that was last
	// reported; nil if it was not, or not for long.
	Refusal *evacuation.Refusal
}

// EvictorDecision is what the default evictor does.
type EvictorDecision struct {
	// Turn is true while it is the evictor's.
	Turn bool
	// Evict is true if the pod is to be evicted, as soon as its budgets allow it.
	Evict bool
	// Report is to be written as what the evictor has to say; nil if it has nothing new.
	Report *lifecyclev1alpha1.ResponderStatus
	// RequeueAfter is when it has to say something, whatever happens; 0 is never.
	RequeueAfter time.Duration
}

// DecideEvictor decides what the default evictor does. It leaves pods alone that a
// NodeMaintenance removes in its own way, and completes at once.
func DecideEvictor(s EvictorSnapshot) EvictorDecision {
	own := ResponderOf(&s.Eviction.Status, DefaultEvictor)
	turn := StateOf(&s.Eviction.Status, DefaultEvictor) == lifecyclev1alpha1.ResponderStateActive
	if own == nil || !turn || own.CompletionTime != nil || Final(&s.Eviction.Status) {
		return EvictorDecision{}
	}
	if words := s.done(); words != "" {
		return EvictorDecision{Turn: true, Report: completion(own, s.Now, words)}
	}
	d := EvictorDecision{Turn: true, Evict: s.Pod.DeletionTimestamp == nil}
	words, every := s.words(own)
	due := lastSign(own).Add(every)
	if own.HeartbeatTime == nil && every == NewsEvery {
		due = s.Now
	}
	if wait := due.Sub(s.Now); wait > 0 {
		d.RequeueAfter = wait
		return d
	}
	d.Report = sign(own, s.Now, words)
	return d
}

// done is why the evictor has nothing more to do; empty if it has.
func (s EvictorSnapshot) done() string {
	if words := ended(s.Eviction, s.Pod); words != "" {
		return words
	}
	switch podclass.Type(s.Pod) {
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

// RefusedPrefix begins what the default evictor says of a pod that it may not evict.
const RefusedPrefix = "Eviction refused "

var refusedTimes = regexp.MustCompile(`^` + RefusedPrefix + `(\d+) times?: `)

// words are what there is to say, and after what time since the last word.
func (s EvictorSnapshot) words(own *lifecyclev1alpha1.ResponderStatus) (words string, every time.Duration) {
	told := ""
	if own.Message != nil {
		told = *own.Message
	}
	switch {
	case s.Pod.DeletionTimestamp != nil:
		return terminates(s.Pod), HeartbeatEvery
	case s.Refusal == nil && told != "":
		return told, HeartbeatEvery
	case s.Refusal == nil:
		return fmt.Sprintf("Pod %s is being evicted.", s.Pod.Name), HeartbeatEvery
	}
	before, times := toldBefore(told)
	times = min(int64(s.Refusal.Times)+times, math.MaxInt32)
	refused := strings.TrimPrefix(evacuation.Refuse(v1alpha1.EvacuationStatus{}, *s.Refusal, s.Now).Message, refusedWords)
	words = refusal(refused, times)
	if before == withoutCount(words) {
		return words, HeartbeatEvery
	}
	return words, NewsEvery
}

// refusal is what is said of evictions that are refused.
func refusal(refused string, times int64) string {
	// Where it is cut does not depend on the count.
	refused = excerpt.Of(refused, maxMessage-len(fmt.Sprintf("Eviction refused %d times: ", math.MaxInt32)))
	if times == 1 {
		return "Eviction refused 1 time: " + refused
	}
	return fmt.Sprintf("Eviction refused %d times: %s", times, refused)
}

// toldBefore is what was said of refusals, and how many they were; nothing if it was
// about something else.
func toldBefore(told string) (refused string, times int64) {
	said := refusedTimes.FindStringSubmatch(told)
	if said == nil {
		return "", 0
	}
	// What is no count of ours is too high.
	count, _ := strconv.ParseInt(said[1], 10, 64)
	return withoutCount(told), min(count, math.MaxInt32)
}

// withoutCount is what is said besides how often evictions were refused.
func withoutCount(told string) string {
	return strings.TrimPrefix(told, refusedTimes.FindString(told))
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
