package arch

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	// Bounds of the words of a page, and of all pages that people write for users, without blocks
	// of code.
	longestDecision, longestSecurity, longestAPI, allDocs = 1000, 900, 11000, 14600
	// questions is the number of questions that docs/faq.md answers at least.
	questions = 20
)

// joinFiles are the files that people look for before they join a project.
var joinFiles = []string{"CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SCOPE.md", "SECURITY.md"}

// docProblems finds pages that are too long, missing files and questions without an answer.
func docProblems(texts map[string]string) (problems []string) {
	all := 0
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		words, bound := len(strings.Fields(texts[name])), 0
		switch {
		case path.Dir(name) == "docs/design" && path.Ext(name) == ".md":
			bound = longestDecision
		case name == "docs/security.md":
			bound = longestSecurity
		case name == "docs/reference/api.md":
			bound = longestAPI
		}
		if bound > 0 && words > bound {
			problems = append(problems, fmt.Sprintf("%s has %d words, %d are allowed", name, words, bound))
		}
		if isProse(name) {
			all += len(strings.Fields(codeBlock.ReplaceAllString(texts[name], "")))
		}
	}
	if all > allDocs {
		problems = append(problems, fmt.Sprintf("the pages for users have %d words, %d are allowed", all, allDocs))
	}
	for _, name := range joinFiles {
		if texts[name] == "" {
			problems = append(problems, name+" is missing")
		}
	}
	if found := strings.Count(texts["docs/faq.md"], "?\n\n"); found < questions {
		problems = append(problems, fmt.Sprintf("docs/faq.md answers %d questions, %d are required", found, questions))
	}
	if !strings.Contains(texts["README.md"], "(docs/faq.md)") {
		problems = append(problems, "README.md does not link docs/faq.md")
	}
	return problems
}

func TestDocsStayShort(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	for _, s := range tree(t) {
		texts[s.path] = s.text
	}
	for _, problem := range docProblems(texts) {
		t.Error(problem)
	}
}

func TestDocRulesCanFail(t *testing.T) {
	t.Parallel()
	got := docProblems(map[string]string{
		"docs/design/0001-a.md": strings.Repeat("word ", longestDecision+1), "docs/guide.md": strings.Repeat("word ", allDocs+1),
		"docs/faq.md": "### Why?\n\nBecause.\n",
	})
	if len(got) != 4+len(joinFiles) {
		t.Errorf("problems %q, want one of the decision, of all pages, of the questions, of the link and of each file", got)
	}
}
