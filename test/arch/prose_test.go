package arch

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// habit is a way of writing that makes pages hard to read.
type habit struct {
	name   string
	phrase *regexp.Regexp
}

var habits = []habit{
	{"sentences that begin with who, what or nobody", regexp.MustCompile(`(?i)(?:[.!?:] |\n|\| )(?:who|whoever|nobody|somebody|anybody)\b`)},
	{"nobody, somebody, whoever", regexp.MustCompile(`(?i)\b(?:nobody|somebody|whoever|anybody)\b`)},
	{"tell, told", regexp.MustCompile(`(?i)\b(?:told|tells?)\b`)},
	{"for ever, at the most, at the latest, anew, besides", regexp.MustCompile(`(?i)\b(?:for ever|at the most|at the latest|anew|all the same|as ever|besides)\b`)},
	{"in which, of which", regexp.MustCompile(`(?i)\b(?:in|by|of|from|to|with|under|at) which\b`)},
}

var (
	codeBlock = regexp.MustCompile("(?s)```.*?```")
	comment   = regexp.MustCompile(`(?s)<!--.*?-->`)
	// riddle is a comment that says what a thing is with a question word instead of what it does.
	riddle      = regexp.MustCompile(`^\s*// [A-Za-z]\w*(?:,? (?:and )?\w+)? (?:is|are) (?:what|who|whose|when|how|where|why|that|those|by what|since when|from when|for how long|after what)\b`)
	sentenceEnd = regexp.MustCompile(`[.!?:](?:\s|$)|\n\s*\n|\n\s*(?:[-*|#]|\d+\.)`)
	word        = regexp.MustCompile(`[A-Za-z]`)
	// description is a description in a CRD, on one line or several.
	description = regexp.MustCompile(`(?m)^ *description: (?:[|>]-?\n)?((?:.+\n)(?:  +[^:\n]+\n)*)`)
)

// texts that are measured, and what they may have for 10,000 words.
type prose struct {
	name string
	text string
	// rate is the bound of each habit for 10,000 words.
	rate float64
}

// proseProblems finds habits that a text has more often than its bound allows.
func proseProblems(p prose) (problems []string) {
	text := comment.ReplaceAllString(codeBlock.ReplaceAllString(p.text, ""), "")
	words := len(strings.Fields(text))
	for _, h := range habits {
		found := h.phrase.FindAllString(text, -1)
		if rate := float64(len(found)) * 1e4 / float64(max(words, 1)); rate > p.rate {
			problems = append(problems, fmt.Sprintf("%s: %s %.1f times in 10,000 words, more than %.1f: %q", p.name, h.name, rate, p.rate, found[:min(5, len(found))]))
		}
	}
	return problems
}

// sentenceLength returns how many words a sentence has on average.
func sentenceLength(text string) float64 {
	text = comment.ReplaceAllString(codeBlock.ReplaceAllString(text, ""), "")
	sentences := 0
	for _, s := range sentenceEnd.Split(text, -1) {
		if word.MatchString(s) {
			sentences++
		}
	}
	return float64(len(strings.Fields(text))) / float64(max(sentences, 1))
}

// The bounds only ever get tighter. Those of docs are the goals of the guide.
const (
	longestLine     = 120
	longestSentence = 22
	docsRate        = 3
	messagesRate    = 3
	fieldsRate      = 3
	riddleShare     = 0.001
)

// measured are the texts of the project by their sort, and the habits of comments.
type measured struct {
	docs, messages, fields strings.Builder
	comments, riddles      int
}

func (m *measured) add(s source) {
	switch {
	case isProse(s.path):
		m.docs.WriteString(s.text + "\n\n")
	case path.Base(s.path) == "messages.txt":
		m.messages.WriteString(s.text)
	case strings.HasPrefix(s.path, "charts/ebbtide/files/crds/"):
		for _, match := range description.FindAllStringSubmatch(s.text, -1) {
			m.fields.WriteString(match[1])
		}
	case strings.HasPrefix(s.path, "internal/") && path.Ext(s.path) == ".go" && !strings.HasSuffix(s.path, "_test.go"):
		m.addComments(s.text)
	}
}

