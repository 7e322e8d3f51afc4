package machine

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// unit is a service of systemd whose cgroup is delegated to us. Its process waits for the end of
// a pipe that only this process holds; systemd then ends what is left in the group, and removes it.
type unit struct {
	cmd  *exec.Cmd
	live io.Closer
	// group is the path of its group below the mount.
	group string
}

// startUnit starts a unit of a name.
//
// Errors: what systemd-run says.
func startUnit(name string) (*unit, error) {
	// It prints its group, which shows that it runs, and then waits for the end of its input.
	cmd := exec.Command("systemd-run", "--quiet", "--collect", "--pipe", "--unit="+name, "--description=Real nodes of Ebbtide",
		"--property=Delegate=yes", "--property=TasksMax=infinity",
		"cat", "/proc/self/cgroup", "-")
	// What ends this process, such as Ctrl-C in a terminal, must not end it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	live, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start unit %s: %w", name, err)
	}
	u := &unit{cmd: cmd, live: live}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err == nil {
		err = u.enter(line)
	}
	if err != nil {
		err = errors.Join(err, u.stop())
		return nil, fmt.Errorf("start unit %s: %w: %s", name, err, strings.TrimSpace(stderr.String()))
	}
	return u, nil
}

// enter takes the line of the unit's process, and moves the process to a group below that of the
// unit, which can then hand controllers down.
func (u *unit) enter(line string) error {
	path, found := strings.CutPrefix(strings.TrimSpace(line), "0::/")
	if !found {
		return fmt.Errorf("its process says %q", line)
	}
	u.group = path
	dir := filepath.Join(cgroupRoot, path)
	pids, err := words(dir, "cgroup.procs")
	for _, pid := range pids {
		err = errors.Join(err, moveTo(filepath.Join(dir, processesName), pid))
	}
	return err
}

// stop ends the unit, and returns when systemd has removed it.
func (u *unit) stop() error {
	return errors.Join(u.live.Close(), u.cmd.Wait())
}
