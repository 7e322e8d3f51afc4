package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// newRoot is where the file system of the host is put together.
	newRoot = "/root"
	// asService is the argument of this program as a service of systemd, which has it in /run.
	asService = "as-service"
	service   = "/run/vm"
	temporary = "/run/tmp"
)

// boot is the first process of the machine. It does not return.
func boot() {
	var j job
	data, err := os.ReadFile("/job")
	if err == nil {
		err = json.Unmarshal(data, &j)
	}
	if err == nil {
		err = prepare(j)
	}
	if err == nil && j.Systemd {
		err = bootSystemd(data)
	}
	if err == nil {
		finish(j.run())
	}
	fmt.Println("boot:", err)
	powerOff()
}

func powerOff() {
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {}
}

// finish tells the host how the program has ended, and switches the machine off.
func finish(code int) {
	if err := os.WriteFile("/dev/ttyS1", []byte(strconv.Itoa(code)+"\n"), 0o600); err != nil {
		fmt.Println("report:", err)
	}
	time.Sleep(100 * time.Millisecond)
	powerOff()
}

// point is a file system to mount.
type point struct{ source, target, kind, options string }

// points are the file systems of a machine, in their order.
var points = []point{
	{"host", "/host", "9p", "trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro"},
	{"tmpfs", "/layer", "tmpfs", ""},
	{"overlay", newRoot, "overlay", "lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work"},
	{"proc", newRoot + "/proc", "proc", ""},
	{"sysfs", newRoot + "/sys", "sysfs", ""},
	{"cgroup2", newRoot + "/sys/fs/cgroup", "cgroup2", ""},
	{"devtmpfs", newRoot + "/dev", "devtmpfs", ""},
	{"devpts", newRoot + "/dev/pts", "devpts", ""},
	{"tmpfs", newRoot + "/dev/shm", "tmpfs", ""},
	{"tmpfs", newRoot + "/run", "tmpfs", ""},
	// Snapshots of containers cannot lie on the overlay.
	{"tmpfs", newRoot + temporary, "tmpfs", ""},
}

// prepare mounts what a machine has, and enters it.
func prepare(j job) error {
	for _, name := range j.Modules {
		if err := load("/" + name); err != nil {
			return fmt.Errorf("load %s: %w", name, err)
		}
	}
	for _, p := range points {
		if err := p.mount(); err != nil {
			return fmt.Errorf("mount %s: %w", p.target, err)
		}
	}
	if err := copyFile("/init", newRoot+service); err != nil {
		return err
	}
	if err := enter(); err != nil {
		return err
	}
	return exec.Command("ip", "link", "set", "lo", "up").Run()
}

func (p point) mount() error {
	if p.kind == "overlay" {
		for _, dir := range []string{"/layer/upper", "/layer/work"} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(p.target, 0o755); err != nil {
		return err
	}
	return unix.Mount(p.source, p.target, p.kind, 0, p.options)
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

func load(module string) error {
	f, err := os.Open(module)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return unix.FinitModule(int(f.Fd()), "", 0)
}

// enter makes the new root that of every process. The initial file system cannot be left in
// another way.
func enter() error {
	if err := os.Chdir(newRoot); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return err
	}
	_ = os.Setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	return os.Chdir("/")
}

// run runs the program, reaps what is left to the first process, and returns the exit code.
func (j job) run() int {
	err := os.Chdir(j.Dir)
	program, missing := exec.LookPath(j.Args[0])
	if err = errors.Join(err, missing); err != nil {
		fmt.Println(err)
		return 1
	}
	pid, err := syscall.ForkExec(program, j.Args, &syscall.ProcAttr{
		Dir: j.Dir, Env: append(j.Env, "TMPDIR="+temporary), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		fmt.Printf("start %s in %s: %v\n", program, j.Dir, err)
		return 1
	}
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		if err == nil && ended == pid {
			if status.Signaled() {
				fmt.Println("the program was ended by a signal:", status.Signal())
				return 1
			}
			return status.ExitStatus()
		}
	}
}

const unit = `[Unit]
Description=What the machine is booted for
DefaultDependencies=no
Wants=dbus.service
After=dbus.service
[Service]
Type=oneshot
ExecStart=` + service + ` ` + asService + `
StandardInput=null
StandardOutput=file:/dev/console
StandardError=file:/dev/console
`

// bootSystemd hands the machine over to systemd, which runs this program again.
func bootSystemd(data []byte) error {
	for name, text := range map[string]string{
		"/run/systemd/system/story.service": unit,
		"/run/job":                          string(data),
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	// Most of what a host does at its boot takes minutes here, and tidies up the files of the host.
	masked, err := filepath.Glob("/lib/systemd/system/sysinit.target.wants/*")
	for _, name := range masked {
		err = errors.Join(err, os.Symlink("/dev/null", filepath.Join("/run/systemd/system", filepath.Base(name))))
	}
	if err != nil {
		return err
	}
	return unix.Exec("/lib/systemd/systemd", []string{"/sbin/init", "--unit=story.service", "--log-target=console", "--log-level=warning", "--show-status=0"}, os.Environ())
}

// serve is the service of systemd. It does not return.
func serve() {
	var j job
	data, err := os.ReadFile("/run/job")
	if err == nil {
		err = json.Unmarshal(data, &j)
	}
	if err != nil {
		fmt.Println("serve:", err)
		finish(1)
	}
	finish(j.run())
}
