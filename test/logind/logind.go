package logind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"
	"golang.org/x/sys/unix"

	"ebbtide.dev/ebbtide/test/patience"
)

const (
	path    = dbus.ObjectPath("/org/freedesktop/login1")
	manager = "org.freedesktop.login1.Manager"
)

// Inhibitor is one as logind lists it.
type Inhibitor struct {
	What, Who, Why, Mode string
	UID, PID             uint32
}

// Spec is what kind of logind is played.
type Spec struct {
	// Delay is InhibitDelayMaxSec without drop-in files. Defaults to 5 s, as in systemd.
	Delay time.Duration
	// DropIns is the folder of drop-in files that are read on SIGHUP.
	DropIns string
	// Old leaves out what systemd has from version 255 on.
	Old bool
	// Deaf is a logind that never says who its inhibitors are.
	Deaf bool
}

// Logind plays systemd-logind, and of systemd what sends signals to units.
type Logind struct {
	t    *testing.T
	spec Spec
	conn *dbus.Conn
	prop *prop.Properties
	// gone is closed when it stops.
	gone chan struct{}
	once sync.Once

	mu         sync.Mutex
	inhibitors map[*os.File]Inhibitor
	extra      []Inhibitor
	signals    []int32
	reboots    int
	wait       sync.WaitGroup
}

// Start has logind answer on a bus. It ends with the test.
func Start(t *testing.T, bus *Bus, spec Spec) *Logind {
	t.Helper()
	if spec.Delay == 0 {
		spec.Delay = 5 * time.Second
	}
	l := &Logind{t: t, spec: spec, inhibitors: map[*os.File]Inhibitor{}, gone: make(chan struct{})}
	l.conn = bus.connect(t)
	properties := map[string]*prop.Prop{
		"PreparingForShutdown": {Value: false, Emit: prop.EmitFalse},
		"InhibitDelayMaxUSec":  {Value: l.delay(), Emit: prop.EmitFalse},
	}
	if !spec.Old {
		properties["PreparingForShutdownWithMetadata"] = &prop.Prop{Value: map[string]dbus.Variant{}, Emit: prop.EmitFalse}
	}
	var err error
	if l.prop, err = prop.Export(l.conn, path, prop.Map{manager: properties}); err != nil {
		t.Fatal(err)
	}
	for where, object := range map[dbus.ObjectPath]any{path: (*calls)(l), "/org/freedesktop/systemd1": (*units)(l)} {
		if err := l.conn.Export(object, where, map[dbus.ObjectPath]string{
			path: manager, "/org/freedesktop/systemd1": "org.freedesktop.systemd1.Manager",
		}[where]); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"org.freedesktop.login1", "org.freedesktop.systemd1"} {
		if reply, err := l.conn.RequestName(name, dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
			t.Fatalf("own %s: %v %v", name, reply, err)
		}
	}
	t.Cleanup(l.Stop)
	return l
}

// Stop has logind leave the bus. Its inhibitors are forgotten.
func (l *Logind) Stop() {
	l.once.Do(func() { close(l.gone) })
	_ = l.conn.Close() // It may have been closed with its bus.
	l.mu.Lock()
	for reader := range l.inhibitors {
		_ = reader.Close()
	}
	l.mu.Unlock()
	l.wait.Wait()
}

func (l *Logind) delay() uint64 {
	if asked := setting(l.spec.DropIns, "InhibitDelayMaxSec"); l.spec.DropIns != "" && asked != "" {
		if delay, err := time.ParseDuration(asked); err == nil {
			return uint64(delay.Microseconds())
		}
	}
	return uint64(l.spec.Delay.Microseconds())
}

// calls are the methods of logind.
type calls Logind

