package logind

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"
)

const (
	// dropIns is empty after each boot.
	dropIns = "/run/systemd/logind.conf.d"
	// dropIn is read after the kubelet's 99-kubelet.conf.
	dropIn = "99-z-ebbtide.conf"
	// settle bounds the time that logind needs to read its settings, which it does not report.
	settle, settleStep = 3 * time.Second, 100 * time.Millisecond
)

// allowDelay makes logind allow the requested delay, and returns why it does not.
func (b *Bus) allowDelay(ctx context.Context, conn *dbus.Conn) (fault string) {
	if b.Delay <= 0 || b.allows(ctx, conn) {
		return ""
	}
	folder := b.DropIns
	if folder == "" {
		folder = dropIns
	}
	if err := writeDropIn(folder, b.Delay); err != nil {
		return words(fmt.Sprintf("ask logind for a delay of %s: %v", b.Delay, err))
	}
	systemd := conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
	if err := call(ctx, systemd, "org.freedesktop.systemd1.Manager.KillUnit", "systemd-logind.service", "main", int32(unix.SIGHUP)).Err; err != nil {
		return words(fmt.Sprintf("have logind read its settings: %v", err))
	}
	for begun := time.Now(); time.Since(begun) < settle && ctx.Err() == nil; wait(ctx, settleStep) {
		if b.allows(ctx, conn) {
			return ""
		}
	}
	return fmt.Sprintf("logind does not take the delay of %s from %s: a file there that sorts after it may say otherwise", b.Delay, filepath.Join(folder, dropIn))
}

func (b *Bus) allows(ctx context.Context, conn *dbus.Conn) bool {
	delay, err := property[uint64](ctx, conn, "InhibitDelayMaxUSec")
	return err == nil && durationOf(delay) >= min(b.Delay, maxDelay)
}

// writeDropIn replaces the file atomically, as logind may read at any time.
func writeDropIn(folder string, delay time.Duration) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	unfinished := filepath.Join(folder, "."+dropIn+".new")
	text := fmt.Sprintf("# Written by ebbtide-agent, because of --shutdown-delay.\n[Login]\nInhibitDelayMaxSec=%dus\n", delay.Microseconds())
	if err := os.WriteFile(unfinished, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(unfinished, filepath.Join(folder, dropIn))
}
