package nodedrain

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/internal/core/apierror"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
)

// namedPods is how many pods of a group the message names.
const namedPods = 3

// message is in the form of the deletion-process page.
func (d *drain) message() string {
	r := NewReport("Drain not completed yet:", namedPods)
	r.Names("Pods with deletionTimestamp that still exist", names(d.Terminating))
	r.Groups("Pods with eviction failed", byReason(d.Refused, func(pod *corev1.Pod) string {
		return reason(d.Answers[pod.UID], pod)
	}))
	if len(d.Refused) > 0 {
		r.Text("Evictions that failed are tried again", retry)
	}
	r.Names("Pods with eviction requested", names(d.unanswered()))
	r.Names("Pods that are waited for to complete by themselves", names(d.Completing))
	r.Groups("Pods that nobody knows how to drain", byReason(d.Unknown, func(pod *corev1.Pod) string {
		return d.causes[pod.UID]
	}))
	r.Groups(fmt.Sprintf("Pods that are evicted after those of order %d are gone", d.lowest()), d.byOrder())
	return r.String()
}

// retry names no moment, so that it stays true without a write for every try.
const retry = "as soon as their budget allows them or its lock ends, all others at least once a minute"

// answer is all that the API server said, of which an Outcome has but the half
// that names the budget.
func answer(outcome evacuation.Outcome) string {
	if outcome.Result == evacuation.Budgeted {
		return apierror.Violation(outcome.Message)
	}
	return outcome.Message
}

// reason is the same for pods that are refused for the same reason. The time at
// which a lock ends is the same for all of its pods, and worth to be told.
func reason(outcome evacuation.Outcome, pod *corev1.Pod) string {
	if outcome.Result == evacuation.Locked {
		return outcome.Message
	}
	return impersonal(answer(outcome), pod)
}

// unanswered are those to be evicted that have not been refused.
func (d *drain) unanswered() []*corev1.Pod {
	refused := make(map[types.UID]bool, len(d.Refused))
	for _, pod := range d.Refused {
		refused[pod.UID] = true
	}
	return slices.DeleteFunc(slices.Clone(d.Evict), func(pod *corev1.Pod) bool { return refused[pod.UID] })
}

func byReason(pods []*corev1.Pod, reason func(*corev1.Pod) string) []Group {
	reasons := map[string][]string{}
	for _, pod := range pods {
		text := reason(pod)
		reasons[text] = append(reasons[text], name(pod))
	}
	return ByReason(reasons)
}

// byOrder groups the pods that are evicted later, the next first.
func (d *drain) byOrder() []Group {
	orders := map[int32][]string{}
	for _, pod := range d.Later {
		order := d.orders[pod.UID]
		orders[order] = append(orders[order], name(pod))
	}
	groups := make([]Group, 0, len(orders))
	for _, order := range slices.Sorted(maps.Keys(orders)) {
		groups = append(groups, Group{fmt.Sprintf("order %d", order), orders[order]})
	}
	return groups
}

// Names names pods, sorted, up to a limit, and says how many more there are.
func Names(pods []*corev1.Pod, limit int) string { return List(names(pods), limit) }

func names(pods []*corev1.Pod) []string {
	all := make([]string, 0, len(pods))
	for _, pod := range pods {
		all = append(all, name(pod))
	}
	return all
}

func name(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// moment is how times are told in messages of the API.
var moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

// impersonal takes out of an answer what is different for every pod and moment,
// so that those of many pods are the same.
func impersonal(answer string, pod *corev1.Pod) string {
	answer = moment.ReplaceAllString(answer, "<time>")
	if pod.UID != "" {
		answer = strings.ReplaceAll(answer, string(pod.UID), "<uid>")
	}
	// Only a name that comes after the word is certain to be a name, and only if
	// it is no plain word itself. Such a pod has no siblings.
	if !strings.Contains(answer, pod.Name) || !strings.ContainsAny(pod.Name, "-.0123456789") {
		return answer
	}
	named := regexp.MustCompile(fmt.Sprintf(`([Pp]ods?[ /]["']?(?:%s/)?)%s([^\w-]|$)`,
		regexp.QuoteMeta(pod.Namespace), regexp.QuoteMeta(pod.Name)))
	return named.ReplaceAllString(answer, "${1}<name>${2}")
}
