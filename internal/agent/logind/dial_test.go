package logind

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A bus is not waited for that takes connections and says nothing.
func TestSilentBusIsAnError(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "b")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	begin := time.Now()
	_, err = (&Bus{Address: "unix:path=" + socket}).Inhibit(t.Context())
	if took := time.Since(begin); err == nil || took < answerTimeout {
		t.Errorf("%v after %s, want an error after %s", err, took, answerTimeout)
	}
}

// Where there is no bus that is said, once, and tried again with growing pauses.
func TestWhereThereIsNoBus(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "nothing"))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var told []State
		New(0).Watch(ctx, func(s State) { told = append(told, s) })
		if len(told) != 1 || told[0].Session != 0 || !strings.HasPrefix(told[0].Fault, "reach D-Bus: ") {
			t.Errorf("told %+v, want once that there is no bus", told)
		}
	})
}

func TestADelayOfHundredYears(t *testing.T) {
	t.Parallel()
	for usec, want := range map[uint64]time.Duration{0: 0, 5_000_000: 5 * time.Second, 1<<64 - 1: 24 * time.Hour} {
		if got := durationOf(usec); got != want {
			t.Errorf("%d µs are %s, want %s", usec, got, want)
		}
	}
}