// Inhibit hands out one end of a pipe: whoever closes it has released the inhibitor.
func (c *calls) Inhibit(sender dbus.Sender, what, who, why, mode string) (dbus.UnixFD, *dbus.Error) {
	l := (*Logind)(c)
	var pair [2]int
	if err := unix.Pipe2(pair[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	reader := os.NewFile(uintptr(pair[0]), "inhibitor of "+string(sender))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inhibitors[reader] = Inhibitor{What: what, Who: who, Why: why, Mode: mode, PID: uint32(os.Getpid())}
	l.wait.Go(func() { l.release(reader) })
	// By then its copy has been sent: until then nobody can be seen to release it.
	time.AfterFunc(time.Second, func() { _ = unix.Close(pair[1]) })
	return dbus.UnixFD(pair[1]), nil
}

// release waits until nobody has the other end any more.
func (l *Logind) release(reader *os.File) {
	_, err := reader.Read(make([]byte, 1))
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, io.EOF) {
		_ = reader.Close()
	}
	delete(l.inhibitors, reader)
}

// Reboot counts.
func (c *calls) Reboot(bool) *dbus.Error {
	l := (*Logind)(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reboots++
	return nil
}

// Reboots returns how many reboots were requested.
func (l *Logind) Reboots() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reboots
}

// ListInhibitors lists them, in no order.
func (c *calls) ListInhibitors() ([]Inhibitor, *dbus.Error) {
	if c.spec.Deaf {
		<-c.gone
	}
	return (*Logind)(c).Inhibitors(), nil
}

// Inhibitors are those that are held.
func (l *Logind) Inhibitors() []Inhibitor {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.extra)
	for _, one := range l.inhibitors {
		all = append(all, one)
	}
	return all
}

// Add has logind list inhibitors that nobody holds.
func (l *Logind) Add(inhibitors ...Inhibitor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.extra = append(l.extra, inhibitors...)
}

// Held is how many inhibitors somebody of a name holds.
func (l *Logind) Held(who string) (held int) {
	for _, one := range l.Inhibitors() {
		if one.Who == who && one.What == "shutdown" && one.Mode == "delay" {
			held++
		}
	}
	return held
}

// AwaitHeld waits until somebody holds so many inhibitors.
func (l *Logind) AwaitHeld(t *testing.T, who string, want int) {
	t.Helper()
	patience.Eventually(t, fmt.Sprintf("%d inhibitors of %s", want, who), func(context.Context) (string, bool) {
		return fmt.Sprint(l.Inhibitors()), l.Held(who) == want
	})
}

// Prepare begins a shutdown, which waits for its inhibitors; or cancels it.
func (l *Logind) Prepare(t *testing.T, begin bool, kind string) {
	t.Helper()
	l.SetPreparing(begin, kind)
	if err := l.conn.Emit(path, manager+".PrepareForShutdown", begin); err != nil {
		t.Fatal(err)
	}
	if l.spec.Old {
		return
	}
	if err := l.conn.Emit(path, manager+".PrepareForShutdownWithMetadata", begin, metadata(kind)); err != nil {
		t.Fatal(err)
	}
}

// SetPreparing is Prepare without a signal.
func (l *Logind) SetPreparing(begin bool, kind string) {
	l.prop.SetMust(manager, "PreparingForShutdown", begin)
	if !l.spec.Old {
		l.prop.SetMust(manager, "PreparingForShutdownWithMetadata", metadata(kind))
	}
}

func metadata(kind string) map[string]dbus.Variant {
	return map[string]dbus.Variant{"type": dbus.MakeVariant(kind)}
}

// units are the methods of systemd.
type units Logind

// KillUnit has logind read its settings when it is sent SIGHUP.
func (u *units) KillUnit(unit, _ string, signal int32) *dbus.Error {
	l := (*Logind)(u)
	l.mu.Lock()
	defer l.mu.Unlock()
	if unit != "systemd-logind.service" {
		return dbus.MakeFailedError(errors.New("Unit " + unit + " not loaded."))
	}
	l.signals = append(l.signals, signal)
	if signal == int32(unix.SIGHUP) {
		l.prop.SetMust(manager, "InhibitDelayMaxUSec", l.delay())
	}
	return nil
}

// Signals are those that logind was sent.
func (l *Logind) Signals() []int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.signals)
}
