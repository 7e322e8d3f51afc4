// Package logind plays systemd-logind and systemd for tests, on a D-Bus of their own: the
// daemon is the real one, and so is every message.
package logind

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
)

// policy lets whoever reaches the socket own what systemd owns.
const policy = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path=%s</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="org.freedesktop.login1"/>
    <allow own="org.freedesktop.systemd1"/>
    <allow send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
  </policy>
</busconfig>
`

// Bus is a D-Bus daemon.
type Bus struct {
	// Address is for DBUS_SYSTEM_BUS_ADDRESS.
	Address string
	config  string
	daemon  *exec.Cmd
}

// StartBus starts a daemon with a socket in a folder of its own. It ends with the test.
func StartBus(t *testing.T) *Bus {
	t.Helper()
	// The name of a test may be longer than that of a socket.
	return StartBusIn(t, filepath.Join(os.TempDir(), "bus-"+rand.Text()[:8]))
}

// StartBusIn is StartBus with a folder that is made, such as the /run/dbus of a machine.
func StartBusIn(t *testing.T, folder string) *Bus {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if _, err := exec.LookPath("dbus-daemon"); err != nil {
		t.Fatalf("this test starts a D-Bus daemon: install the package dbus (see test/packages.txt): %v", err)
	}
	socket := filepath.Join(folder, "system_bus_socket")
	b := &Bus{Address: "unix:path=" + socket, config: filepath.Join(folder, "bus.conf")}
	if err := os.WriteFile(b.config, fmt.Appendf(nil, policy, socket), 0o644); err != nil {
		t.Fatal(err)
	}
	b.Start(t)
	t.Cleanup(func() { b.Stop(t) })
	return b
}

// Start starts the daemon again.
func (b *Bus) Start(t *testing.T) {
	t.Helper()
	b.daemon = exec.Command("dbus-daemon", "--config-file="+b.config, "--nofork", "--nopidfile", "--print-address=1")
	b.daemon.Stderr = os.Stderr
	out, err := b.daemon.StdoutPipe()
	if err == nil {
		err = b.daemon.Start()
	}
	if err != nil {
		t.Fatalf("start dbus-daemon: %v", err)
	}
	// It says its address when it listens.
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("dbus-daemon does not listen: %v", err)
	}
}

// Stop ends the daemon.
func (b *Bus) Stop(t *testing.T) {
	t.Helper()
	if b.daemon.ProcessState != nil {
		return
	}
	if err := b.daemon.Process.Kill(); err != nil {
		t.Errorf("end dbus-daemon: %v", err)
	}
	_ = b.daemon.Wait() // It says that it was killed.
}

// connect is a connection of its own.
func (b *Bus) connect(t *testing.T) *dbus.Conn {
	t.Helper()
	conn, err := dbus.Connect(b.Address)
	if err != nil {
		t.Fatalf("connect to the bus: %v", err)
	}
	return conn
}

// setting finds what the drop-in files say of a key; the last one counts.
func setting(folder, key string) (value string) {
	files, _ := filepath.Glob(filepath.Join(folder, "*.conf"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			if found, ok := strings.CutPrefix(strings.TrimSpace(line), key+"="); ok {
				value = found
			}
		}
	}
	return value
}
