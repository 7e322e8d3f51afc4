package node

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/internal/agent/logind"
	fake "ebbtide.dev/ebbtide/test/logind"
	"ebbtide.dev/ebbtide/test/patience"
)

// ears hear what the agent is told of logind.
type ears struct {
	t      *testing.T
	bus    *logind.Bus
	states chan logind.State
	last   logind.State
}

func listen(t *testing.T, bus *logind.Bus) *ears {
	t.Helper()
	e := &ears{t: t, bus: bus, states: make(chan logind.State, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		bus.Watch(ctx, func(state logind.State) { e.states <- state })
	}()
	t.Cleanup(func() { cancel(); <-done })
	return e
}

// hears waits until it is told so.
func (e *ears) hears(what string, so func(logind.State) bool) logind.State {
	e.t.Helper()
	bound, cancel := patience.Context(e.t)
	defer cancel()
	for !so(e.last) {
		select {
		case e.last = <-e.states:
		case <-bound.Done():
			e.t.Fatalf("nobody says that %s; the last that was said is %+v", what, e.last)
		}
	}
	return e.last
}

func (e *ears) inhibit() io.Closer {
	e.t.Helper()
	lock, err := e.bus.Inhibit(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = lock.Close() }) // It may be closed already.
	return lock
}

func answers(s logind.State) bool { return s.Session > 0 && s.Fault == "" }

func TestLongAShutdownWaitsForItsInhibitor(t *testing.T) {
	bus := fake.StartBus(t)
	l := fake.Start(t, bus, fake.Spec{Delay: 30 * time.Second})
	e := listen(t, &logind.Bus{Address: bus.Address})
	if diff := cmp.Diff(logind.State{Session: 1, Delay: 30 * time.Second}, e.hears("logind answers", answers)); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	lock := e.inhibit()
	l.AwaitHeld(t, "ebbtide", 1)
	want := fake.Inhibitor{What: "shutdown", Who: "ebbtide", Why: "Pods are leaving this node", Mode: "delay", PID: uint32(os.Getpid())}
	if diff := cmp.Diff([]fake.Inhibitor{want}, l.Inhibitors()); diff != "" {
		t.Errorf("inhibitors (-want +got):\n%s", diff)
	}

	l.Prepare(t, true, "reboot")
	if got := e.hears("the node shuts down", func(s logind.State) bool { return s.Preparing }); got.Type != "reboot" {
		t.Errorf("heard of a %q, want a reboot", got.Type)
	}
	l.Prepare(t, false, "reboot")
	if got := e.hears("the shutdown is cancelled", func(s logind.State) bool { return !s.Preparing }); got.Type != "" {
		t.Errorf("a cancelled shutdown is a %q", got.Type)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	l.AwaitHeld(t, "ebbtide", 0)
}

func TestLongARebootIsRequestedOfLogind(t *testing.T) {
	bus := fake.StartBus(t)
	l := fake.Start(t, bus, fake.Spec{})
	if err := (&logind.Bus{Address: bus.Address}).Reboot(t.Context()); err != nil || l.Reboots() != 1 {
		t.Errorf("%d reboots: %v, want 1", l.Reboots(), err)
	}
	l.Stop()
	if err := (&logind.Bus{Address: bus.Address}).Reboot(t.Context()); err == nil {
		t.Error("a reboot that nobody does is no error")
	}
}

// Who starts in the middle of a shutdown has missed the signal.
func TestLongAShutdownThatHasBegunIsHeardOf(t *testing.T) {
	bus := fake.StartBus(t)
	l := fake.Start(t, bus, fake.Spec{Old: true})
	l.SetPreparing(true, "")
	got := listen(t, &logind.Bus{Address: bus.Address}).hears("the node shuts down", func(s logind.State) bool { return s.Preparing })
	if diff := cmp.Diff(logind.State{Session: 1, Preparing: true, Delay: 5 * time.Second}, got); diff != "" {
		t.Errorf("of systemd before 255 (-want +got):\n%s", diff)
	}
}

// The bus dies and comes again, with a shutdown that nobody has told of. The inhibitor
// holds meanwhile: it is a pipe to logind, and no message.
func TestLongABusThatIsLostIsDialledAgain(t *testing.T) {
	bus := fake.StartBus(t)
	l := fake.Start(t, bus, fake.Spec{})
	e := listen(t, &logind.Bus{Address: bus.Address})
	e.hears("logind answers", answers)
	old := e.inhibit()
	bus.Stop(t)
	lost := e.hears("the bus is lost", func(s logind.State) bool { return s.Fault != "" })
	if lost.Session != 0 || l.Held("ebbtide") != 1 {
		t.Errorf("%+v, %d inhibitors, want no session and the inhibitor that it has", lost, l.Held("ebbtide"))
	}
	l.Stop()
	bus.Start(t)
	l = fake.Start(t, bus, fake.Spec{})
	l.SetPreparing(true, "poweroff")
	again := e.hears("logind answers again", answers)
	if again.Session < 2 || !again.Preparing || again.Type != "poweroff" {
		t.Errorf("heard %+v, want the shutdown that began meanwhile in another session", again)
	}
	e.inhibit()
	l.AwaitHeld(t, "ebbtide", 1)
	_ = old.Close() // The old logind is gone.
	if l.Held("ebbtide") != 1 {
		t.Error("the new inhibitor went with the old one")
	}
}

func TestLongTheDelayThatIsAskedFor(t *testing.T) {
	for name, test := range map[string]struct {
		delay time.Duration
		// folder is what logind reads, before is in it; empty if it reads elsewhere.
		before, want string
		elsewhere    bool
		signals      int
	}{
		"is more than logind allows": {delay: 2 * time.Minute, want: "2m0s", signals: 1},
		"is what it allows already":  {delay: 5 * time.Second, want: "5s"},
		"is asked for by nobody":     {want: "5s"},
		"is more than the kubelet has asked for": {
			delay: 2 * time.Minute, before: "InhibitDelayMaxSec=30s", want: "2m0s", signals: 1,
		},
		"is not what logind reads": {
			delay: 2 * time.Minute, elsewhere: true, signals: 1,
			want: "5s: logind does not take the delay of 2m0s from DIR/99-z-ebbtide.conf: a file there that sorts after it may say otherwise",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "logind.conf.d")
			spec := fake.Spec{DropIns: dir}
			if test.elsewhere {
				spec.DropIns = ""
			}
			foundSetting(t, dir, test.before)
			said, signals := delayed(t, spec, logind.Bus{Delay: test.delay, DropIns: dir})
			if said != test.want || signals != test.signals {
				t.Errorf("logind allows %s after %d signals, want %s after %d", said, signals, test.want, test.signals)
			}
			if files, _ := filepath.Glob(filepath.Join(dir, ".*")); len(files) > 0 {
				t.Errorf("left behind: %v", files)
			}
		})
	}
}

