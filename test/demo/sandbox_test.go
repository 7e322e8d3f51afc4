package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/test/prebuilt"
)

// checkout is the program of sandboxes in a checkout, with a sandbox in a folder of its own, which
// is down when the test ends.
type checkout struct {
	program, path, dir string
}

// newCheckout has only these programs in PATH.
func newCheckout(t *testing.T, programs ...string) checkout {
	t.Helper()
	s := checkout{
		program: prebuilt.Path(t, "sandbox"),
		path:    onlyPrograms(t, programs...), dir: filepath.Join(t.TempDir(), "sandbox"),
	}
	t.Cleanup(func() { s.run(t, "down", "--dir", s.dir) })
	return s
}

// result is what the user sees of a run.
type result struct {
	Code        int
	Out, ErrOut string
}

// run runs a verb of the program. It may be called when the test has ended.
func (s checkout) run(t *testing.T, args ...string) result {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), s.program, args...)
	var out, errOut bytes.Buffer
	command.Stdout, command.Stderr, command.Env = &out, &errOut, append(os.Environ(), "PATH="+s.path)
	err := command.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return result{command.ProcessState.ExitCode(), out.String(), errOut.String()}
}

func TestASandboxIsUpUntilItIsTakenDown(t *testing.T) {
	t.Parallel()
	s := newCheckout(t, "go", "kubectl")
	kubeconfig := filepath.Join(s.dir, "admin.kubeconfig")
	down := func() result { return s.run(t, "down", "--dir", s.dir) }

	up := s.run(t, "up", "--dir", s.dir, "--nodes", "2")
	wantUp := fmt.Sprintf(`The sandbox is up. Use it with
  export KUBECONFIG=%s
  kubectl get nodes
and end it with
  go run ./cmd/sandbox down --dir %s
`, kubeconfig, s.dir)
	if diff := cmp.Diff(result{Code: 0, Out: wantUp, ErrOut: up.ErrOut}, up); diff != "" {
		t.Fatalf("up (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"node-1", "node-2"}, nodeNames(t, kubeconfig)); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}

	wantAgain := result{Code: 1, ErrOut: fmt.Sprintf(
		"error: a sandbox is up already: KUBECONFIG=%s; end it with \"go run ./cmd/sandbox down --dir %s\"\n", kubeconfig, s.dir)}
	if diff := cmp.Diff(wantAgain, s.run(t, "up", "--dir", s.dir)); diff != "" {
		t.Errorf("up again (-want +got):\n%s", diff)
	}

	if diff := cmp.Diff(result{Out: "The sandbox is down.\n"}, down()); diff != "" {
		t.Errorf("down (-want +got):\n%s", diff)
	}
	// The keeper ends right after its cluster.
	awaitNoProcess(t, s.dir)
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("the folder: %v, want that it does not exist", err)
	}
	if diff := cmp.Diff(result{Out: "No sandbox is up in " + s.dir + ".\n"}, down()); diff != "" {
		t.Errorf("down again (-want +got):\n%s", diff)
	}
}

func TestANewcomerWithoutKubectlGetsOne(t *testing.T) {
	t.Parallel()
	s := newCheckout(t, "go", "sh")

	up := s.run(t, "up", "--dir", s.dir, "--nodes", "1")
	use, _, found := strings.Cut(strings.TrimPrefix(up.Out, "The sandbox is up. Use it with\n"), "and end it with\n")
	if up.Code != 0 || !found || !strings.Contains(use, "# kubectl, which was not in your PATH, has been built there\n") {
		t.Fatalf("up printed\n%s%swant that it says where kubectl is", up.Out, up.ErrOut)
	}
	shell := exec.CommandContext(t.Context(), filepath.Join(s.path, "sh"), "-euc", use)
	shell.Env = append(os.Environ(), "PATH="+s.path, "KUBECACHEDIR="+t.TempDir())
	nodes, err := shell.CombinedOutput()
	if err != nil || !strings.Contains(string(nodes), "node-1") {
		t.Errorf("the commands that it prints:\n%sfailed: %v, or do not show node-1:\n%s", use, err, nodes)
	}
}

// onlyPrograms is a folder with these programs. One that this machine does not have is
// a file that does nothing.
func onlyPrograms(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
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
	return dir
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
