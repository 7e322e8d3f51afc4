// Package golden compares what tests make with files in testdata. The flag -update writes them.
//
// The messages of a package stand once, in testdata/messages.txt: tests assert reasons and
// objects, and pass their messages to Message. Main compares them after the last test, so that
// a message in other words is one difference of one file.
package golden

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const messages = "messages.txt"

var update = flag.Bool("update", false, "write what the tests make into testdata")

// Equal fails a test if got is not what testdata/name holds.
func Equal(t *testing.T, name, got string) {
	t.Helper()
	diff, err := compare(name, got)
	if err != nil {
		t.Fatal(err)
	}
	if diff != "" {
		t.Errorf("testdata/%s, which -update writes (-want +got):\n%s", name, diff)
	}
}

func compare(name, got string) (diff string, err error) {
	file := filepath.Join("testdata", name)
	if *update {
		return "", errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	return cmp.Diff(string(want), got), err
}

// scenario is what one test said.
type scenario struct {
	test     testing.TB
	messages []string
}

var (
	mutex     sync.Mutex
	scenarios = map[string]scenario{}
)

// Message adds a message to those of a test, behind its reason if there is one. They are
// compared in the order of the alphabet, and each once.
func Message(t testing.TB, words ...string) {
	mutex.Lock()
	defer mutex.Unlock()
	s := scenarios[t.Name()]
	if s.test != t { // A test that runs again begins again.
		s = scenario{test: t}
	}
	s.messages = append(s.messages, "  "+strings.ReplaceAll(strings.Join(words, ": "), "\n", "\n    "))
	scenarios[t.Name()] = s
}

// Main runs the tests of a package, and compares their messages if all have passed.
func Main(m *testing.M) (code int) {
	if code = m.Run(); code != 0 || len(scenarios) == 0 {
		return code
	}
	diff, err := compareMessages(flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "")
	if err != nil || diff != "" {
		fmt.Printf("messages in testdata/%s, which -update writes (-want +got): %v\n%s", messages, err, diff)
		return 1
	}
	return code
}

// compareMessages keeps what tests said that did not run, if only some did.
func compareMessages(some bool) (diff string, err error) {
	all := map[string][]string{}
	if some {
		if all, err = read(); err != nil {
			return "", err
		}
	}
	for name, s := range scenarios {
		all[name] = slices.Compact(slices.Sorted(slices.Values(s.messages)))
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s\n%s\n", name, strings.Join(all[name], "\n"))
	}
	return compare(messages, text.String())
}

func read() (map[string][]string, error) {
	text, err := os.ReadFile(filepath.Join("testdata", messages))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all, name := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\n"); strings.HasPrefix(line, "  ") {
			all[name] = append(all[name], line)
		} else {
			name = line
		}
	}
	return all, nil
}
