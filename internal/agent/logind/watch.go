package logind

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

// Watch calls changed with the first state and every other one until the context ends. A shutdown
// that was cancelled or is under way is reported after a reconnect.
func (b *Bus) Watch(ctx context.Context, tell func(State)) {
	last, pause := State{Session: -1}, firstDial
	for session := 1; ctx.Err() == nil; session++ {
		told := func(state State) {
			state.Session = session
			if state.Fault != "" {
				state.Session = 0
			} else {
				pause = firstDial
			}
			if state != last {
				last = state
				tell(state)
			}
		}
		err := b.listen(ctx, told)
		if ctx.Err() != nil {
			return
		}
		told(State{Fault: words(err.Error())})
		wait(ctx, pause)
		pause = min(2*pause, lastDial)
	}
}

func wait(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

var errLost = errors.New("the connection to D-Bus is lost")

// listen reports states until the bus is lost.
func (b *Bus) listen(ctx context.Context, tell func(State)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := b.dial(ctx)
	if err != nil {
		return err
	}
	// Subscribe before reading, so that no change is missed.
	signals := make(chan *dbus.Signal, 64)
	conn.Signal(signals)
	if err := subscribe(ctx, conn); err != nil {
		return err
	}
	delayFault := b.allowDelay(ctx, conn)
	ticker := time.NewTicker(recheck)
	defer ticker.Stop()
	for {
		state, err := read(ctx, conn)
		if err != nil {
			return err
		}
		state.DelayFault = delayFault
		tell(state)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		case signal, open := <-signals:
			if !open {
				return errLost
			}
			if restarted(signal) {
				// A restarted logind has lost our inhibitor and read its settings.
				return errors.New("systemd-logind was started again")
			}
		}
	}
}

func subscribe(ctx context.Context, conn *dbus.Conn) error {
	for _, match := range [][]dbus.MatchOption{
		{dbus.WithMatchObjectPath(path), dbus.WithMatchInterface(manager), dbus.WithMatchSender(service)},
		{dbus.WithMatchObjectPath(path), dbus.WithMatchInterface("org.freedesktop.DBus.Properties"), dbus.WithMatchSender(service)},
		{dbus.WithMatchInterface("org.freedesktop.DBus"), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, service)},
	} {
		bounded, cancel := context.WithTimeout(ctx, answerTimeout)
		err := conn.AddMatchSignalContext(bounded, match...)
		cancel()
		if err != nil {
			return errors.New("listen on D-Bus: " + words(err.Error()))
		}
	}
	return nil
}

func restarted(signal *dbus.Signal) bool {
	return signal.Name == "org.freedesktop.DBus.NameOwnerChanged" && len(signal.Body) == 3 && signal.Body[0] == service
}

// read reads the whole state. The content of signals is not trusted, as it may be outdated.
func read(ctx context.Context, conn *dbus.Conn) (state State, err error) {
	preparing, err := property[bool](ctx, conn, "PreparingForShutdown")
	if err != nil {
		return State{}, err
	}
	delay, err := property[uint64](ctx, conn, "InhibitDelayMaxUSec")
	if err != nil {
		return State{}, err
	}
	listed, err := inhibitors(ctx, conn)
	if err != nil {
		return State{}, err
	}
	state = State{Preparing: preparing, Delay: durationOf(delay), Kubelet: slices.ContainsFunc(listed, ofKubelet)}
	if preparing {
		state.Type = typeOf(ctx, conn)
	}
	return state, nil
}

func durationOf(usec uint64) time.Duration {
	return time.Duration(min(usec, uint64(maxDelay.Microseconds()))) * time.Microsecond
}

// typeOf returns the type of a shutdown under way, which systemd reports since version 255.
func typeOf(ctx context.Context, conn *dbus.Conn) string {
	metadata, err := property[map[string]dbus.Variant](ctx, conn, "PreparingForShutdownWithMetadata")
	if err != nil {
		return ""
	}
	kind, _ := metadata["type"].Value().(string)
	return words(kind)
}

func ofKubelet(one Inhibitor) bool {
	return one.Who == "kubelet" && one.Mode == "delay" && slices.Contains(strings.Split(one.What, ":"), "shutdown")
}

func property[T any](ctx context.Context, conn *dbus.Conn, name string) (value T, err error) {
	var variant dbus.Variant
	asked := call(ctx, conn.Object(service, path), "org.freedesktop.DBus.Properties.Get", manager, name)
	if err := asked.Store(&variant); err != nil {
		return value, errors.New("systemd-logind does not say " + name + ": " + words(err.Error()))
	}
	value, ok := variant.Value().(T)
	if !ok {
		return value, errors.New("systemd-logind says " + name + " in an unknown format: " + words(variant.String()))
	}
	return value, nil
}
