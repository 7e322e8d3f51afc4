package arch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	// longestReadme is the most words that README.md may have, as wc -w counts them:
	// all of the file, blocks and links included.
	longestReadme = 700
	// longestSession is the most lines of a terminal session in README.md.
	longestSession = 25
	// omission stands for words of a line, or on a line of its own for at least one line.
	omission = "..."
)

// tiers are the targets that CI runs, each of which CONTRIBUTING.md explains.
var tiers = []string{"verify", "test", "test-all"}

var (
	anyBlock   = regexp.MustCompile("(?s)<!-- (\\w+)(?:: ([^\n]*))? -->\n```\\w*\n(.*?)```")
	shortened  = regexp.MustCompile(`^shortened from (\S+)$`)
	testedPath = regexp.MustCompile(`(?m)^go test ([^\s]+)(.*)$`)
	namedTest  = regexp.MustCompile(`-run (\w+)`)
)

// blocksOf returns the blocks of a page that have a mark of this kind.
func blocksOf(text, kind string) (blocks []string) {
	for _, match := range anyBlock.FindAllStringSubmatch(text, -1) {
		if match[1] == kind && !shortened.MatchString(match[2]) {
			blocks = append(blocks, match[3])
		}
	}
	return blocks
}

// lineOf returns an expression that matches a line of a shortened block, and the lines it stands for.
func lineOf(line string) string {
	if line == omission {
		return "(?:[^\n]*\n)+?"
	}
	words := strings.Split(line, " ")
	for i, word := range words {
		if words[i] = regexp.QuoteMeta(word); word == omission {
			words[i] = "[^\n]+"
		}
	}
	return strings.Join(words, " ") + "\n"
}

// leftOver returns the first line of a shortened block that is not in the full one at its
// place, "" if there is none.
func leftOver(short, full string) string {
	expression := `\A`
	lines := strings.Split(strings.TrimSuffix(short, "\n"), "\n")
	for _, line := range lines {
		expression += lineOf(line)
		if !regexp.MustCompile(expression).MatchString(full) {
			return line
		}
	}
	if !regexp.MustCompile(expression + `\z`).MatchString(full) {
		return "(the end)"
	}
	return ""
}

// shortProblems finds blocks that are not what is left of the block in the page that they shorten.
func shortProblems(name string, texts map[string]string) (problems []string) {
	for _, match := range anyBlock.FindAllStringSubmatch(texts[name], -1) {
		from := shortened.FindStringSubmatch(match[2])
		if from == nil {
			continue
		}
		full := blocksOf(texts[from[1]], match[1])
		if len(full) != 1 {
			problems = append(problems, fmt.Sprintf("%s shortens a %s of %s, which has %d of them", name, match[1], from[1], len(full)))
			continue
		}
		if line := leftOver(match[3], full[0]); line != "" {
			problems = append(problems, fmt.Sprintf("%s: %q does not follow in the %s of %s", name, line, match[1], from[1]))
		}
	}
	return problems
}

// readmeProblems finds what makes the README too long.
func readmeProblems(text string) (problems []string) {
	if words := len(strings.Fields(text)); words > longestReadme {
		problems = append(problems, fmt.Sprintf("README.md has %d words, %d are allowed", words, longestReadme))
	}
	for _, match := range anyBlock.FindAllStringSubmatch(text, -1) {
		if lines := strings.Count(match[3], "\n"); match[1] == "terminal" && lines > longestSession {
			problems = append(problems, fmt.Sprintf("README.md has a session of %d lines, %d are allowed", lines, longestSession))
		}
	}
	return problems
}

// tierProblems finds tiers that CONTRIBUTING.md does not have in its table, and a missing rule of the tiers.
func tierProblems(text string) (problems []string) {
	for _, tier := range tiers {
		if !strings.Contains(text, "\n| `make "+tier+"` |") {
			problems = append(problems, "CONTRIBUTING.md does not explain make "+tier)
		}
	}
	if !strings.Contains(text, "`TestLong`") {
		problems = append(problems, "CONTRIBUTING.md does not name the prefix TestLong")
	}
	return problems
}

