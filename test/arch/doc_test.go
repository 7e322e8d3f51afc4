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

var (
	makeTarget  = regexp.MustCompile(`(?m)^([a-z][a-z-]*):.*## `)
	makeCommand = regexp.MustCompile("(?m)(?:^|`)make ([a-z][a-z-]*)")
)

// unlisted finds package folders that docs/layout.md does not name, and no folder above them.
func unlisted(layout string, packages []pkg) (violations []string) {
	for _, p := range packages {
		if !isListed(layout, p.dir()) {
			violations = append(violations, "docs/layout.md does not name `"+p.dir()+"`")
		}
	}
	return violations
}

func isListed(layout, dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if strings.Contains(layout, "`"+dir+"`") {
			return true
		}
	}
	return false
}

// unknownCommands finds make commands of a document that the Makefile does not have.
func unknownCommands(page, document, makefile string) (violations []string) {
	var targets []string
	for _, match := range makeTarget.FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, match[1])
	}
	for _, match := range makeCommand.FindAllStringSubmatch(document, -1) {
		if !slices.Contains(targets, match[1]) {
			violations = append(violations, fmt.Sprintf("%s: the Makefile has no target %s", page, match[1]))
		}
	}
	return violations
}

func TestDocuments(t *testing.T) {
	texts := map[string]string{}
	for _, s := range tree(t) {
		texts[s.path] = s.text
	}
	for _, violation := range unlisted(texts["docs/layout.md"], packages(t)) {
		t.Error(violation)
	}
	for _, page := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/layout.md", "docs/rules.md"} {
		if texts[page] == "" {
			t.Errorf("%s is missing", page)
		}
		for _, violation := range unknownCommands(page, texts[page], texts["Makefile"]) {
			t.Error(violation)
		}
	}
}

func TestDocumentRulesCanFail(t *testing.T) {
	layout := "| `internal/kube` | shared I/O |"
	got := unlisted(layout, []pkg{{ImportPath: module + "/internal/kube/index"}, {ImportPath: module + "/internal/attic"}})
	want := []string{"docs/layout.md does not name `internal/attic`"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("layout (-want +got):\n%s", diff)
	}

	got = unknownCommands("README.md", "```\nmake test\nmake coffee\n```\n", "test: ## Run all tests\n")
	want = []string{"README.md: the Makefile has no target coffee"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}
