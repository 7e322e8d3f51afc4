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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		return EvictorDecision{Turn: true, Report: s.completion(own, words)}
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
	d.Report = s.report(own, words)
	return d
}

// done is why the evictor has nothing more to do; empty if it has.
func (s EvictorSnapshot) done() string {
	target, _ := EvictionTarget(s.Eviction)
	switch {
	case s.Pod == nil:
		return fmt.Sprintf("Pod %s is gone.", target.Name)
	case podclass.Terminal(s.Pod):
		return fmt.Sprintf("Pod %s has ended: %s.", target.Name, s.Pod.Status.Phase)
	}
	switch podclass.Type(s.Pod) {
	case v1alpha1.PodTypeDaemonSet:
		return "DaemonSet pods are not evicted: a NodeMaintenance removes them"
	case v1alpha1.PodTypeStatic:
		return "Static pods are not evicted: a NodeMaintenance takes them down"
	}
	return ""
}

var refusedTimes = regexp.MustCompile(`^Eviction refused (\d+) times?: `)

// words are what there is to say, and after what time since the last word.
func (s EvictorSnapshot) words(own *lifecyclev1alpha1.ResponderStatus) (words string, every time.Duration) {
	told := ""
	if own.Message != nil {
		told = *own.Message
	}
	switch {
	case s.Pod.DeletionTimestamp != nil:
		return fmt.Sprintf("Pod %s is evicted and terminates; it has until %s.", s.Pod.Name, s.Pod.DeletionTimestamp.UTC().Format(time.RFC3339)), HeartbeatEvery
	case s.Refusal == nil && told != "":
		return told, HeartbeatEvery
	case s.Refusal == nil:
		return fmt.Sprintf("Pod %s is being evicted.", s.Pod.Name), HeartbeatEvery
	}
	before, times := "", int64(s.Refusal.Times)
	if said := refusedTimes.FindStringSubmatch(told); said != nil {
		// What is no count of ours is too high.
		count, _ := strconv.ParseInt(said[1], 10, 64)
		before, times = strings.TrimPrefix(told, said[0]), min(times+min(count, math.MaxInt32), math.MaxInt32)
	}
	refused := strings.TrimPrefix(evacuation.Refuse(v1alpha1.EvacuationStatus{}, *s.Refusal, s.Now).Message, "Eviction refused: ")
	// Where it is cut does not depend on the count.
	refused = excerpt.Of(refused, maxMessage-len(fmt.Sprintf("Eviction refused %d times: ", math.MaxInt32)))
	prefix := fmt.Sprintf("Eviction refused %d times: ", times)
	if times == 1 {
		prefix = "Eviction refused 1 time: "
	}
	if before == refused {
		return prefix + refused, HeartbeatEvery
	}
	return prefix + refused, NewsEvery
}

// report is a heartbeat. No time of it is before an earlier one, whatever our clock says.
func (s EvictorSnapshot) report(own *lifecyclev1alpha1.ResponderStatus, words string) *lifecyclev1alpha1.ResponderStatus {
	return &lifecyclev1alpha1.ResponderStatus{Name: DefaultEvictor, HeartbeatTime: s.moment(own), Message: &words}
}

func (s EvictorSnapshot) completion(own *lifecyclev1alpha1.ResponderStatus, words string) *lifecyclev1alpha1.ResponderStatus {
	report := s.report(own, words)
	report.CompletionTime = report.HeartbeatTime
	return report
}

func (s EvictorSnapshot) moment(own *lifecyclev1alpha1.ResponderStatus) *metav1.Time {
	now := moment(s.Now)
	if last := lastSign(own); last.After(now.Time) {
		return moment(last)
	}
	return now
}