// goProblems finds go test commands of a page for folders or tests that do not exist.
func goProblems(text string, sources []source) (problems []string) {
	for _, block := range blocksOf(text, "go") {
		for _, command := range testedPath.FindAllStringSubmatch(block, -1) {
			dir := strings.TrimSuffix(strings.TrimPrefix(command[1], "./"), "/...")
			test := ""
			if name := namedTest.FindStringSubmatch(command[2]); name != nil {
				test = "\nfunc " + name[1] + "(t *testing.T) {\n"
			}
			if !slices.ContainsFunc(sources, func(s source) bool {
				return s.syntax != nil && (s.dir() == dir || strings.HasPrefix(s.dir(), dir+"/")) && strings.Contains(s.text, test)
			}) {
				problems = append(problems, "no test is run by "+command[0])
			}
		}
	}
	return problems
}

// The README is short, what it prints is part of what is tested elsewhere, and
// CONTRIBUTING.md says how to run what there is.
func TestDoors(t *testing.T) {
	texts := map[string]string{}
	for _, s := range tree(t) {
		texts[s.path] = s.text
	}
	problems := slices.Concat(readmeProblems(texts["README.md"]), tierProblems(texts["CONTRIBUTING.md"]), goProblems(texts["CONTRIBUTING.md"], tree(t)))
	for name := range texts {
		if userPage(name) {
			problems = append(problems, shortProblems(name, texts)...)
		}
	}
	for _, problem := range problems {
		t.Error(problem)
	}
	if !strings.Contains(texts["README.md"], "shortened from docs/guide.md") || !strings.Contains(texts["README.md"], "shortened from docs/sandbox.md") {
		t.Error("README.md shows no session of docs/guide.md or no demo of docs/sandbox.md")
	}
}

func TestShortenedBlockRuleCanFail(t *testing.T) {
	const full = "$ plan\none pod web-1, blocked by web\ntwo pods\n$ drain\ndone\n"
	for short, want := range map[string]string{
		full: "",
		"$ plan\none pod web-1, ...\n...\ndone\n": "",
		"...\n$ drain\n...\n":                     "",
		"...\ntwo pods\n$ drain\ndone\n":          "",
		"$ drain\ndone\n":                         "$ drain",
		"$ plan\ntwo pods\n...\n":                 "two pods",
		"...\n$ drain\n...\ntwo pods\n":           "two pods",
		"$ plan\none pod ...\ntwo pods ...\n":     "two pods ...",
		"$ plan\n...\n$ drain\n":                  "(the end)",
		"$ plan\n...\n$ drain\ndone\n...\n":       "...",
	} {
		if got := leftOver(short, full); got != want {
			t.Errorf("%q: first line that does not follow is %q, want %q", short, got, want)
		}
	}
	got := shortProblems("README.md", map[string]string{
		"README.md": "<!-- demo: shortened from docs/a.md -->\n```\nx\n```\n<!-- demo: shortened from docs/b.md -->\n```\nx\n```\n",
		"docs/a.md": "<!-- demo -->\n```\ny\n```\n",
	})
	want := []string{`README.md: "x" does not follow in the demo of docs/a.md`, "README.md shortens a demo of docs/b.md, which has 0 of them"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestDoorRulesCanFail(t *testing.T) {
	got := readmeProblems(strings.Repeat("word ", 600) + "\n<!-- terminal: typed -->\n```\n" + strings.Repeat("$ four words more\n", 26) + "```\n")
	want := []string{"README.md has 710 words, 700 are allowed", "README.md has a session of 26 lines, 25 are allowed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("README (-want +got):\n%s", diff)
	}
	got = tierProblems("\n| `make verify` |\n| `make test-all` |\n")
	want = []string{"CONTRIBUTING.md does not explain make test", "CONTRIBUTING.md does not name the prefix TestLong"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tiers (-want +got):\n%s", diff)
	}
	sources := []source{example(t, "test/story/a_test.go", "package story\n\nfunc TestA(t *testing.T) {\n}\n")}
	got = goProblems("<!-- go: x -->\n```\ngo test ./test/...\ngo test ./test/story -run TestA -keep\ngo test ./test/story -run TestB\ngo test ./test/stories\n```\n", sources)
	want = []string{"no test is run by go test ./test/story -run TestB", "no test is run by go test ./test/stories"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("go test (-want +got):\n%s", diff)
	}
}
