package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/test/cluster"
)

// diaryVolume and diaryMount give a program the folder of its node with diaries, as
// -diary=/diary/NAME writes them.
const (
	diaryVolume = "{name: diary, hostPath: {path: /var/log/diary}}"
	diaryMount  = "{name: diary, mountPath: /diary}"
)

// diary is what a program has told of itself, which outlives it and its log.
type diary struct{ path string }

// note is a line of a diary.
type note struct {
	at    time.Time
	words string
}

// newDiary makes an empty diary for a program on a node.
func newDiary(t testing.TB, c *cluster.Cluster, node, name string) diary {
	t.Helper()
	dir := filepath.Join(c.NodeLogs(node), "diary")
	// The programs are nobody there.
	err := errors.Join(os.MkdirAll(dir, 0o777), os.Chmod(dir, 0o777))
	d := diary{path: filepath.Join(dir, name)}
	if removed := os.Remove(d.path); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// notes are those with some words, from first to last.
func (d diary) notes(t testing.TB, words string) (found []note) {
	t.Helper()
	data, err := os.ReadFile(d.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		at, said, _ := strings.Cut(strings.TrimSpace(line), " ")
		when, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			t.Fatalf("diary %s: %v", d.path, err)
		}
		if strings.Contains(said, words) {
			found = append(found, note{when, said})
		}
	}
	return found
}

// once wants a program to have told of something exactly once, and returns when.
func (d diary) once(t testing.TB, words string) time.Time {
	t.Helper()
	found := d.notes(t, words)
	if len(found) != 1 {
		t.Fatalf("%s tells %d times that it is %q: %v", filepath.Base(d.path), len(found), words, found)
	}
	return found[0].at
}
