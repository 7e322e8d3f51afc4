package nodedrain

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/test/golden"
)

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

// example is the condition that machine-deletion-process shows.
func example() Snapshot {
	s := snapshot(terminating(time.Minute, in("cert-manager", pod("cert-manager-756d54fb98-hcb6k"))))
	for _, suffix := range []string{"f6z4s", "2jtqm", "7ggsd", "zzzz1", "zzzz2", "zzzz3", "zzzz4", "zzzz5", "zzzz6", "zzzz7"} {
		p := in("test-namespace", pod("nginx-deployment-6886c85ff7-"+suffix))
		s.Pods = append(s.Pods, p)
		s.Answers[p.UID] = budgeted
	}
	return s
}

// postponed is what our own webhook says about pods with an evacuator, as the API
// server passes it on.
func postponed(p *corev1.Pod, asked time.Time) evacuation.Outcome {
	return evacuation.Classify(metav1.Status{
		Status: metav1.StatusFailure, Code: 429, Reason: metav1.StatusReasonTooManyRequests,
		Message: fmt.Sprintf(`admission webhook "evictions.ebbtide.dev" denied the request: evacuation in progress: deployment.apps.k8s.io moves pod %s (asked for at %s); try again until the pod is gone`,
			p.Name, asked.UTC().Format(time.RFC3339)),
	})
}

type messages map[string]Snapshot

func (m messages) check(t *testing.T) {
	t.Helper()
	for name, s := range m {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden.Message(t, Decide(s).Message)
		})
	}
}

func TestMessage(t *testing.T) {
	messages{
		"the example of the page": example(),
		"everything that there is": func() Snapshot {
			s := snapshot(
				pod("refused"), pod("refused-2"), pod("requested"), skipped(pod("skipped")), terminating(0, pod("terminating")),
				waitCompleted(pod("job")), unjudged(pod("odd")), ordered(100, pod("later-b")), ordered(100, pod("later-a")), ordered(10, pod("soon")),
			)
			s.Answers["uid-of-refused"], s.Answers["uid-of-refused-2"] = several, several
			return s
		}(),
		"the answer of most pods comes first, then by its words": func() Snapshot {
			s := answered(several, snapshot(pod("a"), pod("b"), pod("c"), pod("d")))
			s.Answers["uid-of-a"], s.Answers["uid-of-b"] = throttled, contended
			return s
		}(),
		"evacuators that have not moved their pods yet are waited for, in the webhook's words": func() Snapshot {
			a, b := pod("web-7d4b9c-x2x4q"), pod("web-7d4b9c-x2x4q-2")
			s := snapshot(a, b)
			s.Answers[a.UID], s.Answers[b.UID] = postponed(a, now), postponed(b, now.Add(time.Hour))
			return s
		}(),
	}.check(t)
}

// The end of a lock is the same for all of its pods.
func TestLockIsReportedWithItsEnd(t *testing.T) {
	messages{
		"one lock and two pods": func() Snapshot {
			a, b := pod("a"), pod("b")
			s := snapshot(a, b)
			for _, p := range []*corev1.Pod{a, b} {
				s.Answers[p.UID] = evacuation.Outcome{
					Result: evacuation.Locked, Type: v1alpha1.BlockerPDBLocked, Budget: "web",
					Message: "PodDisruptionBudget ns/web is locked by dba until 2026-03-01T09:00:00Z: defragmentation",
				}
			}
			return s
		}(),
	}.check(t)
}

// What the API server says is shown as it is, as far as the form allows.
func TestForeignWords(t *testing.T) {
	messages{
		"more answers than anybody reads": func() Snapshot {
			s := snapshot()
			for i := range 9 {
				p := pod(fmt.Sprintf("pod-%d", i))
				s.Pods = append(s.Pods, p)
				s.Answers[p.UID] = evacuation.Outcome{Result: evacuation.Refused, Message: fmt.Sprintf("reason %d", i)}
			}
			return s
		}(),
		"a budget that is not named": answered(evacuation.Outcome{Result: evacuation.Budgeted, Message: "Cannot evict pod as it would violate the pod's disruption budget."}, snapshot(pod("a"))),
		"an answer of several lines, and one without words": func() Snapshot {
			s := snapshot(pod("a"), pod("b"))
			s.Answers["uid-of-a"] = evacuation.Outcome{Result: evacuation.Refused, Message: "first\n* second\r\nthird"}
			s.Answers["uid-of-b"] = evacuation.Outcome{Result: evacuation.Refused}
			return s
		}(),
	}.check(t)
}

// Waiting for evacuators is no failure of the drain.
func TestPostponedIsOrdinary(t *testing.T) {
	p := pod("web-1")
	s := snapshot(p)
	s.Answers[p.UID] = postponed(p, now)
	check(t, s, outline{Evict: []string{"web-1"}, Refused: []string{"web-1"}})
}