func (m *measured) addComments(text string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "// ") {
			m.comments++
			if riddle.MatchString(line) {
				m.riddles++
			}
		}
	}
}

// isProse reports whether a file is a page that people write.
func isProse(name string) bool {
	return name == "README.md" || path.Dir(name) == "docs" && path.Ext(name) == ".md"
}

// longLines returns the numbers of lines that are too long. Pictures and blocks of code are not
// measured.
func longLines(text string) (numbers []int) {
	lines := strings.Split(text, "\n")
	for n, line := range lines {
		if len(line) > longestLine && !strings.HasPrefix(line, "![") && !inCode(lines[:n]) {
			numbers = append(numbers, n+1)
		}
	}
	return numbers
}

func TestProseIsPlain(t *testing.T) {
	t.Parallel()
	var m measured
	for _, s := range tree(t) {
		m.add(s)
		if isProse(s.path) {
			for _, n := range longLines(s.text) {
				t.Errorf("%s:%d has more than %d characters", s.path, n, longestLine)
			}
		}
	}
	for _, p := range []prose{
		{"docs", m.docs.String(), docsRate}, {"messages", m.messages.String(), messagesRate}, {"field docs", m.fields.String(), fieldsRate},
	} {
		if len(p.text) < 10000 {
			t.Errorf("%s: only %d characters were found", p.name, len(p.text))
		}
		for _, problem := range proseProblems(p) {
			t.Error(problem)
		}
	}
	if length := sentenceLength(m.docs.String()); length > longestSentence {
		t.Errorf("docs: %.1f words in a sentence, more than %d", length, longestSentence)
	}
	if share := float64(m.riddles) / float64(m.comments); share > riddleShare {
		t.Errorf("%d of %d comment lines (%.1f %%) say what something is instead of what it does, more than %.1f %%", m.riddles, m.comments, 100*share, 100*riddleShare)
	}
}

// inCode reports whether a block of code is open behind these lines.
func inCode(before []string) bool {
	fences := 0
	for _, line := range before {
		if fence.MatchString(strings.TrimSpace(line)) {
			fences++
		}
	}
	return fences%2 == 1
}

func TestProseRulesCanFail(t *testing.T) {
	t.Parallel()
	got := proseProblems(prose{name: "page", rate: 1, text: "Nobody is told. It is done anew.\n```\nnobody\n```\n"})
	want := []string{"sentences that begin", "nobody, somebody", "tell, told", "for ever"}
	if len(got) != 3 || slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, "which") }) {
		t.Errorf("problems %q, want those of %q that the page has", got, want[1:])
	}
	if diff := cmp.Diff(4.0, sentenceLength("One two three four.\n\nA title here now\n\nA b c d. E f g h.")); diff != "" {
		t.Errorf("words in a sentence (-want +got):\n%s", diff)
	}
	if !riddle.MatchString("// door is where they come in") || riddle.MatchString("// door returns where they come in") {
		t.Error("riddles are not told from descriptions")
	}
}

var blockerConstant = regexp.MustCompile(`BlockerType = "(\w+)"`)

// docs/troubleshooting.md explains every reason why a pod or a node waits.
func TestTroubleshootingExplainsEveryBlocker(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	for _, s := range tree(t) {
		texts[s.path] = s.text
	}
	blockers := blockerConstant.FindAllStringSubmatch(texts["api/v1alpha1/blocker_types.go"], -1)
	if len(blockers) < 25 {
		t.Fatalf("only %d types of blockers were found", len(blockers))
	}
	for _, b := range blockers {
		if !strings.Contains(texts["docs/troubleshooting.md"], "\n| `"+b[1]+"` | ") {
			t.Errorf("docs/troubleshooting.md does not explain %s", b[1])
		}
	}
}
