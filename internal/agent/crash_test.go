//go:build linux

package agent

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/agent/disk"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/core/event"
	core "ebbtide.dev/ebbtide/internal/core/nodeagent"
	"ebbtide.dev/ebbtide/internal/core/podclass"
)

const manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: proxy, namespace: edge}\nspec: {containers: [{name: x, image: x}]}\n"

// Variables of a process that is an agent and ends behind a system call.
const (
	crashDir   = "EBBTIDE_CRASH_DIR"
	crashAfter = "EBBTIDE_CRASH_AFTER"
	crashHolds = "EBBTIDE_CRASH_HOLDS"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		after, _ := strconv.Atoi(os.Getenv(crashAfter))
		os.Exit(work(dir, os.Getenv(crashHolds) == "true", &mortal{left: after}))
	}
	os.Exit(m.Run())
}

// mortal kills its process behind a call, as a crash does.
type mortal struct{ left int }

func (m *mortal) Call(name string, call func() error) error {
	err := disk.Kernel{}.Call(name, call)
	if m.left--; m.left == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return err
}

// work is an agent on a node that says whether its only static pod has to stay away, until
// there is nothing left to do.
func work(dir string, holds bool, calls disk.Caller) (code int) {
	folder, records := NewFolder(filepath.Join(dir, "manifests")), NewJournal(filepath.Join(dir, "state"))
	folder.calls, records.file.Calls = calls, calls
	a := New(Options{
		Manifests: folder, Records: records, Log: logr.Discard(), Emit: func(...event.Event) {},
		Self: core.Self{Node: "node-7", BootID: "boot", Dir: folder.path},
	})
	var err error
	if a.journal, err = records.Load(); err != nil {
		return 3
	}
	for range rounds {
		d := core.Decide(snapshotOf(a, holds))
		a.record(d)
		if len(d.Moves) == 0 && d.Journal == nil {
			return 0
		}
		if !a.act(d.Moves) {
			return 4
		}
	}
	return 5
}

func snapshotOf(a *Agent, holds bool) core.Snapshot {
	s := core.Snapshot{
		Now: time.Now(), Self: a.Self, Live: true, KubeletSeen: time.Now(), Folder: a.Manifests.List(), Journal: a.journal,
		Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-7"}},
	}
	if holds {
		s.Node.Annotations = map[string]string{v1alpha1.DrainTargetsAnnotation: `[{"podPriority":0,"podType":"Static"}]`}
	}
	if slices.ContainsFunc(s.Folder.Files, func(f core.File) bool { return f.Name == "proxy.yaml" }) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "proxy-node-7", UID: "uid"}}
		podclass.MakeMirror(pod, "node")
		e := evacuation.New(pod, v1alpha1.NodeMaintenanceInstigator, nil)
		e.Status.ActiveEvacuatorClass = v1alpha1.KubeletEvacuatorClass
		s.Pods, s.Evacuations = []*corev1.Pod{pod}, []*v1alpha1.Evacuation{e}
	}
	return s
}

func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s with %d bytes", entry.Name(), len(data)))
	}
	return all
}

// crash runs an agent that is killed behind its n-th system call; false if it has made less.
func crash(t *testing.T, dir string, holds bool, n int) bool {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), crashDir+"="+dir, fmt.Sprintf("%s=%d", crashAfter, n), fmt.Sprintf("%s=%t", crashHolds, holds))
	out, err := command.CombinedOutput()
	if err == nil {
		return false
	}
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the agent ended with %v\n%s", err, out)
	}
	return true
}

// An agent is killed behind each system call in turn. In every moment there is one manifest
// under one of its two names, and the next agent goes on to the same end.
func TestKilledBehindEachSystemCall(t *testing.T) {
	// A journal takes four calls and a rename two. A hold is written down before and after
	// it, a restore before it, and then the journal is removed.
	for holds, want := range map[bool]int{true: 4 + 2 + 4, false: 4 + 2 + 1} {
		calls := 0
		for killAt(t, holds, calls+1) {
			calls++
		}
		if calls < want {
			t.Errorf("%d system calls were seen, too few to be all of %d", calls, want)
		}
		t.Logf("killed behind each of %d calls", calls)
	}
}

var crashes = flag.Int("crashes", 20, "how many agents TestNothingIsLostInCrashes kills")

// Agents are killed behind any of their system calls, one after the other on the same disk,
// while the Node changes its mind. Between them and in the end the manifest is there once.
func TestNothingIsLostInCrashes(t *testing.T) {
	dir := t.TempDir()
	manifests := filepath.Join(dir, "manifests")
	must(t, os.Mkdir(manifests, 0o755))
	put(t, manifests, "proxy.yaml", manifest)
	size := fmt.Sprintf(" with %d bytes", len(manifest))
	random := rand.New(rand.NewPCG(14, 90))
	runs, held := 0, 0
	for killed := 0; killed < *crashes; runs++ {
		if runs > 10**crashes {
			t.Fatalf("only %d of %d agents were killed", killed, runs)
		}
		if crash(t, dir, random.IntN(2) == 0, 1+random.IntN(8)) {
			killed++
		}
		switch names := strings.Join(files(t, manifests), ", "); names {
		case ".proxy.yaml.ebbtide-held" + size:
			held++
		case "proxy.yaml" + size:
		default:
			t.Fatalf("after %d crashes the folder has %q", killed, names)
		}
	}
	t.Logf("%d of %d agents were killed; the manifest was aside %d times after that", *crashes, runs, held)
	if held == 0 || held == runs {
		t.Errorf("the manifest was aside %d times of %d", held, runs)
	}
	if code := work(dir, false, disk.Kernel{}); code != 0 {
		t.Fatalf("the last agent ends with %d", code)
	}
	if names := strings.Join(files(t, manifests), ", "); names != "proxy.yaml"+size {
		t.Errorf("in the end the folder has %q", names)
	}
}

// killAt kills an agent behind its n-th call, and lets another one go on; it is false if
// there was none to kill any more.
func killAt(t *testing.T, holds bool, n int) (killed bool) {
	t.Helper()
	from, to := "proxy.yaml", ".proxy.yaml.ebbtide-held"
	if !holds {
		from, to = to, from
	}
	dir := t.TempDir()
	manifests := filepath.Join(dir, "manifests")
	must(t, os.Mkdir(manifests, 0o755))
	put(t, manifests, from, manifest)
	killed = crash(t, dir, holds, n)
	size := fmt.Sprintf(" with %d bytes", len(manifest))
	if names := strings.Join(files(t, manifests), ", "); names != from+size && names != to+size {
		t.Fatalf("killed behind call %d, the folder has %s", n, names)
	}
	if code := work(dir, holds, disk.Kernel{}); code != 0 {
		t.Fatalf("after a crash behind call %d the next agent ends with %d", n, code)
	}
	if names := strings.Join(files(t, manifests), ", "); names != to+size {
		t.Errorf("after a crash behind call %d the next agent leaves %s, want %s", n, names, to)
	}
	return killed
}
