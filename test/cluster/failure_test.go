package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// failed is a test that has failed and is cleaned up by hand.
type failed struct {
	testing.TB
	name    string
	cleanup func()
}

func (f *failed) Failed() bool        { return true }
func (f *failed) Name() string        { return f.name }
func (f *failed) Cleanup(what func()) { f.cleanup = what }

// A failure shows the last lines about its own objects. The whole log outlives the control plane.
func TestFailureShowsTheLogsOfItsOwnObjects(t *testing.T) {
	log := filepath.Join(t.TempDir(), "manager-1.log")
	const text = "mine-1 first\nmine-1 second\ntheirs\nmine-1 third\nmine-1 fourth\ntheirs again\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	story := &failed{TB: t, name: t.Name()}
	for prefix, want := range map[string]string{
		"mine-1": "the manager logged last about mine-1:\nmine-1 second\nmine-1 third\nmine-1 fourth\nwhole log: ",
		"new-2":  "the manager logged last (nothing about new-2):\nmine-1 third\nmine-1 fourth\ntheirs again\nwhole log: ",
	} {
		said := (&Cluster{prefix: prefix}).lastWords(story, "the manager", log)
		path, found := strings.CutPrefix(said, want)
		if !found {
			t.Errorf("it says:\n%s\nwant:\n%s", said, want)
		}
		if kept, err := os.ReadFile(path); err != nil || string(kept) != text {
			t.Errorf("the log is kept as %q, %v", kept, err)
		}
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			t.Error(err)
		}
	}
}
