//go:build linux

package shutdown

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/agent/logind"
	"ebbtide.dev/ebbtide/internal/core/event"
)

// machine is a node with a systemd-logind that says what a test has it say, and an agent
// that has seen what a test has it see.
type machine struct {
	t    *testing.T
	loop *Loop
	dir  string
	node *corev1.Node
	// told lists the events in their order.
	told []string
	// refuses explains why logind gives no inhibitor; taken counts those that it gave.
	refuses error
	taken   int
	// says provides the states for Watch.
	says chan logind.State
}

func newMachine(t *testing.T, edit ...func(*Options)) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir(), node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, says: make(chan logind.State, 10)}
	o := Options{
		Wish: v1alpha1.ShutdownModeDrain, BootID: "boot", Logind: m, Log: logr.Discard(),
		StateDir: filepath.Join(m.dir, "state"), ScheduleDir: filepath.Join(m.dir, "systemd", "shutdown"),
		Emit: func(events ...event.Event) {
			for _, e := range events {
				m.tell("%s", e.Reason)
			}
		},
	}
	for _, change := range edit {
		change(&o)
	}
	m.loop = New(o)
	m.loop.load()
	return m
}

func (m *machine) tell(format string, args ...any) {
	m.told = append(m.told, fmt.Sprintf(format, args...))
}

func (m *machine) NodeAndPods() (*corev1.Node, []*corev1.Pod) { return m.node, nil }

// Tell does nothing: a test asks.
func (m *machine) ReportSoon() {}

func (m *machine) Watch(ctx context.Context, tell func(logind.State)) {
	for {
		select {
		case <-ctx.Done():
			return
		case state := <-m.says:
			tell(state)
		}
	}
}

func (m *machine) Inhibit(context.Context) (io.Closer, error) {
	if m.refuses != nil {
		m.tell("refused")
		return nil, m.refuses
	}
	m.taken++
	m.tell("taken %d, entry %s", m.taken, m.entry())
	return inhibitor{m, m.taken}, nil
}

type inhibitor struct {
	m  *machine
	id int
}

func (i inhibitor) Close() error {
	i.m.tell("closed %d, entry %s", i.id, i.m.entry())
	return nil
}

func (m *machine) entry() string {
	text, err := os.ReadFile(m.loop.entries.Path())
	if err != nil {
		return "none"
	}
	for _, phase := range []v1alpha1.NodeShutdownPhase{
		v1alpha1.ShutdownScheduled, v1alpha1.ShutdownPreparing, v1alpha1.ShutdownReleased, v1alpha1.ShutdownCancelled,
	} {
		if strings.Contains(string(text), `"phase":"`+string(phase)+`"`) {
			return string(phase)
		}
	}
	return string(text)
}

func (m *machine) hears(state logind.State) string {
	m.loop.hear(state)
	return m.looks()
}

func (m *machine) looks() string {
	m.told = nil
	m.loop.pass(m.t.Context(), m)
	d, known := m.loop.Decided()
	if !known {
		return "nothing is known"
	}
	status := v1alpha1.NodeAgentStatus{}
	d.SetStatus(&status, time.Now())
	return fmt.Sprintf("%s; %s %s", strings.Join(m.told, ", "), status.Shutdown.Phase, status.Conditions[0].Reason)
}

