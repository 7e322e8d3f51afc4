package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ebbtide.dev/ebbtide/internal/sandbox/machine"
	"ebbtide.dev/ebbtide/test/patience"
)

// holderEnv makes the test binary start a cluster, print its folder and its
// processes, and wait for its end.
const holderEnv = "EBBTIDE_TEST_HOLD_CLUSTER"

func TestMain(m *testing.M) {
	machine.Main(os.Args)
	if os.Getenv(holderEnv) != "" {
		if err := hold(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func hold(ctx context.Context) error {
	binaries, err := Find(BuildSpec{})
	if err != nil {
		return fmt.Errorf("%w: run `make programs`", err)
	}
	c, err := Start(ctx, binaries, Spec{OnlyAPIServer: true})
	if err != nil {
		return err
	}
	fmt.Println(c.Dir)
	for _, p := range c.processes {
		fmt.Println(p.cmd.Process.Pid)
	}
	fmt.Println("holding")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startHolder starts another process that holds a cluster.
func startHolder(t *testing.T) (holder *exec.Cmd, dir string, pids []int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	holder = exec.Command(self)
	holder.Env = append(os.Environ(), holderEnv+"=yes")
	holder.Stderr = os.Stderr
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close() })
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && lines.Text() != "holding" {
		if dir == "" {
			dir = lines.Text()
			continue
		}
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) != 2 {
		t.Fatalf("the holder runs %d processes, want etcd and kube-apiserver", len(pids))
	}
	return holder, dir, pids
}

func TestLongNothingOutlivesAKilledProcess(t *testing.T) {
	holder, dir, pids := startHolder(t)
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	for _, pid := range pids {
		waitEnded(t, pid)
	}
	// Its files are left to the next one who starts a cluster.
	sweep(t.Context())
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder of the killed process: %v, want that it does not exist", err)
	}
}

func waitEnded(t *testing.T, pid int) {
	t.Helper()
	patience.Eventually(t, fmt.Sprintf("process %d to end", pid), func(context.Context) (string, bool) {
		return "it runs", syscall.Kill(pid, 0) != nil || isZombie(pid)
	})
}

// isZombie says whether a process has ended and waits for somebody to notice.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestStopEndsEveryProcessAndRemovesTheFiles(t *testing.T) {
	binaries, err := Find(BuildSpec{})
	if err != nil {
		t.Fatalf("%v: run `make programs`", err)
	}
	c, err := Start(t.Context(), binaries, Spec{Nodes: 1, Audit: AuditWrites})
	if err != nil {
		t.Fatal(err)
	}
	processes := c.processes
	if len(processes) != 5 {
		t.Errorf("%d processes run, want 5", len(processes))
	}
	if audit, err := os.ReadFile(c.AuditLog); err != nil || !strings.Contains(string(audit), `"resource":"nodes"`) {
		t.Errorf("the audit log does not show the creation of the node: %v", err)
	}
	sloppy, err := c.startProcess(c.Dir, "sloppy", "/bin/sh", []string{"-c", "mktemp"})
	if err != nil {
		t.Fatal(err)
	}
	<-sloppy.done
	if left := sloppy.tail(1); !strings.HasPrefix(left, c.Dir) {
		t.Errorf("a program leaves %q, which does not go with %s", left, c.Dir)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	for _, p := range processes {
		if !p.ended() {
			t.Errorf("%s still runs", p.name)
		}
	}
	if _, err := os.Stat(c.Dir); !os.IsNotExist(err) {
		t.Errorf("the folder: %v, want that it does not exist", err)
	}
}

func TestAComponentThatFailsIsShownWithTheEndOfItsLog(t *testing.T) {
	dir := t.TempDir()
	binaries := Binaries{Dir: dir, Version: DefaultVersion}
	script := "#!/bin/sh\necho 'there is no room'\nexit 3\n"
	if err := os.WriteFile(binaries.Path("etcd"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), binaries, Spec{Dir: filepath.Join(dir, "cluster")})
	want := fmt.Sprintf("start control plane: etcd ended (exit status 3); the end of %s:\nthere is no room",
		filepath.Join(dir, "cluster", "etcd.log"))
	if err == nil || err.Error() != want {
		t.Errorf("error is\n%v, want\n%s", err, want)
	}
}

func TestAPortThatIsTakenIsNotTheEnd(t *testing.T) {
	dir := t.TempDir()
	binaries := Binaries{Dir: dir, Version: DefaultVersion}
	script := "#!/bin/sh\necho 'listen tcp: bind: address already in use'\nexit 1\n"
	if err := os.WriteFile(binaries.Path("etcd"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), binaries, Spec{Dir: filepath.Join(dir, "cluster")})
	if err == nil || !strings.HasPrefix(err.Error(), "start control plane: etcd found its port taken five times: ") {
		t.Errorf("error is %v, want that the port was taken five times", err)
	}
}