func TestImpersonal(t *testing.T) {
	tests := map[string]struct {
		name, answer, want string
	}{
		"the name after the word":          {"web-1", "pod web-1 is busy", "pod <name> is busy"},
		"the name at the end":              {"web-1", "leave Pod web-1", "leave Pod <name>"},
		"the name in quotes":               {"web-1", `pods "web-1" is forbidden`, `pods "<name>" is forbidden`},
		"the name with its namespace":      {"web-1", "pod ns/web-1 is busy", "pod ns/<name> is busy"},
		"the name is the end of a path":    {"web-1", "pod/web-1: busy", "pod/<name>: busy"},
		"a longer name":                    {"web-1", "pod web-1-x is busy", "pod web-1-x is busy"},
		"a budget of the same name":        {"web-1", "The disruption budget web-1 needs 1", "The disruption budget web-1 needs 1"},
		"a name that is a plain word":      {"as", "Cannot evict pod as it would violate", "Cannot evict pod as it would violate"},
		"a name with signs of expressions": {"web.1", "pod web.1 and pod web-1", "pod <name> and pod web-1"},
		"the UID":                          {"web-1", "uid-of-web-1 differs", "<uid> differs"},
		"times":                            {"web-1", "since 2026-08-30T13:36:27Z or 2026-08-30T13:36:27.123+02:00", "since <time> or <time>"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := impersonal(test.answer, pod(test.name)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The line of logs that machine-deletion-process shows has five names.
func TestNames(t *testing.T) {
	pods := []*corev1.Pod{}
	for _, suffix := range []string{"5gl2h", "9mdjw", "4r297", "9k5gp", "64tf9", "zzzz1", "zzzz2", "zzzz3", "zzzz4", "zzzz5"} {
		pods = append(pods, in("test-namespace", pod("nginx-deployment-6886c85ff7-"+suffix)))
	}
	want := "test-namespace/nginx-deployment-6886c85ff7-4r297, test-namespace/nginx-deployment-6886c85ff7-5gl2h, " +
		"test-namespace/nginx-deployment-6886c85ff7-64tf9, test-namespace/nginx-deployment-6886c85ff7-9k5gp, " +
		"test-namespace/nginx-deployment-6886c85ff7-9mdjw, ... (5 more)"
	if got := Names(pods, 5); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := Names(pods[:1], 5); got != "test-namespace/nginx-deployment-6886c85ff7-5gl2h" {
		t.Errorf("one pod is %s", got)
	}
	if got := Names(nil, 5); got != "" {
		t.Errorf("no pod is %q", got)
	}
}

// The API takes 32,768 bytes. Every part is as long as it can be, and more.
func TestMessageIsBounded(t *testing.T) {
	s := snapshot()
	s.Facts.DaemonSetErrors = map[types.NamespacedName]string{}
	long := func(i int, kind string) *corev1.Pod {
		p := pod(fmt.Sprintf("%s-%03d-%s", kind, i, strings.Repeat("x", 253-len(kind)-5)))
		return in(strings.Repeat("n", 63), p)
	}
	for i := range 50 {
		refused := long(i, "a")
		text := strings.Repeat("ü", 20_000) + "\n"
		s.Answers[refused.UID] = evacuation.Outcome{Result: evacuation.Refused, Message: fmt.Sprintf("%d%s", i/4, text)}
		odd := labelled(v1alpha1.DrainLabel, "", long(i, "b"))
		odd.OwnerReferences = ofDaemonSet("alive", pod("x")).OwnerReferences
		odd.OwnerReferences[0].Name = fmt.Sprintf("%d%s", i/4, strings.Repeat("d", 2000))
		s.Facts.DaemonSetErrors[types.NamespacedName{Namespace: odd.Namespace, Name: odd.OwnerReferences[0].Name}] = strings.Repeat("why ", 10_000)
		s.Pods = append(s.Pods, refused, odd, long(i, "c"), terminating(0, long(i, "d")), waitCompleted(long(i, "e")),
			ordered(orders[3+i%3], long(i, "f")))
	}
	message := Decide(s).Message
	if len(message) > 32_768 || len(message) < 20_000 {
		t.Errorf("the message has %d bytes", len(message))
	}
	if strings.ToValidUTF8(message, "?") != message {
		t.Error("the message is cut within a letter")
	}
	for _, line := range strings.Split(message, "\n")[1:] {
		if !strings.HasPrefix(line, "* ") && !strings.HasPrefix(line, "  * ") {
			t.Errorf("a line of the message is %.50q", line)
		}
	}
}
