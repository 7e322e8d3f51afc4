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
func TestThePageListsWhatRanOnEachRelease(t *testing.T) {
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

func TestARowTakesThePlaceOfItsRelease(t *testing.T) {
	const page = "# Ebbtide\n" + begin + header +
		"| 1.36.3 | 1 of 1 | 1 of 1 | 10 |\n\nsomebody's words\n| 1.35.4 | 2 of 2 | 2 of 2 | 20 |\n| 1.34.4 | 3 of 4 | 3 of 3 | 30 |\n" + end + "\nRead on\n"
	got, err := replace([]byte(page), []string{"1.36.4", "1.35.4", "1.34.4"},
		row{version: "1.34.4", api: result{passed: 4}, stories: result{passed: 2, failed: 1}, seconds: 31})
	if err != nil {
		t.Fatal(err)
	}
	const want = "# Ebbtide\n" + begin + header +
		"| 1.36.4 | not run | not run |  |\n| 1.35.4 | 2 of 2 | 2 of 2 | 20 |\n| 1.34.4 | 4 of 4 | 2 of 3 | 31 |\n" + end + "\nRead on\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	if _, err := replace([]byte("# Ebbtide\n"), nil, row{}); err == nil || !strings.Contains(err.Error(), "there is no table between") {
		t.Errorf("a text without table: error is %v", err)
	}
}

func TestWhatFailedIsShown(t *testing.T) {
	const output = `{"Action":"start","Package":"p"}
{"Action":"run","Test":"TestGood"}
{"Action":"output","Test":"TestGood","Output":"fine\n"}
{"Action":"run","Test":"TestBad"}
{"Action":"output","Test":"TestBad/part","Output":"    what is wrong\n"}
{"Action":"fail","Test":"TestBad/part"}
{"Action":"output","Test":"TestBad","Output":"--- FAIL: TestBad\n"}
{"Action":"pass","Test":"TestGood","Elapsed":1.5}
{"Action":"fail","Test":"TestBad"}
{"Action":"skip","Test":"TestLeftOut"}
{"Action":"output","Output":"FAIL\n"}
{"Action":"fail"}
`
	var shown strings.Builder
	got, err := read(strings.NewReader(output), &shown)
	if err != nil {
		t.Fatal(err)
	}
	// One that is left out has not passed.
	if want := (result{passed: 1, failed: 2}); got != want {
		t.Errorf("result is %v, want %v", got, want)
	}
	const want = "  TestGood 1.5s\n    what is wrong\n--- FAIL: TestBad\nFAIL\n"
	if diff := cmp.Diff(want, shown.String()); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}
