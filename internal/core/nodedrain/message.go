package nodedrain

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Limits of the message. Together they keep it below the 32,768 bytes that the
// API allows for the message of a condition.
const (
	// namedPods is how many pods of a group are named.
	namedPods = 3
	// maxReasons is how many reasons of a kind are told apart.
	maxReasons = 5
	// maxReason is how many bytes of a reason are shown.
	maxReason = 1000
)

// message is in the form of the deletion-process page.
func (d *drain) message() string {
	var text strings.Builder
	text.WriteString("Drain not completed yet:")
	line(&text, "Pods with deletionTimestamp that still exist", d.Terminating)
	reasons(&text, "Pods with eviction failed", d.byReason(d.Refused, func(pod *corev1.Pod) string {
		return impersonal(d.Answers[pod.UID].Message, pod)
	}))
	line(&text, "Pods with eviction requested", d.unanswered())
	line(&text, "Pods that have to complete by themselves", d.Completing)
	reasons(&text, "Pods that nobody knows how to drain", d.byReason(d.Unknown, func(pod *corev1.Pod) string {
		return d.causes[pod.UID]
	}))
	reasons(&text, fmt.Sprintf("Pods that are evicted when those of order %d are gone", d.lowest()), d.byOrder())
	return text.String()
}

// unanswered are those to be evicted that nothing is known of yet.
func (d *drain) unanswered() []*corev1.Pod {
	refused := map[types.UID]bool{}
	for _, pod := range d.Refused {
		refused[pod.UID] = true
	}
	return slices.DeleteFunc(slices.Clone(d.Evict), func(pod *corev1.Pod) bool { return refused[pod.UID] })
}

// group is pods that have something in common.
type group struct {
	title string
	pods  []*corev1.Pod
}

// byReason groups pods by what is said of them, that of most pods first.
func (d *drain) byReason(pods []*corev1.Pod, reason func(*corev1.Pod) string) []group {
	grouped := map[string][]*corev1.Pod{}
	for _, pod := range pods {
		text := oneLine(reason(pod))
		grouped[text] = append(grouped[text], pod)
	}
	var groups []group
	for _, text := range slices.Sorted(maps.Keys(grouped)) {
		groups = append(groups, group{text, grouped[text]})
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(len(b.pods), len(a.pods)) })
	return groups
}

// byOrder groups the pods that are evicted later, the next first.
func (d *drain) byOrder() []group {
	grouped := map[int32][]*corev1.Pod{}
	for _, pod := range d.Later {
		grouped[d.orders[pod.UID]] = append(grouped[d.orders[pod.UID]], pod)
	}
	var groups []group
	for _, order := range slices.Sorted(maps.Keys(grouped)) {
		groups = append(groups, group{fmt.Sprintf("order %d", order), grouped[order]})
	}
	return groups
}

func line(text *strings.Builder, title string, pods []*corev1.Pod) {
	if len(pods) > 0 {
		fmt.Fprintf(text, "\n* %s: %s", title, Names(pods, namedPods))
	}
}

func reasons(text *strings.Builder, title string, groups []group) {
	if len(groups) == 0 {
		return
	}
	fmt.Fprintf(text, "\n* %s:", title)
	for _, g := range groups[:min(len(groups), maxReasons)] {
		fmt.Fprintf(text, "\n  * %s: %s", g.title, Names(g.pods, namedPods))
	}
	if len(groups) > maxReasons {
		more := 0
		for _, g := range groups[maxReasons:] {
			more += len(g.pods)
		}
		fmt.Fprintf(text, "\n  * ... (%d more)", more)
	}
}

// Names names pods, sorted, up to a limit.
func Names(pods []*corev1.Pod, limit int) string {
	names := make([]string, 0, len(pods))
	for _, pod := range pods {
		names = append(names, pod.Namespace+"/"+pod.Name)
	}
	return List(names, limit)
}

// List joins names, sorted, up to a limit, and says how many more there are.
func List(names []string, limit int) string {
	sorted := slices.Sorted(slices.Values(names))
	if more := len(sorted) - limit; more > 0 {
		sorted = append(sorted[:limit], fmt.Sprintf("... (%d more)", more))
	}
	return strings.Join(sorted, ", ")
}

// moment is how times are told in messages of the API.
var moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

// impersonal takes out of an answer what is different for every pod and moment,
// so that those of many pods are the same.
func impersonal(answer string, pod *corev1.Pod) string {
	answer = moment.ReplaceAllString(answer, "<time>")
	if pod.UID != "" {
		answer = strings.ReplaceAll(answer, string(pod.UID), "<uid>")
	}
	// A pod whose name is a plain word has no siblings.
	if !strings.ContainsAny(pod.Name, "-.0123456789") {
		return answer
	}
	name := regexp.MustCompile(`([Pp]ods?[ /]["']?(?:` + regexp.QuoteMeta(pod.Namespace) + `/)?)` + regexp.QuoteMeta(pod.Name) + `([^\w-]|$)`)
	return name.ReplaceAllString(answer, "${1}<name>${2}")
}

// oneLine keeps a foreign text from breaking the form of the message.
func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
	if len(text) > maxReason {
		return strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return cmp.Or(text, "no reason given")
}
