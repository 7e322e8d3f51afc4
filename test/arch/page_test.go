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

// longestPage is how many lines a page for users may have.
const longestPage = 240

var (
	fence = regexp.MustCompile("^```")
	// shown is the line before a block that says which test holds it to what is true.
	shown = regexp.MustCompile(`^<!-- (demo|(demo|example|go|install|make|packages|printed|run|terminal): .*) -->$`)
	link  = regexp.MustCompile(`\]\(([^)]+)\)`)
	// heading and punctuation make the anchor of a section, as GitHub does.
	heading     = regexp.MustCompile("(?m)^#+ (.*)$")
	punctuation = regexp.MustCompile("[^a-z0-9 _-]")
)

// userPage is true for pages that users and contributors read. Those of docs/reference are generated.
func userPage(name string) bool {
	docs := path.Dir(name) == "docs" && path.Ext(name) == ".md" && name != "docs/layout.md" && name != "docs/rules.md"
	return docs || path.Dir(name) == "." && path.Ext(name) == ".md"
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
		if !strings.Contains(target, "://") && !exists(placeOf(name, target)) {
			problems = append(problems, fmt.Sprintf("%s leads to %s, which is not there", name, target))
		}
	}
	return problems
}

// placeOf returns what a link on a page leads to: a path in the repository, with an anchor if it has one.
func placeOf(page, target string) string {
	if strings.HasPrefix(target, "#") {
		return page + target
	}
	return path.Join(path.Dir(page), target)
}

// anchorsOf returns the anchors of the headings of a page.
func anchorsOf(text string) (anchors []string) {
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		anchors = append(anchors, strings.ReplaceAll(punctuation.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return anchors
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
		for _, anchor := range anchorsOf(s.text) {
			there[s.path+"#"+anchor] = true
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
	if pages < 9 {
		t.Errorf("%d pages were looked at, want README.md, CONTRIBUTING.md, SECURITY.md, CHANGELOG.md and those of docs", pages)
	}
}

func TestPageRulesCanFail(t *testing.T) {
	page := "# Page\n<!-- run: in test/demo -->\n```\nkubectl get nodes\n```\n\n```\nkubectl drain\n```\n[here](there.md) [web](https://example.com) [up](../README.md#the-top) [down](../README.md#depth) [here](#page)\n"
	got := pageProblems("docs/page.md", page+strings.Repeat("\n", longestPage), func(name string) bool {
		return name == "README.md" || slices.Contains(anchorsOf("# The `top`"), strings.TrimPrefix(name, "README.md#")) || name == "docs/page.md#page"
	})
	want := []string{
		"docs/page.md has 251 lines, more than 240",
		"docs/page.md:7: no test stands for this block",
		"docs/page.md leads to there.md, which is not there",
		"docs/page.md leads to ../README.md#depth, which is not there",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}
