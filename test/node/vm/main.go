// Command vm boots a Debian kernel in qemu with cgroup v2 only, runs a program in it, and exits
// as the program does. The file system is the host's, below a layer in memory. It needs
// qemu-system-x86 and a kernel, which the script kernel downloads, but no virtualisation.
//
//	vm [flags] program [arguments]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

var (
	kernel  = flag.String("kernel", "../../.bin/vm/kernel", "folder with the unpacked package of a kernel")
	memory  = flag.Int("memory", 6144, "MiB of memory, which also holds what the machine writes")
	systemd = flag.Bool("systemd", false, "boot systemd, and run the program as one of its services")
)

// job is what the machine runs; it is a file of the initial file system.
type job struct {
	Dir  string
	Args []string
	Env  []string
	// Modules are loaded in this order.
	Modules []string
	Systemd bool
}

func main() {
	if os.Getpid() == 1 {
		boot()
	}
	flag.Parse()
	if flag.Arg(0) == asService {
		serve()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// run boots the machine, and returns the exit code of the program.
func run(ctx context.Context, args []string) (code int, err error) {
	if len(args) == 0 {
		return 0, errors.New("no program; give one and its arguments")
	}
	scratch, err := os.MkdirTemp("", "vm-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	image, err := only(*kernel + "/boot/vmlinuz-*")
	if err != nil {
		return 0, err
	}
	initial, result := filepath.Join(scratch, "initial.cpio"), filepath.Join(scratch, "result")
	if err := writeInitial(initial, args); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(
		ctx, "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
		// One nanosecond for each instruction. With more processors, counting takes minutes.
		"-accel", "tcg", "-cpu", "max", "-smp", "1", "-icount", "shift=0,sleep=on", "-rtc", "clock=vm", "-m", strconv.Itoa(*memory),
		"-serial", "stdio", "-serial", "file:"+result,
		"-kernel", image, "-initrd", initial, "-append", "console=ttyS0 quiet panic=-1 mitigations=off cgroup_no_v1=all",
		"-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
	)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("qemu: %w", err)
	}
	data, err := os.ReadFile(result)
	if err != nil {
		return 0, err
	}
	if code, err = strconv.Atoi(strings.TrimSpace(string(data))); err != nil {
		return 0, fmt.Errorf("the machine ended before its program: %w", err)
	}
	return code, nil
}

// writeInitial writes the initial file system: this program, the modules, and the job.
func writeInitial(file string, args []string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	loaded, err := findModules(*kernel+"/lib/modules", wanted)
	if err != nil {
		return err
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	a := archive{}
	a.add("init", self)
	j := job{Dir: dir, Args: args, Env: os.Environ(), Systemd: *systemd}
	for _, path := range loaded {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		a.add(filepath.Base(path), data)
		j.Modules = append(j.Modules, filepath.Base(path))
	}
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	a.add("job", text)
	return os.WriteFile(file, a.end(), 0o600)
}

// only is the one file of a pattern.
func only(pattern string) (string, error) {
	found, err := filepath.Glob(pattern)
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("there are %d files %s; run make test-node-v2", len(found), pattern)
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}
