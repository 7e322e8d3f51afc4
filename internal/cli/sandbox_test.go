//go:build unix

package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// runUntilSignal is what main does.
func runUntilSignal(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return Run(ctx, args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
}

func TestASandboxIsUpUntilItIsTakenDown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sandbox")
	kubeconfig := filepath.Join(dir, "admin.kubeconfig")
	down := func() result { return run(context.Background(), "sandbox", "down", "--dir", dir) }
	t.Cleanup(func() { down() })
	usePrograms(t, "go", "kubectl")

	up := run(t.Context(), "sandbox", "up", "--dir", dir, "--nodes", "2")
	wantUp := fmt.Sprintf(`The sandbox is up. Use it with
  export KUBECONFIG=%s
  kubectl get nodes
and end it with
  %s sandbox down --dir %s
`, kubeconfig, commandName(), dir)
	if diff := cmp.Diff(result{Code: 0, Out: wantUp, ErrOut: up.ErrOut}, up); diff != "" {
		t.Fatalf("up (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"node-1", "node-2"}, nodeNames(t, kubeconfig)); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}

	wantAgain := result{Code: 1, ErrOut: fmt.Sprintf(
		"error: a sandbox is up already: KUBECONFIG=%s; end it with \"%s sandbox down --dir %s\"\n", kubeconfig, commandName(), dir)}
	if diff := cmp.Diff(wantAgain, run(t.Context(), "sandbox", "up", "--dir", dir)); diff != "" {
		t.Errorf("up again (-want +got):\n%s", diff)
	}

	if diff := cmp.Diff(result{Out: "The sandbox is down.\n"}, down()); diff != "" {
		t.Errorf("down (-want +got):\n%s", diff)
	}
	wantNoProcess(t, dir)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder: %v, want that it does not exist", err)
	}
	if diff := cmp.Diff(result{Out: "No sandbox is up in " + dir + ".\n"}, down()); diff != "" {
		t.Errorf("down again (-want +got):\n%s", diff)
	}
}

func TestANewcomerWithoutKubectlGetsOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sandbox")
	t.Cleanup(func() { run(context.Background(), "sandbox", "down", "--dir", dir) })
	usePrograms(t, "go", "sh")

	up := run(t.Context(), "sandbox", "up", "--dir", dir, "--nodes", "1")
	use, _, found := strings.Cut(strings.TrimPrefix(up.Out, "The sandbox is up. Use it with\n"), "and end it with\n")
	if up.Code != 0 || !found || !strings.Contains(use, "# kubectl, which was not in your PATH, has been built there\n") {
		t.Fatalf("up printed\n%s%swant that it says where kubectl is", up.Out, up.ErrOut)
	}
	shell := exec.CommandContext(t.Context(), "sh", "-euc", use)
	shell.Env = append(os.Environ(), "KUBECACHEDIR="+t.TempDir())
	nodes, err := shell.CombinedOutput()
	if err != nil || !strings.Contains(string(nodes), "node-1") {
		t.Errorf("the commands that it prints:\n%sfailed: %v, or do not show node-1:\n%s", use, err, nodes)
	}
}

// usePrograms leaves only these programs in PATH. One that this machine does not have is
// a file that does nothing.
func usePrograms(t *testing.T, names ...string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			path = filepath.Join(dir, "."+name)
			if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

func nodeNames(t *testing.T, kubeconfig string) []string {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	nodes := &corev1.NodeList{}
	if err := c.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, node := range nodes.Items {
		names = append(names, node.Name)
	}
	return names
}

// wantNoProcess waits for the keeper, which ends right after its cluster.
func wantNoProcess(t *testing.T, dir string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left := processesOf(t, dir)
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("processes that are left:\n%s", strings.Join(left, "\n"))
		}
	}
}

// processesOf lists the processes whose command line names a folder.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		// A process that ends in between has no command line.
		data, _ := os.ReadFile(file)
		if line := strings.ReplaceAll(string(data), "\x00", " "); strings.Contains(line, dir) {
			found = append(found, line)
		}
	}
	return found
}
