//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/nodeagent"
	"ebbtide.dev/ebbtide/test/patience"
)

func lonely(t *testing.T, manifests, state string) *Agent {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, v1alpha1.AddToScheme(scheme))
	c, err := client.NewWithWatch(&rest.Config{Host: "http://127.0.0.1:1"}, client.Options{Scheme: scheme})
	must(t, err)
	return New(Options{
		Self: core.Self{Node: "node-7", Dir: manifests}, Manifests: NewFolder(manifests), Records: NewJournal(state),
		Client: c, Log: logr.Discard(), Emit: func(...event.Event) {},
	})
}

func ready(a *Agent) int {
	answer := httptest.NewRecorder()
	a.readyz(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	return answer.Code
}

// Nobody knows what the Node says, so what is aside stays aside, and what runs runs. The
// agent is ready all the same: it could do nothing better.
func TestWithoutAnAPIServerNothingChanges(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	put(t, dir, ".proxy.yaml.ebbtide-held", manifest)
	put(t, dir, "other.yaml", strings.Replace(manifest, "name: proxy", "name: other", 1))
	before := strings.Join(files(t, dir), ", ")
	a := lonely(t, dir, state)
	if code := ready(a); code != http.StatusServiceUnavailable {
		t.Errorf("before its first pass it answers %d", code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	patience.Eventually(t, "a pass", func(context.Context) (string, bool) { code := ready(a); return fmt.Sprint(code), code == http.StatusOK })
	cancel()
	must(t, <-ended)
	if after := strings.Join(files(t, dir), ", "); after != before {
		t.Errorf("the folder had %s and has %s", before, after)
	}
	a.lastPass.Store(time.Now().Add(-readyWithin - time.Second).UnixNano())
	if code := ready(a); code != http.StatusServiceUnavailable {
		t.Errorf("long after its last pass it answers %d", code)
	}
	// The journal was lost, and is made again of what is there.
	j, err := NewJournal(state).Load()
	if err != nil || len(j.Manifests) != 1 || j.Manifests[0].Pod != "edge/proxy-node-7" {
		t.Errorf("the journal is %+v, %v; want the manifest that is aside", j, err)
	}
}

// What cannot be written down is not done, but what is to come back does.
func TestAJournalThatCannotBeWritten(t *testing.T) {
	for holds, want := range map[bool]string{true: "proxy.yaml", false: ".proxy.yaml.ebbtide-held"} {
		dir := t.TempDir()
		put(t, dir, want, manifest)
		a := lonely(t, dir, filepath.Join(put(t, t.TempDir(), "file", ""), "state"))
		for range 3 {
			d := core.Decide(snapshotOf(a, holds))
			a.record(d)
			a.act(d.Moves)
		}
		if !holds {
			want = "proxy.yaml"
		}
		if _, err := os.Stat(filepath.Join(dir, want)); err != nil {
			t.Errorf("with a node that holds: %t, %v", holds, err)
		}
		if words := a.failures["proxy.yaml"]; holds && words != "the journal cannot be written, see the log of the agent" {
			t.Errorf("it tells %q", words)
		}
	}
}

var spoiled = map[string]func(path string) error{
	"half of one":     func(path string) error { return os.WriteFile(path, []byte(`{"version":1,"man`), 0o600) },
	"another version": func(path string) error { return os.WriteFile(path, []byte(`{"version":9,"manifests":[]}`), 0o600) },
	"a pipe":          func(path string) error { return unix.Mkfifo(path, 0o600) },
	"a device":        func(path string) error { return os.Symlink("/dev/zero", path) },
	"a folder":        func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
	"far too much": func(path string) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
	},
}

func TestJournalsThatCannotBeRead(t *testing.T) {
	for name, spoil := range spoiled {
		t.Run(name, func(t *testing.T) {
			j := NewJournal(t.TempDir())
			must(t, spoil(j.file.Path()))
			known, err := j.Load()
			if err == nil || !strings.Contains(err.Error(), "cannot be read") || len(known.Manifests) > 0 {
				t.Errorf("read %+v, %v", known, err)
			}
			_, err = os.Lstat(j.file.Path() + ".bad")
			must(t, err)
			writeAgain(t, j)
		})
	}
}

func writeAgain(t *testing.T, j *Journal) {
	t.Helper()
	must(t, j.Store(core.Journal{Manifests: []core.Entry{{File: "a", Held: core.HeldName("a"), State: v1alpha1.StaticPodHeld, At: time.Unix(1, 0)}}}))
	if again, err := j.Load(); err != nil || len(again.Manifests) != 1 {
		t.Errorf("after that it is %+v, %v", again, err)
	}
	if stat, err := os.Stat(j.file.Path()); err != nil || stat.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", stat.Mode(), err)
	}
	must(t, j.Clear())
	must(t, j.Clear())
}

func TestRestoreByHand(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, ".a.yaml.ebbtide-held", "a")
	put(t, dir, ".b.yaml.ebbtide-held", "b")
	put(t, dir, "b.yaml", "theirs")
	var lines []string
	tell := func(line string) { lines = append(lines, line) }
	err := Restore(dir, tell)
	want := "a.yaml is back.\nb.yaml is not back: there is a b.yaml already: compare it with .b.yaml.ebbtide-held, and remove one"
	if got := strings.Join(lines, "\n"); got != want || err == nil || err.Error() != "1 of 2 manifests are not back" {
		t.Errorf("it tells\n%s\n%v\nwant\n%s", got, err, want)
	}
	lines = nil
	must(t, Restore(t.TempDir(), tell))
	if err := Restore(filepath.Join(dir, "none"), tell); err == nil || !strings.Contains(err.Error(), "there is no folder") || len(lines) != 1 {
		t.Errorf("of folders with nothing to restore it tells %v, %v", lines, err)
	}
}