func (m *machine) want(got, want string) {
	m.t.Helper()
	if got != want {
		m.t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
}

func (m *machine) drained() {
	m.node.Status.Conditions = append(m.node.Status.Conditions, corev1.NodeCondition{
		Type: v1alpha1.NodeDrained, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonNodeMaintenance,
	})
}

func idle(session int) logind.State { return logind.State{Session: session, Delay: time.Minute} }

func preparing(session int) logind.State {
	return logind.State{Session: session, Delay: time.Minute, Preparing: true, Type: "reboot"}
}

func TestActsAreRecordedBefore(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.want(m.looks(), "nothing is known")
	m.want(m.hears(idle(1)), "taken 1, entry none; None ShutdownWaits")
	m.want(m.hears(preparing(1)), "NodeShutdownDetected; Preparing ShutdownWaits")
	m.want(m.entry(), "Preparing")
	m.drained()
	m.want(m.looks(), "closed 1, entry Released, NodeShutdownReleased; Released ShutdownWaits")
	m.want(m.looks(), "; Released ShutdownWaits")
	m.want(m.hears(idle(1)), "taken 2, entry Cancelled, NodeShutdownCancelled; Cancelled ShutdownWaits")
}

func TestAnotherLogindGetsAnotherInhibitorFirst(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.hears(idle(1))
	m.want(m.hears(idle(2)), "taken 2, entry none, closed 1, entry none; None ShutdownWaits")
	m.want(m.hears(logind.State{Fault: "reach D-Bus: gone"}), "; None NoLogind")
	m.want(m.hears(idle(2)), "; None ShutdownWaits")
	m.hears(preparing(2))
	// While it shuts down a new one would be refused, and the one that is held counts.
	m.want(m.hears(preparing(3)), "; Preparing ShutdownWaits")
	m.want(m.hears(logind.State{Fault: "reach D-Bus: gone"}), "; Preparing NoLogind")
	m.drained()
	m.want(m.looks(), "closed 2, entry Released, NodeShutdownReleased; Released NoLogind")
}

func TestAnInhibitorThatIsRefusedIsAskedForAgainWhenSomethingIsNew(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.refuses = errors.New("take an inhibitor: denied")
	m.want(m.hears(idle(1)), "refused; None InhibitorRefused")
	m.want(m.looks(), "; None InhibitorRefused")
	m.refuses = errors.New("take an inhibitor: still denied")
	m.want(m.hears(idle(2)), "refused; None InhibitorRefused")
	m.refuses = nil
	m.loop.inhibition.tried = time.Now().Add(-relist)
	m.want(m.looks(), "taken 1, entry none; None ShutdownWaits")
	m.refuses = errors.New("take an inhibitor: denied")
	m.want(m.hears(idle(3)), "refused; None InhibitorRefused")
	// The one of before is not closed: it may still count.
	if m.loop.inhibition.lock == nil {
		t.Error("the inhibitor that was held is gone")
	}
}

// A node shuts down whether its disk can be written or not.
func TestADiskThatCannotBeWrittenHoldsNothingUp(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	if err := os.WriteFile(m.loop.StateDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m.hears(idle(1))
	m.want(m.hears(preparing(1)), "NodeShutdownDetected; Preparing ShutdownWaits")
	m.drained()
	m.want(m.looks(), "closed 1, entry none, NodeShutdownReleased; Released ShutdownWaits")
	if err := os.Remove(m.loop.StateDir); err != nil {
		t.Fatal(err)
	}
	m.looks()
	m.want(m.entry(), "Released")
}

// An agent that was killed while the node shut down goes on with what is written down.
func TestAnEntryOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	before := newMachine(t)
	before.hears(idle(1))
	before.hears(preparing(1))
	m := newMachine(t, func(o *Options) { o.StateDir = before.loop.StateDir })
	m.refuses = errors.New("the machine shuts down already")
	m.want(m.hears(preparing(1)), "refused, NodeShutdownReleased; Released InhibitorRefused")
	other := newMachine(t, func(o *Options) { o.StateDir, o.BootID = before.loop.StateDir, "the next boot" })
	other.want(other.hears(idle(1)), "taken 1, entry none; None ShutdownWaits")
}

func TestAnEntryThatMakesNoSenseIsKeptAside(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	if err := os.WriteFile(filepath.Join(state, "shutdown.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, func(o *Options) { o.StateDir = state })
	m.want(m.hears(idle(1)), "taken 1, entry none; None ShutdownWaits")
	if kept, err := os.ReadFile(filepath.Join(state, "shutdown.json.bad")); err != nil || string(kept) != "{" {
		t.Errorf("what could not be read is %q, %v", kept, err)
	}
}

func TestShutdownsAreLeftAlone(t *testing.T) {
	t.Parallel()
	before := newMachine(t)
	before.hears(idle(1))
	before.hears(preparing(1))
	m := newMachine(t, func(o *Options) { o.StateDir, o.Wish = before.loop.StateDir, v1alpha1.ShutdownModeOff })
	m.want(m.looks(), "; None SwitchedOff")
	m.want(m.entry(), "none")
}

// schedule writes the file as systemd does: all at once.
func (m *machine) schedule(text string) {
	m.t.Helper()
	dir := m.loop.ScheduleDir
	unfinished := filepath.Join(m.dir, "unfinished")
	err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(unfinished, []byte(text), 0o644), os.Rename(unfinished, filepath.Join(dir, "scheduled")))
	if err != nil {
		m.t.Fatal(err)
	}
}

func TestAScheduleThatCannotBeReadChangesNothing(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.hears(idle(1))
	m.schedule("nonsense")
	m.want(m.looks(), "; None ShutdownWaits")
	m.schedule("USEC=4070908800000000\nMODE=reboot\n")
	m.want(m.looks(), "NodeShutdownDetected; Scheduled ShutdownWaits")
	m.schedule("nonsense")
	m.want(m.looks(), "; Scheduled ShutdownWaits")
	// An agent that starts now knows no more.
	other := newMachine(t, func(o *Options) { o.StateDir, o.ScheduleDir = m.loop.StateDir, m.loop.ScheduleDir })
	other.want(other.hears(idle(1)), "taken 1, entry Scheduled; Scheduled ShutdownWaits")
	if err := os.Remove(m.loop.schedule.Path()); err != nil {
		t.Fatal(err)
	}
	m.want(m.looks(), "NodeShutdownCancelled; Cancelled ShutdownWaits")
}

// The kernel tells of a schedule long before the loop would look by itself, also if the
// folder of it is made only then.
func TestKernelShowsAScheduledShutdown(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	if err := os.MkdirAll(filepath.Dir(m.loop.ScheduleDir), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.loop.Run(ctx, m)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	m.says <- idle(1)
	for _, step := range []struct {
		does  func()
		phase v1alpha1.NodeShutdownPhase
	}{
		{func() {}, v1alpha1.ShutdownNone},
		{func() { m.schedule("USEC=4070908800000000\nMODE=reboot\n") }, v1alpha1.ShutdownScheduled},
		{func() { _ = os.Remove(m.loop.schedule.Path()) }, v1alpha1.ShutdownCancelled},
		{func() { m.says <- preparing(1) }, v1alpha1.ShutdownPreparing},
	} {
		step.does()
		err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, relist/2, true, func(context.Context) (bool, error) {
			d, known := m.loop.Decided()
			return known && d.Status.Phase == step.phase, nil
		})
		if err != nil {
			t.Fatalf("nobody says %s: %v", step.phase, err)
		}
	}
	cancel()
	<-ended
	if m.loop.inhibition.lock != nil {
		t.Error("a loop that has ended holds the shutdown up")
	}
}
