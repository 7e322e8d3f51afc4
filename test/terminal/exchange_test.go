package terminal

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// exchange is what a page shows of a terminal: lines that a person types, after a prompt,
// and what is printed.
type exchange struct {
	page, text string
	steps      []step
}

// step is a line that is typed, and what the page shows of it: the picture on which Ctrl-C is
// pressed, if it is, and what is printed.
type step struct {
	line           string
	picture, after []string
	interrupted    bool
}

var shownExchange = regexp.MustCompile("(?s)<!-- terminal: typed in test/terminal -->\n```\n(.*?)```")

// exchangeOf reads the exchange of a page.
func exchangeOf(t *testing.T, page string) exchange {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	block := shownExchange.FindSubmatch(text)
	if block == nil {
		t.Fatalf("%s shows no terminal", page)
	}
	e := exchange{page: page, text: string(text)}
	for _, line := range strings.Split(strings.TrimSpace(string(block[1])), "\n") {
		typed, isTyped := strings.CutPrefix(line, prompt)
		if isTyped {
			e.steps = append(e.steps, step{line: typed})
			continue
		}
		if len(e.steps) == 0 {
			t.Fatalf("%s: %q is printed before anything is typed", page, line)
		}
		e.steps[len(e.steps)-1].add(line)
	}
	return e
}

func (s *step) add(line string) {
	if line == "^C" {
		s.picture, s.after, s.interrupted = s.after, nil, true
		return
	}
	s.after = append(s.after, line)
}

// replace writes what was really printed into the page.
func (e exchange) replace(t *testing.T, printed string) {
	t.Helper()
	at := shownExchange.FindStringSubmatchIndex(e.text)
	// A picture is as high as the window.
	printed = regexp.MustCompile("\n{3,}").ReplaceAllString(printed, "\n")
	text := e.text[:at[2]] + strings.TrimSpace(printed) + "\n" + e.text[at[3]:]
	if err := os.WriteFile(e.page, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

var (
	clock    = regexp.MustCompile(`\b\d\d:\d\d:\d\dZ`)
	podName  = regexp.MustCompile(`\bweb-[a-z0-9]{8,10}-[a-z0-9]{5}\b`)
	duration = regexp.MustCompile(`\b\d+(\.\d+)?(ms|s|m)\d*s?\b`)
	spaces   = regexp.MustCompile(` +`)
)

// alike is what two runs print alike of a line: not when, how long it took, and how pods are called.
func alike(line string) string {
	line = clock.ReplaceAllString(line, "TIME")
	line = duration.ReplaceAllString(podName.ReplaceAllString(line, "web-POD"), "1s")
	return strings.TrimSpace(spaces.ReplaceAllString(line, " "))
}

// omission is a word of a shown line that stands for at least one printed word.
const omission = "..."

// matches reports whether a page shows a printed line, perhaps shortened.
func matches(shown, printed string) bool {
	words := strings.Split(alike(shown), " ")
	for i, word := range words {
		if words[i] = regexp.QuoteMeta(word); word == omission {
			words[i] = ".+"
		}
	}
	return regexp.MustCompile("^" + strings.Join(words, " ") + "$").MatchString(alike(printed))
}

// missing returns the first shown line that was not printed, in this order. A run may print
// more lines than the page shows.
func missing(shown []string, printed string) (line string, any bool) {
	lines := strings.Split(printed, "\n")
	for _, line := range shown {
		found := false
		for !found && len(lines) > 0 {
			found = matches(line, lines[0])
			lines = lines[1:]
		}
		if !found {
			return line, true
		}
	}
	return "", false
}
