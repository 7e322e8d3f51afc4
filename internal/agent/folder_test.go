//go:build linux

package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/nodeagent"
)

func put(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Whoever can write the folder puts into it what would hang or fill a careless reader.
func TestAHostileFolder(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	put(t, dir, "good.yaml", manifest)
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600))
	must(t, os.Symlink("/dev/zero", filepath.Join(dir, "device.yaml")))
	must(t, os.Symlink(filepath.Join(dir, "pipe.yaml"), filepath.Join(dir, "pipelink.yaml")))
	must(t, os.Symlink("loop.yaml", filepath.Join(dir, "loop.yaml")))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "dangling.yaml")))
	must(t, os.Symlink(put(t, elsewhere, "real", strings.Replace(manifest, "name: proxy", "name: linked", 1)), filepath.Join(dir, "link.yaml")))
	must(t, os.Mkdir(filepath.Join(dir, "folder.yaml"), 0o755))
	must(t, os.Truncate(put(t, dir, "large.yaml", ""), 1<<30))
	put(t, dir, ".hidden.yaml", manifest)
	put(t, dir, ".other.yaml.ebbtide-superseded", "anything")

	list := NewFolder(dir).List()
	got := map[string]string{}
	for _, f := range list.Files {
		got[f.Name] = f.Fault
		if f.Manifest != nil {
			got[f.Name] = "makes " + f.Manifest.Name
		}
	}
	for name, want := range map[string]string{
		"good.yaml": "makes proxy", "link.yaml": "makes linked",
		"pipe.yaml": "it is no regular file", "device.yaml": "it is no regular file", "pipelink.yaml": "it is no regular file",
		"folder.yaml": "it is no regular file", "loop.yaml": "too many levels of symbolic links", "dangling.yaml": "no such file or directory",
		"large.yaml": "it has 1073741824 bytes; at most 2097152 are read", ".other.yaml.ebbtide-superseded": "",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
		delete(got, name)
	}
	if len(got) > 0 || !list.Known || list.Fault != "" {
		t.Errorf("there are %v beside, known: %t, fault %q", got, list.Known, list.Message)
	}
}

func TestTooManyFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range 5_000 {
		must(t, unix.Mknod(filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), unix.S_IFREG|0o600, 0))
	}
	list := NewFolder(dir).List()
	if list.Known || list.Fault != v1alpha1.StaticPodUnreadable || !strings.Contains(list.Message, "has more than 4096 entries") || len(list.Files) > 0 {
		t.Errorf("read %d files, known: %t, fault %s: %s", len(list.Files), list.Known, list.Fault, list.Message)
	}
}

// No pass reads more than it may, and the next one goes on.
func TestMuchAtOnceIsReadInTurn(t *testing.T) {
	dir := t.TempDir()
	text := manifest + "# " + strings.Repeat("x", maxManifest-len(manifest)-2)
	for i := range 40 {
		put(t, dir, fmt.Sprintf("%d.yaml", i), text)
	}
	f := NewFolder(dir)
	read := func() (n int) {
		for _, file := range f.List().Files {
			if file.Manifest != nil {
				n++
			}
		}
		return n
	}
	if first, second := read(), read(); first != maxRead/maxManifest || second != 40 {
		t.Errorf("%d files were read first and %d then, want %d and all", first, second, maxRead/maxManifest)
	}
}

func TestFoldersInWhichNothingMoves(t *testing.T) {
	file := put(t, t.TempDir(), "pod.yaml", manifest)
	for name, test := range map[string]struct {
		path, fault, says string
		known, absent     bool
	}{
		"none":         {path: filepath.Join(t.TempDir(), "none"), known: true, absent: true},
		"a file":       {path: file, fault: v1alpha1.StaticPodSingleFile, says: " is a file. Static pods can be taken down if"},
		"read only":    {path: "/sys/fs", fault: v1alpha1.StaticPodReadOnly, says: "/sys/fs cannot be written, so no static pod can be taken down", known: true},
		"beyond links": {path: filepath.Join(file, "x"), fault: v1alpha1.StaticPodUnreadable, says: "not a directory"},
	} {
		list := NewFolder(test.path).List()
		if list.Known != test.known || list.Absent != test.absent || list.Fault != test.fault || !strings.Contains(list.Message, test.says) {
			t.Errorf("%s: %+v, want %+v", name, list, test)
		}
	}
}

// A rename keeps the file, its link and its owner, and replaces nothing but what it is told.
func TestRenames(t *testing.T) {
	dir := t.TempDir()
	target := put(t, t.TempDir(), "target", manifest)
	must(t, os.Symlink(target, filepath.Join(dir, "a.yaml")))
	f := NewFolder(dir)
	away, back := core.Move{From: "a.yaml", To: ".a.yaml.ebbtide-held"}, core.Move{From: ".a.yaml.ebbtide-held", To: "a.yaml"}
	must(t, f.Hold(away))
	if link, err := os.Readlink(filepath.Join(dir, away.To)); err != nil || link != target {
		t.Errorf("the link leads to %q, %v; want %s", link, err, target)
	}
	put(t, dir, "a.yaml", "theirs")
	for name, err := range map[string]error{"hold": f.Hold(away), "restore": f.Restore(back), "restore over": f.Restore(core.Move{From: back.From, To: back.To, Over: true})} {
		if err == nil || !strings.Contains(err.Error(), "file exists") {
			t.Errorf("%s replaces what is there: %v", name, err)
		}
	}
	away.Over = true
	must(t, f.Hold(away))
	must(t, f.Restore(back))
	if data, err := os.ReadFile(filepath.Join(dir, "a.yaml")); err != nil || string(data) != "theirs" {
		t.Errorf("back is %q, %v; want what was written last", data, err)
	}
	if _, err := os.Stat(target); err != nil {
		t.Errorf("what the link led to: %v", err)
	}
}

func TestAFileThatChangesIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a.yaml", manifest)
	f := NewFolder(dir)
	before := f.List().Files[0]
	if again := f.List().Files[0]; again != before {
		t.Errorf("unchanged, it is %+v and then %+v", before, again)
	}
	put(t, dir, "a.yaml", strings.Replace(manifest, "name: proxy", "name: other", 1))
	if after := f.List().Files[0]; after.Sum == before.Sum || after.Manifest.Name != "other" || !after.Changed.After(before.Changed) {
		t.Errorf("changed, it is %+v as before", after)
	}
}
