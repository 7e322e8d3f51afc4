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

	// systemAddress is where the bus is unless DBUS_SYSTEM_BUS_ADDRESS says otherwise. It is
	// below /run, which is what a container mounts as a folder.
	systemAddress = "unix:path=/run/dbus/system_bus_socket"

	// answerTimeout bounds every call, and everything that is said before the first one.
	answerTimeout = 5 * time.Second
	// firstDial and lastDial bound the pause before a lost bus is dialled again.
	firstDial, lastDial = time.Second, 30 * time.Second
	// recheck is how often the inhibitors are listed: logind has no signal for them.
	recheck = time.Minute

	// maxInhibitors is how many inhibitors are looked at. logind takes 8,192 by default.
	maxInhibitors = 100_000
	// maxWords is how much is kept of what others have written.
	maxWords = 256
	// maxDelay is what a delay is taken for that is longer: a day.
	maxDelay = 24 * time.Hour
)

// Who and Why are how the inhibitor of the agent is listed.
const (
	Who = "ebbtide"
	Why = "Pods are leaving this node"
)

// State is what logind says.
type State struct {
	// Session counts the connections, from 1. An inhibitor of an earlier one is to be taken
	// anew, since logind may have been another one then.
	Session int
	// Fault is why nothing is known of logind; empty if it answers.
	Fault string
	// Preparing is true while the machine shuts down, or waits for inhibitors to do so.
	Preparing bool
	// Type is what comes of it in logind's words, such as reboot; empty if it does not say.
	Type string
	// Delay is how long inhibitors may hold a shutdown up.
	Delay time.Duration
	// DelayFault is why logind does not allow the delay that was asked for; empty if it does.
	DelayFault string
	// Kubelet is true if the kubelet has an inhibitor too: it then stops all pods itself.
	Kubelet bool
}

// Inhibitor is somebody who holds up, or forbids, what What says.
type Inhibitor struct{ What, Who, Why, Mode string }

// Bus is the way to logind.
type Bus struct {
	// Address is that of the bus. Defaults to DBUS_SYSTEM_BUS_ADDRESS, or the usual one.
	Address string
	// Delay is what logind is to allow at least; 0 leaves it as it is.
	Delay time.Duration
	// DropIns is the folder for a file that says so. Defaults to /run/systemd/logind.conf.d,
	// which is empty after a boot.
	DropIns string
}

// New returns the way to logind on this machine.
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

// dial connects. The connection ends with the context.
func (b *Bus) dial(ctx context.Context) (*dbus.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	// Whoever takes connections and never says anything is left.
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

// call asks for an answer and waits for it for a while.
func call(ctx context.Context, object dbus.BusObject, method string, args ...any) *dbus.Call {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return object.CallWithContext(ctx, method, 0, args...)
}

// Inhibit takes a delay inhibitor for shutdowns, which holds until it is closed, whatever
// becomes of the bus.
//
// Errors: nobody answers, or logind refuses.
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

// Inhibitors lists who holds up or forbids something, at most 100,000 of them.
//
// Errors: nobody answers.
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
