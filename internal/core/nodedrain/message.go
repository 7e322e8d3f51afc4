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

const namedPods = 3

// message has the form of the deletion-process page.
func (d *drain) message() string {
	r := NewReport("Drain not completed yet:", namedPods)
	r.Names("Pods with deletionTimestamp that still exist", names(d.Terminating))
	r.Groups("Pods with eviction failed", byReason(d.Refused, func(pod *corev1.Pod) string {
		return reason(d.Answers[pod.UID], pod)
	}))
	if len(d.Refused) > 0 {
		r.Text("Failed evictions are retried", retry)
	}
	r.Names("Pods with eviction requested", names(d.unanswered()))
	r.Names("Pods that are waited for to complete by themselves", names(d.Completing))
	r.Groups("Pods with an unknown drain rule", byReason(d.Unknown, func(pod *corev1.Pod) string {
		return d.causes[pod.UID]
	}))
	r.Groups(fmt.Sprintf("Pods that are evicted after those of order %d are gone", d.lowest()), d.byOrder())
	return r.String()
}

// retry contains no time, so that it stays true without a write for every retry.
const retry = "when their budget allows them or its lock ends, others at least once a minute"

// answer returns the full answer of the API server, of which an Outcome names only the budget.
func answer(outcome evacuation.Outcome) string {
	if outcome.Result == evacuation.Budgeted {
		return apierror.Violation(outcome.Message)
	}
	return outcome.Message
}

// reason is the same for pods that are refused for the same reason, such as the end of the same
// lock.
func reason(outcome evacuation.Outcome, pod *corev1.Pod) string {
	if outcome.Result == evacuation.Locked {
		return outcome.Message
	}
	return impersonal(answer(outcome), pod)
}

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

// Names lists pods, sorted, up to a limit, and how many more there are.
func Names(pods []*corev1.Pod, limit int) string { return List(names(pods), limit) }

func names(pods []*corev1.Pod) []string {
	all := make([]string, 0, len(pods))
	for _, pod := range pods {
		all = append(all, name(pod))
	}
	return all
}

func name(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// moment matches times in messages of the API.
var moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

// impersonal removes what differs for every pod and time, so that the answers for many pods are
// equal.
func impersonal(answer string, pod *corev1.Pod) string {
	answer = moment.ReplaceAllString(answer, "<time>")
	if pod.UID != "" {
		answer = strings.ReplaceAll(answer, string(pod.UID), "<uid>")
	}
	// Only a name with such characters is certainly no plain word. A pod of another name has no
	// siblings.
	if !strings.Contains(answer, pod.Name) || !strings.ContainsAny(pod.Name, "-.0123456789") {
		return answer
	}
	named := regexp.MustCompile(fmt.Sprintf(`([Pp]ods?[ /]["']?(?:%s/)?)%s([^\w-]|$)`,
		regexp.QuoteMeta(pod.Namespace), regexp.QuoteMeta(pod.Name)))
	return named.ReplaceAllString(answer, "${1}<name>${2}")
}
