// Package logind talks to systemd-logind over D-Bus: it reads shutdowns and delays one with an
// inhibitor for as long as logind allows. It knows nothing about pods. After a lost connection
// it reads the state again, because a signal may be missing. A logind that is absent or too slow
// is a State with a Fault.
package logind

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/godbus/dbus/v5"

	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

const (
	service = "org.freedesktop.login1"
	path    = dbus.ObjectPath("/org/freedesktop/login1")
	manager = "org.freedesktop.login1.Manager"

	// systemAddress is below /run, which containers can mount as a folder.
	systemAddress = "unix:path=/run/dbus/system_bus_socket"

	// answerTimeout bounds every call and the handshake.
	answerTimeout       = 5 * time.Second
	firstDial, lastDial = time.Second, 30 * time.Second
	// recheck is the interval of listing the inhibitors: logind sends no signal for them.
	recheck = time.Minute

	// maxInhibitors is far over the default limit of logind, 8,192.
	maxInhibitors = 100_000
	// maxWords limits foreign text.
	maxWords = 256
	// maxDelay caps the reported delay.
	maxDelay = 24 * time.Hour
)

// Who and Why describe the inhibitor of the agent.
const (
	Who = "ebbtide"
	Why = "Pods are leaving this node"
)

// State is the state of logind.
type State struct {
	// Session counts connections from 1. An inhibitor of an earlier one must be taken again, since
	// logind may have restarted.
	Session int
	// Fault explains why the state is unknown.
	Fault string
	// Preparing is true while the machine shuts down or waits for inhibitors.
	Preparing bool
	// Type is the type as logind names it, such as reboot; empty if unknown.
	Type string
	// Delay bounds the time by which inhibitors delay a shutdown.
	Delay time.Duration
	// DelayFault explains why logind does not allow the requested delay.
	DelayFault string
	// Kubelet is true if the kubelet has an inhibitor too: it then stops all pods itself.
	Kubelet bool
}

// Inhibitor is an inhibitor as logind lists it.
type Inhibitor struct{ What, Who, Why, Mode string }

// Bus connects to logind.
type Bus struct {
	// Address defaults to DBUS_SYSTEM_BUS_ADDRESS or the usual address.
	Address string
	// Delay is the least delay that logind should allow; 0 leaves it unchanged.
	Delay time.Duration
	// DropIns is the folder for the setting. Defaults to /run/systemd/logind.conf.d, which is empty
	// after a boot.
	DropIns string
}

// New returns a connection to logind on this machine.
func New(delay time.Duration) *Bus { return &Bus{Delay: delay} }

func (b *Bus) address() string {
	switch {
	case b.Address != "":
		return b.Address
	case os.Getenv("DBUS_SYSTEM_BUS_ADDRESS") != "":
		return os.Getenv("DBUS_SYSTEM_BUS_ADDRESS")
	}
	return systemAddress
}

// dial connects until the context ends.
func (b *Bus) dial(ctx context.Context) (*dbus.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	// A peer that never responds is given up.
	patience := time.AfterFunc(answerTimeout, cancel)
	conn, err := dbus.Dial(b.address(), dbus.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, fmt.Errorf("reach D-Bus: %w", err)
	}
	err = conn.Auth(nil)
	if err == nil {
		err = conn.Hello()
	}
	if late := !patience.Stop(); late && err == nil {
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("speak to D-Bus: %w", err)
	}
	context.AfterFunc(conn.Context(), cancel)
	return conn, nil
}

func call(ctx context.Context, object dbus.BusObject, method string, args ...any) *dbus.Call {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return object.CallWithContext(ctx, method, 0, args...)
}

// Inhibit takes a delay inhibitor for shutdowns, which holds until it is closed, even if the bus is
// lost. It fails if logind does not respond or refuses.
func (b *Bus) Inhibit(ctx context.Context) (io.Closer, error) {
	conn, err := b.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	var fd dbus.UnixFD
	if err := call(ctx, conn.Object(service, path), manager+".Inhibit", "shutdown", Who, Why, "delay").Store(&fd); err != nil {
		return nil, fmt.Errorf("take an inhibitor: %s", words(err.Error()))
	}
	return os.NewFile(uintptr(fd), "inhibitor"), nil
}

// Reboot reboots the machine, as systemctl reboot does. It fails if logind does not respond or
// refuses.
func (b *Bus) Reboot(ctx context.Context) error {
	conn, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := call(ctx, conn.Object(service, path), manager+".Reboot", false).Err; err != nil {
		return fmt.Errorf("reboot: %s", words(err.Error()))
	}
	return nil
}

// Inhibitors lists at most 100,000 inhibitors. It fails if logind does not respond.
func (b *Bus) Inhibitors(ctx context.Context) ([]Inhibitor, error) {
	conn, err := b.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return inhibitors(ctx, conn)
}

func inhibitors(ctx context.Context, conn *dbus.Conn) ([]Inhibitor, error) {
	var listed []struct {
		What, Who, Why, Mode string
		UID, PID             uint32
	}
	if err := call(ctx, conn.Object(service, path), manager+".ListInhibitors").Store(&listed); err != nil {
		return nil, fmt.Errorf("list the inhibitors: %s", words(err.Error()))
	}
	all := make([]Inhibitor, 0, min(len(listed), maxInhibitors))
	for _, one := range listed[:min(len(listed), maxInhibitors)] {
		all = append(all, Inhibitor{What: words(one.What), Who: words(one.Who), Why: words(one.Why), Mode: words(one.Mode)})
	}
	return all, nil
}

func words(text string) string { return excerpt.Of(text, maxWords) }
