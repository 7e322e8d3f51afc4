package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

// docs/versions.md has a row for each release that is tested, in which everything has passed.
func TestPageListsTheRunsOfEachRelease(t *testing.T) {
	text, err := os.ReadFile("../../docs/versions.md")
	if err != nil {
		t.Fatal(err)
	}
	table, _, found := strings.Cut(after(string(text), begin), end)
	if !found {
		t.Fatalf("docs/versions.md has no table between %q and %q", begin, end)
	}
	var versions []string
	for _, match := range regexp.MustCompile(`(?m)^\| (\d\S*) \| (.*) \| (.*) \| \d* \|$`).FindAllStringSubmatch(table, -1) {
		versions = append(versions, match[1])
		for _, ran := range match[2:4] {
			passed, all, counted := strings.Cut(ran, " of ")
			if ran != notRun && (!counted || passed != all) {
				t.Errorf("on Kubernetes %s %s have passed; run make test-versions VERSIONS=%s", match[1], ran, match[1])
			}
		}
	}
	if diff := cmp.Diff(sandbox.TestedVersions(), versions); diff != "" {
		t.Errorf("releases in docs/versions.md; run make test-versions (-want +got):\n%s", diff)
	}
}

func after(text, separator string) string {
	_, rest, _ := strings.Cut(text, separator)
	return rest
}

// A story that somebody renames would not be run any more, and nobody would see it.
func TestTheStoriesAreThere(t *testing.T) {
	files, err := os.ReadDir("../scenario")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile("../scenario/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, story := range stories {
		if !strings.Contains(all.String(), "\nfunc "+story+"(t *testing.T) {") {
			t.Errorf("there is no %s in test/scenario", story)
		}
	}
}