// foundSetting has the kubelet ask logind for something before.
func foundSetting(t *testing.T, dir, setting string) {
	t.Helper()
	if setting == "" {
		return
	}
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "99-kubelet.conf"), []byte("[Login]\n"+setting+"\n"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// delayed is what logind allows when it was asked, and how often it was told to read that.
func delayed(t *testing.T, spec fake.Spec, asked logind.Bus) (said string, signals int) {
	t.Helper()
	bus := fake.StartBus(t)
	l := fake.Start(t, bus, spec)
	asked.Address = bus.Address
	got := listen(t, &asked).hears("logind answers", answers)
	said = fmt.Sprint(got.Delay)
	if got.DelayFault != "" {
		said += ": " + strings.ReplaceAll(got.DelayFault, asked.DropIns, "DIR")
	}
	return said, len(l.Signals())
}

// What others have among the inhibitors is bounded, and hides nobody.
func TestLongTheInhibitorsOfOthers(t *testing.T) {
	bus := fake.StartBus(t)
	l := fake.Start(t, bus, fake.Spec{})
	e := listen(t, &logind.Bus{Address: bus.Address})
	if e.hears("logind answers", answers).Kubelet {
		t.Error("there is a kubelet before there is one")
	}
	crowd := slices.Repeat([]fake.Inhibitor{{What: "sleep", Who: "somebody", Why: "no reason", Mode: "block"}}, 99_000)
	l.Add(crowd...)
	l.Add(fake.Inhibitor{What: "idle", Who: strings.Repeat("w", 1<<20), Why: strings.Repeat("y", 4<<20), Mode: "block"},
		fake.Inhibitor{What: "sleep", Who: "kubelet", Why: "no shutdown", Mode: "delay"},
		fake.Inhibitor{What: "shutdown", Who: "kubelet", Why: "no delay", Mode: "block"})
	listed, err := e.bus.Inhibitors(t.Context())
	longest := 0
	for _, one := range listed {
		longest = max(longest, len(one.Who), len(one.Why))
	}
	if err != nil || len(listed) != 99_003 || longest > 256 {
		t.Errorf("listed %d with words of up to %d bytes (%v), want 99003 of 256 at the most", len(listed), longest, err)
	}
	l.Add(fake.Inhibitor{What: "sleep:shutdown", Who: "kubelet", Why: "Kubelet needs time to handle node shutdown", Mode: "delay"})
	// Nothing tells of a new inhibitor; a shutdown has them listed.
	l.Prepare(t, true, "reboot")
	if got := e.hears("the node shuts down", func(s logind.State) bool { return s.Preparing }); !got.Kubelet {
		t.Errorf("%+v does not know of the kubelet", got)
	}
}
