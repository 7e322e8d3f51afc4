package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Files that an init inherits: it reads its order, and reports that its programs run, or
// why they do not.
const (
	orderFD  = 3
	reportFD = 4
	running  = "running"
	// appearWithin bounds how long a program waits for the file that it needs.
	appearWithin = 2 * time.Minute
	// restartAfter is the pause before a program that has ended is started again.
	restartAfter = time.Second
)

// runInit is the first process of a machine.
func runInit() {
	// Namespaces and mounts belong to one thread; what it starts inherits them.
	runtime.LockOSThread()
	unix.CloseOnExec(orderFD)
	unix.CloseOnExec(reportFD)
	report := os.NewFile(reportFD, "report")
	i, err := bootMachine(os.NewFile(orderFD, "order"))
	if err != nil {
		_, _ = io.WriteString(report, err.Error())
		os.Exit(1)
	}
	_, _ = io.WriteString(report, running)
	_ = report.Close()
	i.supervise()
}

// initProcess keeps the programs of a machine running.
type initProcess struct {
	order
	running map[int]program // by process ID
}

func bootMachine(input *os.File) (*initProcess, error) {
	i := &initProcess{running: map[int]program{}}
	if err := json.NewDecoder(input).Decode(&i.order); err != nil {
		return nil, fmt.Errorf("read order: %w", err)
	}
	_ = input.Close()
	// From here on the group that we were put into is the root of all cgroups.
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return nil, fmt.Errorf("unshare cgroups: %w", err)
	}
	if err := unix.Sethostname([]byte(i.Hostname)); err != nil {
		return nil, fmt.Errorf("set host name: %w", err)
	}
	if err := (root{order: i.order}).enter(); err != nil {
		return nil, err
	}
	for name, value := range i.Settings {
		if err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o644); err != nil {
			return nil, fmt.Errorf("set %s: %w", name, err)
		}
	}
	for _, p := range i.Programs {
		if err := i.appear(p.After); err != nil {
			return nil, fmt.Errorf("start %s: %w", p.Name, err)
		}
		if err := i.start(p); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// appear waits for a file, as long as the programs that were started run.
func (i *initProcess) appear(path string) error {
	if path == "" {
		return nil
	}
	for end := time.Now().Add(appearWithin); ; time.Sleep(10 * time.Millisecond) {
		_, err := os.Stat(path)
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("what it needs did not appear within %s: %w", appearWithin, err)
		}
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if p, ours := i.running[pid]; err == nil && ours {
			return fmt.Errorf("%s ended with status %d", p.Name, status.ExitStatus())
		}
	}
}

// start starts a program, whose output goes to a file of its name.
func (i *initProcess) start(p program) error {
	log, err := os.OpenFile(filepath.Join(logDir, p.Name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	defer func() { _ = log.Close() }()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	defer func() { _ = null.Close() }()
	pid, err := syscall.ForkExec(p.Args[0], p.Args, &syscall.ProcAttr{
		Dir:   "/",
		Env:   []string{"HOME=/root", "PATH=" + programDir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("start %s: %s: %w", p.Name, p.Args[0], err)
	}
	i.running[pid] = p
	return nil
}

// supervise reaps every process that ends, and starts programs again that do.
func (i *initProcess) supervise() {
	for {
		pid, err := syscall.Wait4(-1, nil, 0, nil)
		if errors.Is(err, syscall.ECHILD) {
			// A machine without programs is there for its namespaces.
			_ = unix.Pause()
		}
		p, ours := i.running[pid]
		if !ours {
			continue
		}
		delete(i.running, pid)
		time.Sleep(restartAfter)
		if err := i.start(p); err != nil {
			// The host has this in init.log.
			fmt.Fprintln(os.Stderr, "the power goes off:", err)
			os.Exit(1)
		}
	}
}

// text is a file with a line.
func text(line string) string { return strings.TrimSpace(line) + "\n" }
