package node

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/sandbox/machine"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

// holderEnv has the test binary hold a rack in a folder, until its input ends.
const holderEnv = "EBBTIDE_TEST_HOLD_RACK"

// holdRack is another process: it boots a node, says so, and never closes the rack.
func holdRack(dir string) {
	machine.Main(os.Args)
	if err := bootRack(context.Background(), dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("holding")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func bootRack(ctx context.Context, dir string) error {
	binaries, err := prebuilt.ControlPlane(sandbox.BuildSpec{Nodes: true})
	if err != nil {
		return err
	}
	rack, err := machine.Open(ctx, machine.Spec{Dir: dir, Programs: binaries.Dir, Nodes: []string{"node-1"}, Services: "10.0.0.0/16"})
	if err != nil {
		return err
	}
	// There is no API server: the kubelet tries again and again.
	return rack.BootNodes(ctx, func(string) (machine.Credentials, error) { return machine.Credentials{}, nil })
}

// trace is what machines could leave in the host, as sorted lines.
func trace(t *testing.T, dir string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for what, pattern := range map[string]string{
		"processes": "/proc/[0-9]*/cmdline", "mounts": "/proc/self/mountinfo", "networks": "/sys/class/net/*",
		"cgroups": "/sys/fs/cgroup/*/ebbtide-*", "cgroups of v2": "/sys/fs/cgroup/ebbtide-*", "kernel settings": "/proc/sys/vm/overcommit_memory",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found[what] = []string{}
		for _, file := range files {
			data, _ := os.ReadFile(file) // A process that has ended has none.
			text := strings.ReplaceAll(string(data), "\x00", " ")
			switch {
			case what == "processes" && !ofRack(file, text, dir):
			case what == "networks" || strings.HasPrefix(what, "cgroups"):
				found[what] = append(found[what], file)
			default:
				found[what] = append(found[what], text)
			}
		}
		slices.Sort(found[what])
	}
	return found
}

// ofRack returns true if a process belongs to a rack in a folder: by its name, or because
// its root is there.
func ofRack(file, text, dir string) bool {
	mounts, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "mountinfo"))
	return strings.Contains(text, dir) || strings.HasPrefix(text, "ebbtide-janitor") || bytes.Contains(mounts, []byte(dir))
}

// A process that is killed takes its machines with it: no process, mount, network or cgroup
// is left, and the host never had any of them but processes and cgroups.
func TestLongNothingOutlivesAKilledProcess(t *testing.T) {
	dir := t.TempDir()
	before := trace(t, dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	holder := exec.Command(self)
	holder.Env = append(os.Environ(), holderEnv+"="+dir)
	output, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	input, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = input.Close() })
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 4096)
	n, err := output.Read(said)
	if !strings.HasPrefix(string(said[:n]), "holding") {
		t.Fatalf("the holder says %q, %v", said[:n], err)
	}
	during := trace(t, dir)
	for _, what := range []string{"mounts", "networks", "kernel settings"} {
		if diff := cmp.Diff(before[what], during[what]); diff != "" {
			t.Errorf("%s of the host with a node (-want +got):\n%s", what, diff)
		}
	}
	if got := strings.Join(during["processes"], "\n"); !strings.Contains(got, "/kubelet ") || !strings.Contains(got, "/containerd ") {
		t.Errorf("there are processes\n%s\nwant a kubelet and a containerd", got)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	patience.Eventually(t, "everything to be gone", func(context.Context) (string, bool) {
		diff := cmp.Diff(before, trace(t, dir))
		return diff, diff == ""
	})
}

// Who has a sandbox with real nodes switches them by commands, and leaves nothing behind.
func TestLongTheCommandsOfASandboxWithRealNodes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sandbox")
	before := trace(t, dir)
	program := prebuilt.Path(t, "sandbox")
	run := func(args ...string) string {
		t.Helper()
		out, _ := exec.Command(program, append(args, "--dir", dir)...).CombinedOutput()
		return string(out)
	}
	t.Cleanup(func() { run("down") })

	begin := time.Now()
	if got := run("up", "--real-nodes", "1"); !strings.Contains(got, "The sandbox is up.") {
		t.Fatalf("up says\n%s", got)
	}
	t.Logf("a sandbox with a real node and the manager was up after %s", time.Since(begin).Round(time.Millisecond))
	for _, step := range []struct{ args, want string }{
		{"node off node-1", "Node node-1 is off.\n"},
		{"node on node-1", "Node node-1 is on.\n"},
		{"node on node-1", "error: machine node-1 is on already\n"},
		{"node off node-2", "error: there is no real node \"node-2\"; choose one of node-1\n"},
		{"down", "The sandbox is down.\n"},
		{"node off node-1", "error: no sandbox is up in " + dir + "\n"},
	} {
		if diff := cmp.Diff(step.want, run(strings.Fields(step.args)...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.args, diff)
		}
	}
	patience.Eventually(t, "everything to be gone", func(context.Context) (string, bool) {
		diff := cmp.Diff(before, trace(t, dir))
		return diff, diff == ""
	})
}

// rackName is the cgroup, or the unit of systemd, in which the machines of a rack have theirs.
var rackName = regexp.MustCompile(`/ebbtide-\d+-\d+-\d+(\.service)?/`)

// rackOf returns the cgroup of the rack of a node that is on. The clusters of a process have
// nodes of the same names.
func rackOf(t *testing.T, c *cluster.Cluster, node string) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", kubelet(t, c, node)))
	if err != nil {
		t.Fatal(err)
	}
	name := rackName.FindString(string(data))
	if name == "" {
		t.Fatalf("the kubelet of %s is in cgroups\n%s\nwant those of a rack", node, data)
	}
	return name
}

// groupsOf are the cgroups of a node of a rack, with how many processes each has.
func groupsOf(t *testing.T, rack, node string) map[string]int {
	t.Helper()
	found := map[string]int{}
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.Contains(path, rack) && strings.Contains(path, "/"+node) {
			data, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			found[path] = bytes.Count(data, []byte("\n"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
