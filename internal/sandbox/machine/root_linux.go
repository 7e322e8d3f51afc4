package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// quiet are settings of the kernel that belong to the whole host. The kubelet finds
// what it would set, and leaves them alone.
var quiet = map[string]string{
	"/proc/sys/vm/overcommit_memory":      "1",
	"/proc/sys/vm/panic_on_oom":           "0",
	"/proc/sys/kernel/panic":              "10",
	"/proc/sys/kernel/panic_on_oops":      "1",
	"/proc/sys/kernel/keys/root_maxkeys":  "1000000",
	"/proc/sys/kernel/keys/root_maxbytes": "25000000",
}

// root makes the root of a machine: the host's below, what it writes in memory above.
type root struct {
	order
}

// enter makes this process, and what it starts, see the machine's root.
func (r root) enter() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	merged, err := r.overlay()
	if err != nil {
		return err
	}
	for _, step := range []func(string) error{r.kernelFiles, r.cgroupFiles, r.disks, r.files, r.bootFiles} {
		if err := step(merged); err != nil {
			return err
		}
	}
	return pivot(merged)
}

func mount(source, target, kind string, flags uintptr, options string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, target, kind, flags, options); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}

func (r root) overlay() (merged string, err error) {
	if err := mount("tmpfs", r.Dir, "tmpfs", 0, "mode=755"); err != nil {
		return "", err
	}
	upper, work := filepath.Join(r.Dir, "upper"), filepath.Join(r.Dir, "work")
	for _, dir := range []string{upper, work} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return "", err
		}
	}
	merged = filepath.Join(r.Dir, "merged")
	return merged, mount("overlay", merged, "overlay", 0, "lowerdir=/,upperdir="+upper+",workdir="+work)
}

// kernelFiles mounts what the kernel shows, and what lives until the power goes off.
func (r root) kernelFiles(merged string) error {
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"proc", "/proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"sysfs", "/sys", "sysfs", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"/dev", "/dev", "", unix.MS_BIND | unix.MS_REC},
		{"tmpfs", "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV},
		{"tmpfs", "/tmp", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV},
	} {
		if err := mount(m.source, filepath.Join(merged, m.target), m.kind, m.flags, ""); err != nil {
			return err
		}
	}
	return nil
}

// cgroupFiles mounts the hierarchies, which begin at the machine's own groups.
func (r root) cgroupFiles(merged string) error {
	if c := r.Cgroups[0]; c.Alone {
		dir := filepath.Join(merged, c.Mount)
		if err := mount("cgroup", dir, "cgroup2", 0, ""); err != nil {
			return err
		}
		return vacate(dir)
	}
	if err := mount("tmpfs", filepath.Join(merged, cgroupRoot), "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	for _, c := range r.Cgroups {
		kind, options := "cgroup2", ""
		if c.Options != "" {
			kind, options = "cgroup", c.Options
		}
		if strings.HasPrefix(options, "name=") {
			options = "none," + options
		}
		if err := mount("cgroup", filepath.Join(merged, c.Mount), kind, 0, options); err != nil {
			return err
		}
	}
	return nil
}

// disks binds what survives a power cut.
func (r root) disks(merged string) error {
	targets := make([]string, 0, len(r.Binds))
	for target := range r.Binds {
		targets = append(targets, target)
	}
	slices.Sort(targets)
	for _, target := range targets {
		if err := mount(r.Binds[target], filepath.Join(merged, target), "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

func (r root) files(merged string) error {
	for name, content := range r.Files {
		path := filepath.Join(merged, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// bootFiles covers what would tell of the host's boot, and what belongs to its kernel.
func (r root) bootFiles(merged string) error {
	covered := map[string]string{"/proc/sys/kernel/random/boot_id": r.BootID, "/etc/machine-id": r.MachineID}
	for name, value := range quiet {
		covered[name] = value
	}
	for name, value := range covered {
		target := filepath.Join(merged, name)
		if _, err := os.Stat(target); err != nil && strings.HasPrefix(name, "/proc/") {
			continue // This kernel has no such setting.
		}
		source := filepath.Join(r.Dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(source, []byte(text(value)), 0o644); err != nil {
			return err
		}
		if err := cover(source, target); err != nil {
			return err
		}
	}
	return nil
}

// cover puts a file in the place of another one, which is made if it is missing.
func cover(source, target string) error {
	if f, err := os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o644); err == nil {
		_ = f.Close()
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}

// pivot makes a folder the root, and lets go of the old one.
func pivot(merged string) error {
	if err := os.Chdir(merged); err != nil {
		return err
	}
	// Both in one place: the old root comes to lie on the new one, and is taken off.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the old root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	// Volumes that the kubelet mounts are to be seen in containers.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share mounts: %w", err)
	}
	return nil
}
