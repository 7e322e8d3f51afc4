package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/patience"
)

// holderEnv has the test binary start a cluster, print its folder, and wait for its end.
const holderEnv = "EBBTIDE_TEST_HOLD_CLUSTER"

func hold(ctx context.Context) error {
	c, err := startAPI(ctx)
	if err != nil {
		return err
	}
	fmt.Println(c.Dir)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startAPI starts etcd and kube-apiserver.
func startAPI(ctx context.Context) (*sandbox.Cluster, error) {
	binaries, err := sandbox.Find(sandbox.BuildSpec{})
	if err != nil {
		return nil, fmt.Errorf("%w: run `make programs`", err)
	}
	return sandbox.Start(ctx, binaries, sandbox.Spec{OnlyAPIServer: true, Programs: filepath.Join(filepath.Dir(binaries.Dir), "programs")})
}

// startHolder starts another process that holds a cluster in a folder.
func startHolder(t *testing.T) (holder *exec.Cmd, dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	holder = exec.Command(self)
	holder.Env, holder.Stderr = append(os.Environ(), holderEnv+"=yes"), os.Stderr
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
	if !lines.Scan() {
		t.Fatalf("the holder starts no cluster: %v", lines.Err())
	}
	return holder, lines.Text()
}

func TestLongNothingOutlivesAKilledProcess(t *testing.T) {
	t.Parallel()
	holder, dir := startHolder(t)
	if running := processesOf(t, dir); len(running) != 2 {
		t.Errorf("the holder runs\n%s\nwant etcd and kube-apiserver", strings.Join(running, "\n"))
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	awaitNoProcess(t, dir)
	// The next cluster removes the files.
	next, err := startAPI(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder of the killed process: %v, want that it does not exist", err)
	}
}

// awaitNoProcess waits until no process names a folder in its command line.
func awaitNoProcess(t *testing.T, dir string) {
	t.Helper()
	patience.Eventually(t, "no process to be left", func(context.Context) (string, bool) {
		left := processesOf(t, dir)
		return strings.Join(left, "\n"), len(left) == 0
	})
}
