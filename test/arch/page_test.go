package arch

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// longestPage is how many lines a page for users may have.
const longestPage = 200

var (
	fence = regexp.MustCompile("^```")
	// shown is the line before a block that says which test holds it to what is true.
	shown = regexp.MustCompile(`^<!-- (demo|(example|run|printed|install|make|terminal): .*) -->$`)
	link  = regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)
)

// userPage is true for what people read who use Ebbtide. docs/api.md is generated.
func userPage(name string) bool {
	docs := path.Dir(name) == "docs" && path.Ext(name) == ".md" && name != "docs/api.md" && name != "docs/layout.md" && name != "docs/rules.md"
	return docs || name == "README.md"
}

// pageProblems finds blocks that no test stands for, links that lead nowhere, and pages
// that are too long.
func pageProblems(name, text string, exists func(string) bool) (problems []string) {
	lines := strings.Split(text, "\n")
	if len(lines) > longestPage {
		problems = append(problems, fmt.Sprintf("%s has %d lines, more than %d", name, len(lines), longestPage))
	}
	open := false
	for n, line := range lines {
		if !fence.MatchString(line) {
			continue
		}
		if open = !open; open && (n == 0 || !shown.MatchString(lines[n-1])) {
			problems = append(problems, fmt.Sprintf("%s:%d: no test stands for this block", name, n+1))
		}
	}
	for _, match := range link.FindAllStringSubmatch(text, -1) {
		target := match[1]
		if !strings.Contains(target, "://") && !exists(path.Join(path.Dir(name), target)) {
			problems = append(problems, fmt.Sprintf("%s leads to %s, which is not there", name, target))
		}
	}
	return problems
}

// Pages for users show nothing that is not run or checked by a test.
func TestPages(t *testing.T) {
	there := map[string]bool{}
	texts := map[string]string{}
	for _, s := range tree(t) {
		texts[s.path] = s.text
		for name := s.path; name != "."; name = path.Dir(name) {
			there[name] = true
		}
	}
	pages := 0
	for name, text := range texts {
		if !userPage(name) {
			continue
		}
		pages++
		for _, problem := range pageProblems(name, text, func(target string) bool { return there[target] }) {
			t.Error(problem)
		}
	}
	if pages < 6 {
		t.Errorf("%d pages were looked at, want README.md and those of docs", pages)
	}
}

func TestPageRulesCanFail(t *testing.T) {
	page := "# Page\n<!-- run: in test/demo -->\n```\nkubectl get nodes\n```\n\n```\nkubectl drain\n```\n[here](there.md) [web](https://example.com) [up](../README.md#top)\n"
	got := pageProblems("docs/page.md", page+strings.Repeat("\n", longestPage), func(name string) bool { return name == "README.md" })
	want := []string{
		"docs/page.md has 211 lines, more than 200",
		"docs/page.md:7: no test stands for this block",
		"docs/page.md leads to there.md, which is not there",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}
