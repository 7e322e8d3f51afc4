package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is a running program whose output goes to a file.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how it ended; valid after done
}

// startProcess starts a program that ends when this process does, in the network of the
// control plane. What it leaves in temporary files, which it cannot remove if it is killed,
// goes with the folder.
func (c *Cluster) startProcess(dir, name, path string, args []string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	p.cmd = exec.Command(path, args...)
	p.cmd.Dir = dir
	// It collects garbage as it does in a cluster, whatever is set for whoever starts it.
	p.cmd.Env = append(os.Environ(), "TMPDIR="+dir, "GOGC=")
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = childAttributes()
	if err := c.enter(p.cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// kill ends the process and what it started at once, and waits for its end.
func (p *process) kill() {
	if p.ended() {
		return // its number may belong to somebody else by now
	}
	// An error means that the group is gone already.
	_ = signalGroup(p.cmd.Process.Pid, killSignal)
	<-p.done
}

// stop asks the process to end and kills it when it has not within the time.
func (p *process) stop(within time.Duration) {
	if p.ended() {
		return
	}
	_ = signalGroup(p.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(within):
		p.kill()
	}
}

// ended says whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// tail returns the last n lines of what the process printed.
func (p *process) tail(n int) string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return lastLines(string(data), n)
}

// failure describes a process that did not do what it should.
func (p *process) failure(what string) error {
	if p.ended() {
		what = fmt.Sprintf("ended (%v)", p.err)
	}
	return fmt.Errorf("%s %s; the end of %s:\n%s", p.name, what, p.log, p.tail(30))
}
