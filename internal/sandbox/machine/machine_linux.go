package machine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// machine is one process tree, while the power is on.
type machine struct {
	name   string
	dir    string // of the host: its disk and its logs
	group  group
	order  func() order
	wire   func(pid int) error // connects it to the network
	bootMu sync.Mutex          // serializes on and off

	mu    sync.Mutex
	init  *exec.Cmd
	ended chan struct{} // closed when init has ended
}

// on boots the machine. It returns when its programs run; an error leaves it off.
func (m *machine) on(ctx context.Context) error {
	m.bootMu.Lock()
	defer m.bootMu.Unlock()
	if m.pid() != 0 {
		return fmt.Errorf("machine %s is on already", m.name)
	}
	// Folders that are left make the kubelet slow: cadvisor looks long at each.
	if err := m.group.remove(); err != nil {
		return fmt.Errorf("boot %s: %w", m.name, err)
	}
	if err := m.boot(ctx); err != nil {
		return fmt.Errorf("boot %s: %w", m.name, errors.Join(err, m.cut()))
	}
	return nil
}

func (m *machine) boot(ctx context.Context) error {
	ours, theirs, err := pipes()
	if err != nil {
		return err
	}
	defer closeAll(ours)
	err = m.startInit(theirs)
	closeAll(theirs)
	if err != nil {
		return err
	}
	if err := m.prepare(m.pid()); err != nil {
		return err
	}
	if err := json.NewEncoder(ours[0]).Encode(m.order()); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = ours[1].SetReadDeadline(time.Now()) })
	defer stop()
	answer, err := io.ReadAll(ours[1])
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case string(answer) != running:
		return fmt.Errorf("its init: %s; see %s, and the logs in %s", cmp.Or(string(answer), "ended without a word"),
			filepath.Join(m.dir, "init.log"), filepath.Join(m.dir, "disk", disk[logDir]))
	}
	return nil
}

// pipes are two, by which an init gets its order and reports.
func pipes() (ours, theirs [2]*os.File, err error) {
	if theirs[0], ours[0], err = os.Pipe(); err != nil {
		return ours, theirs, err
	}
	if ours[1], theirs[1], err = os.Pipe(); err != nil {
		closeAll([2]*os.File{theirs[0], ours[0]})
	}
	return ours, theirs, err
}

func closeAll(files [2]*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

func (m *machine) startInit(files [2]*os.File) error {
	log, err := os.OpenFile(filepath.Join(m.dir, "init.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{initName}
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = files[:]
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Pdeathsig:  syscall.SIGKILL,
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC,
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start init: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // Nobody asks how: its report says why, or it was killed.
		close(ended)
	}()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.init, m.ended = cmd, ended
	return nil
}

// prepare gives an init, which waits for its order, its cgroup and its network.
func (m *machine) prepare(pid int) error {
	if err := m.group.make(); err != nil {
		return err
	}
	if err := m.group.take(pid); err != nil {
		return err
	}
	return m.wire(pid)
}

// pid is the number of the init, or 0 while the power is off.
func (m *machine) pid() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.init == nil {
		return 0
	}
	select {
	case <-m.ended:
		return 0
	default:
		return m.init.Process.Pid
	}
}

// off cuts the power, and returns when nothing of the machine is left but its disk.
func (m *machine) off() error {
	m.bootMu.Lock()
	defer m.bootMu.Unlock()
	return m.cut()
}

func (m *machine) cut() error {
	m.mu.Lock()
	init, ended := m.init, m.ended
	m.mu.Unlock()
	if init != nil {
		_ = init.Process.Kill() // An error means that it has ended.
		// The kernel ends an init last of all its processes.
		<-ended
	}
	return m.group.remove()
}

// enter runs f on a thread that is in the machine's network.
func (m *machine) enter(f func() error) error {
	pid := m.pid()
	if pid == 0 {
		return fmt.Errorf("machine %s is off", m.name)
	}
	return InNetwork(pid, f)
}

// path is a file of the machine, seen from the host.
func (m *machine) path(name string) string {
	return filepath.Join("/proc", strconv.Itoa(m.pid()), "root", name)
}
