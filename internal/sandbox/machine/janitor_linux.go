package machine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// groupPrefix begins the names of racks' cgroups; the number of the process that opened the
// rack follows, and when that began.
const groupPrefix = "ebbtide-"

// janitor is a process that removes the cgroups of a rack when the process that opened the
// rack is gone, however it ended.
type janitor struct {
	cmd  *exec.Cmd
	live io.Closer // what it waits for the end of
}

// startJanitor starts the janitor of a rack whose cgroups are in these folders.
func startJanitor(dirs []string) (*janitor, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = append([]string{janitorName}, dirs...)
	cmd.Dir = "/"
	// What ends this process, such as Ctrl-C in a terminal, must not end it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	live, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start janitor: %w", err)
	}
	return &janitor{cmd, live}, nil
}

// stop has the janitor do its work, and returns when it has.
func (j *janitor) stop() error {
	return errors.Join(j.live.Close(), j.cmd.Wait())
}

// runJanitor is the janitor.
func runJanitor(dirs []string) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := removeTrees(dirs); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func realHost() Host { return Host{OS: runtime.GOOS, UID: os.Geteuid()} }

// opened counts the racks of this process.
var opened atomic.Int64

// ownGroupName returns the name of the cgroups of another rack of this process.
func ownGroupName() (string, error) {
	owner, err := began(os.Getpid())
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s%d-%s-%d", groupPrefix, os.Getpid(), owner, opened.Add(1)), nil
}

// sweep removes the cgroups of racks whose process is gone, and whose janitor was killed too.
// Those in use cannot be removed.
func sweep(all []hierarchy) {
	for _, c := range all {
		dirs, err := filepath.Glob(filepath.Join(c.Own, groupPrefix+"*-*-*"))
		if err != nil {
			continue
		}
		for _, dir := range dirs {
			parts := strings.Split(strings.TrimPrefix(filepath.Base(dir), groupPrefix), "-")
			pid, err := strconv.Atoi(parts[0])
			if err != nil {
				continue
			}
			if now, err := began(pid); err != nil || now != parts[1] {
				_ = removeTree(dir)
			}
		}
	}
}

// began returns the start of a process in ticks since boot.
func began(pid int) (string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The name of the program, in parentheses, may contain anything.
	_, after, _ := strings.Cut(string(data[strings.LastIndex(string(data), ")")+1:]), " ")
	fields := strings.Fields(after)
	if len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	return fields[19], nil
}
