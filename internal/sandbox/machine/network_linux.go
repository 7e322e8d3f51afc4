package machine

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

const bridgeName = "ebbtide0"

// InNetwork runs f on a thread that is in the network namespace of a process. Sockets that
// f opens stay there, and so do programs that it starts. f must not leave its goroutine.
func InNetwork(pid int, f func() error) error {
	target, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }()
	runtime.LockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() { _ = own.Close() }()
	if err := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter network: %w", err)
	}
	err = f()
	if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
		// The thread stays locked, so that no other goroutine runs on it.
		return fmt.Errorf("leave network: %w", back)
	}
	// Not a deferred call: the thread must live, because what it has started dies with it.
	runtime.UnlockOSThread()
	return err
}

// ip has the command of that name do several things in the network of a process.
func ip(pid int, lines ...string) error {
	return InNetwork(pid, func() error {
		cmd := exec.Command("ip", "-batch", "-")
		cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
		var output bytes.Buffer
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("ip: %w: %s", err, output.String())
		}
		return nil
	})
}

// wireControl makes the bridge. Services have a route to it, or the control plane has no way
// to webhooks behind one.
func wireControl(pid int, services string) error {
	return ip(
		pid,
		"link set lo up",
		"link add "+bridgeName+" type bridge",
		"addr add "+ControlAddress+"/24 dev "+bridgeName,
		"link set "+bridgeName+" up",
		"route add "+services+" dev "+bridgeName,
	)
}

// wireNode connects the node of a number, one of several, to the bridge.
func wireNode(control, pid, number, nodes int) error {
	// The end of a cable to a machine that is off goes a moment after it, in the background.
	cable := fmt.Sprintf("node%d-%d", number, pid)
	err := ip(
		control,
		fmt.Sprintf("link add %s type veth peer name eth0 netns %d", cable, pid),
		"link set "+cable+" master "+bridgeName,
		"link set "+cable+" up",
		"route replace "+podSubnet(number)+" via "+nodeAddress(number),
	)
	if err != nil {
		return err
	}
	lines := []string{
		"link set lo up",
		"addr add " + nodeAddress(number) + "/24 dev eth0",
		"link set eth0 up",
		"route add default via " + ControlAddress,
	}
	for other := range nodes {
		if other+1 != number {
			lines = append(lines, "route add "+podSubnet(other+1)+" via "+nodeAddress(other+1))
		}
	}
	return ip(pid, lines...)
}
