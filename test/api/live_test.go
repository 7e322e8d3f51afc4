package api

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/internal/cli"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// screen is a terminal on which kubectl ebbtide watch runs, and what it has written there.
type screen struct {
	t        *testing.T
	keyboard *os.File
	code     chan int
	said     *strings.Builder

	mu      sync.Mutex
	written strings.Builder
}

// onScreen runs the plugin on a pseudo terminal.
func onScreen(t *testing.T, c *cluster.Cluster, args ...string) *screen {
	t.Helper()
	t.Setenv("TERM", "xterm-256color")
	keyboard, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = keyboard.Close(), tty.Close() })
	s := &screen{t: t, keyboard: keyboard, code: make(chan int, 1), said: &strings.Builder{}}
	s.resize(100, 20)
	go func() {
		for buffer := make([]byte, 4096); ; {
			n, err := keyboard.Read(buffer)
			s.mu.Lock()
			s.written.Write(buffer[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() {
		s.code <- cli.Run(t.Context(), append([]string{"watch", "--kubeconfig", c.Kubeconfig}, args...), genericiooptions.IOStreams{In: tty, Out: tty, ErrOut: s.said})
	}()
	return s
}

// resize makes it so large, and forgets what was on it: it is painted anew.
func (s *screen) resize(columns, rows uint16) {
	s.t.Helper()
	if err := pty.Setsize(s.keyboard, &pty.Winsize{Cols: columns, Rows: rows}); err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	s.written.Reset()
	s.mu.Unlock()
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		s.t.Fatal(err)
	}
}

// shows wants these texts on it.
func (s *screen) shows(want ...string) {
	s.t.Helper()
	for _, text := range want {
		patience.Eventually(s.t, fmt.Sprintf("the screen to show %q", text), func(context.Context) (string, bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			written := ansi.Strip(s.written.String())
			return written, strings.Contains(written, text)
		})
	}
}

func (s *screen) types(keys string) {
	s.t.Helper()
	if _, err := s.keyboard.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// ends wants the exit code, and returns what was said besides.
func (s *screen) ends(code int) string {
	s.t.Helper()
	if got := patience.Receive(s.t, "the end of the command", s.code); got != code {
		s.t.Errorf("exit code %d, want %d: %s", got, code, s.said)
	}
	return s.said.String()
}

func TestADrainIsWatchedOnATerminal(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	name := c.Pool() + "-kernel"
	d := newDraining(t, c, name)
	d.becomes("Blocked", "PDBExhausted", has("node-1", 3, webIsUsedUp()), has("node-2", 0))
	s := onScreen(t, c, name)
	s.shows("1 NodeMaintenance, 1/2 nodes drained, 3 pods left, 1 blocked", "node-1", "PDBExhausted PodDisruptionBudget/shop/web")
	s.types("\r")
	s.shows("1 pod blocked by PodDisruptionBudget/shop/web")
	s.resize(60, 12)
	s.shows("Why nodemaintenance/"+name[:20], "pods and has 2 currently. What helps: Wait.", "esc: back")
	s.types("\x1b")
	s.shows("PROGRESS")
	s.types("q")
	if said := s.ends(2); !strings.Contains(said, "The drain continues in the background. Watch it with\n  ") || !strings.Contains(said, " watch "+name) {
		t.Errorf("it says %q", said)
	}
	// What was there before is there again, and below it how far things are.
	s.shows(name + ": stage Drain, blocked, 1 of 2 nodes drained, 3 pods left, 1 blocked")
}

func TestThePictureEndsWithTheDrain(t *testing.T) {
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	name := c.Pool() + "-kernel"
	d := newDraining(t, c, name)
	d.becomes("", "", has("node-1", 3))
	s := onScreen(t, c)
	s.shows(name, "node-1")
	d.becomes("Drained", "Drained", has("node-1", 0))
	if said := s.ends(0); said != "" {
		t.Errorf("it says %q", said)
	}
	s.shows(name + ": stage Drain, drained, 1 of 1 node drained")
}
