package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Background is a cluster that outlives the command which starts it. A process
// of its own, the keeper, starts it and ends it; the keeper's lock on the
// folder says whether the cluster is up.
type Background struct {
	// Dir holds its files.
	Dir string
}

const (
	pidFile = "pid"
	// reportFD is the keeper's end of the pipe by which it reports its start.
	reportFD = 3
	started  = "started"
	// stopWithin bounds how long a keeper may take to end its cluster.
	stopWithin = 2 * time.Minute
)

// ErrUp means that a cluster is up in a folder already.
var ErrUp = errors.New("a sandbox is up already")

// BackgroundIn returns the cluster of a folder, by default .bin/cluster of the checkout.
//
// Errors: there is no checkout.
func BackgroundIn(dir string) (Background, error) {
	if dir == "" {
		root, err := checkout()
		return Background{Dir: filepath.Join(root, ".bin", "cluster")}, err
	}
	dir, err := filepath.Abs(dir)
	return Background{Dir: dir}, err
}

// Up says whether a cluster is up.
func (b Background) Up() bool {
	lock := filepath.Join(b.Dir, workDirLock)
	if _, err := os.Stat(lock); err != nil {
		return false
	}
	unlock, err := tryLock(lock)
	if err == nil {
		unlock()
	}
	return errors.Is(err, errLocked)
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (b Background) Kubeconfig() string { return filepath.Join(b.Dir, "admin.kubeconfig") }

// LogFile is the path of the keeper's log.
func (b Background) LogFile() string { return filepath.Join(b.Dir, "sandbox.log") }

// Start runs the keeper, which is this program with other arguments, and
// returns when the keeper says that the cluster is up, or why it is not.
func (b Background) Start(ctx context.Context, keeperArgs ...string) error {
	if b.Up() {
		return ErrUp
	}
	if err := b.makeDir(); err != nil {
		return err
	}
	log, err := os.Create(b.LogFile())
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	report, keeperReport, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = report.Close() }()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	keeper := exec.Command(self, keeperArgs...)
	keeper.Stdout, keeper.Stderr = log, log
	keeper.ExtraFiles = []*os.File{keeperReport}
	// A session of its own: the terminal's Ctrl-C and end do not reach it.
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = keeper.Start()
	_ = keeperReport.Close()
	if err != nil {
		return fmt.Errorf("start sandbox: %w", err)
	}
	if err := writeFile(filepath.Join(b.Dir, pidFile), []byte(strconv.Itoa(keeper.Process.Pid))); err != nil {
		return errors.Join(fmt.Errorf("start sandbox: %w", err), keeper.Process.Kill())
	}
	return b.awaitReport(ctx, keeper, report)
}

// Check refuses a folder that holds anything else than a sandbox, because Stop
// will remove it.
func (b Background) Check() error {
	entries, err := os.ReadDir(b.Dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(b.LogFile()); err != nil {
		return fmt.Errorf("%s holds other files; choose an empty folder", b.Dir)
	}
	return nil
}

// makeDir makes the folder, without what a sandbox that was killed left there.
func (b Background) makeDir() error {
	if err := b.Check(); err != nil {
		return err
	}
	if err := os.RemoveAll(b.Dir); err != nil {
		return err
	}
	return os.MkdirAll(b.Dir, 0o700)
}

func (b Background) awaitReport(ctx context.Context, keeper *exec.Cmd, report *os.File) error {
	// A user who gives up does not want the cluster either.
	stop := context.AfterFunc(ctx, func() { _ = keeper.Process.Signal(syscall.SIGTERM) })
	defer stop()
	text, err := io.ReadAll(report)
	if err != nil {
		return fmt.Errorf("start sandbox: %w", err)
	}
	if string(text) == started {
		return keeper.Process.Release()
	}
	_ = keeper.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(text) == 0 {
		log, _ := os.ReadFile(b.LogFile())
		text = []byte(lastLines(string(log), 20))
	}
	return errors.New(strings.TrimSpace(string(text)))
}

// Keep runs the keeper: it starts the cluster, reports to the waiting command, and ends the cluster
// on request or when one of its processes ends.
func (b Background) Keep(ctx context.Context, start func(context.Context) (*Cluster, error)) error {
	// The processes of the cluster must not hold the pipe open.
	syscall.CloseOnExec(reportFD)
	report := os.NewFile(reportFD, "report")
	defer func() { _ = report.Close() }()
	c, err := start(ctx)
	if err != nil {
		_, _ = io.WriteString(report, err.Error())
		if c != nil {
			err = errors.Join(err, c.Stop())
		}
		return err
	}
	stopPower, err := b.servePower(ctx, c)
	if err != nil {
		_, _ = io.WriteString(report, err.Error())
		return errors.Join(err, c.Stop())
	}
	if _, err := io.WriteString(report, started); err != nil {
		return errors.Join(err, stopPower(), c.Stop())
	}
	_ = report.Close()
	return errors.Join(c.Wait(ctx), stopPower(), c.Stop())
}

// Stop ends the cluster and removes its files. It returns false when there is
// none.
func (b Background) Stop(ctx context.Context) (bool, error) {
	lock := filepath.Join(b.Dir, workDirLock)
	if _, err := os.Stat(lock); err != nil {
		return false, nil
	}
	up := b.Up()
	if up {
		if err := b.stopKeeper(ctx, lock); err != nil {
			return false, fmt.Errorf("stop sandbox: %w", err)
		}
	}
	return up, os.RemoveAll(b.Dir)
}

func (b Background) stopKeeper(ctx context.Context, lock string) error {
	text, err := os.ReadFile(filepath.Join(b.Dir, pidFile))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return fmt.Errorf("read %s: %w", pidFile, err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("end process %d: %w", pid, err)
	}
	bounded, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	unlock, err := waitLock(bounded, lock, func() {})
	if err == nil {
		unlock()
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("process %d has not ended within %s", pid, stopWithin)
}
