package machine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Host is the machine that racks are opened on.
type Host struct {
	// Root is before every path that is looked at; "" for the real host.
	Root string
	// OS and UID describe this process.
	OS  string
	UID int
}

// Linux capabilities, by their numbers in capability.h.
const (
	capNetAdmin = 12
	capSysAdmin = 21
)

// controllers lists the controllers of cgroup v1 that kubelet and runc need; for v2 see
// unifiedControllers.
var controllers = []string{"cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "pids"}

// Check returns nil if real nodes can run here, or an error that lists everything
// that is missing.
func (h Host) Check() error {
	if h.OS != "linux" {
		return fmt.Errorf("real nodes need Linux, this is %s", h.OS)
	}
	missing := slices.Concat(h.rights(), h.programs(), h.kernel(), h.cgroups())
	if len(missing) == 0 {
		return nil
	}
	return errors.New("real nodes cannot run here; what is missing:\n- " + strings.Join(missing, "\n- "))
}

func (h Host) rights() (missing []string) {
	if h.UID != 0 {
		missing = append(missing, fmt.Sprintf("root: this runs as user %d", h.UID))
	}
	held := h.capabilities()
	for _, c := range []struct {
		name string
		bit  uint
	}{{"CAP_NET_ADMIN", capNetAdmin}, {"CAP_SYS_ADMIN", capSysAdmin}} {
		if held&(1<<c.bit) == 0 {
			missing = append(missing, c.name+": a container needs --privileged")
		}
	}
	return missing
}

// capabilities are the effective ones of this process; what cannot be read is missing.
func (h Host) capabilities() uint64 {
	for line := range strings.Lines(h.read("/proc/self/status")) {
		if text, ok := strings.CutPrefix(line, "CapEff:"); ok {
			held, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
			if err == nil {
				return held
			}
		}
	}
	return 0
}

func (h Host) programs() (missing []string) {
	for _, p := range []struct{ name, pkg string }{{"ip", "iproute2"}, {"mount", "mount"}, {"nft", "nftables"}, {"runc", "runc"}} {
		if _, err := exec.LookPath(p.name); err != nil {
			missing = append(missing, fmt.Sprintf("%s: install the package %s", p.name, p.pkg))
		}
	}
	return missing
}

func (h Host) kernel() (missing []string) {
	if !slices.Contains(strings.Fields(h.read("/proc/filesystems")), "overlay") {
		missing = append(missing, "overlay file systems: modprobe overlay")
	}
	for _, namespace := range []string{"cgroup", "ipc", "mnt", "net", "pid", "uts"} {
		if _, err := os.Lstat(h.path("/proc/self/ns/" + namespace)); err != nil {
			missing = append(missing, namespace+" namespaces: the kernel has none")
		}
	}
	// Without it, answers of pods to pods of the same node bypass the Service they were asked by.
	if _, err := os.Stat(h.path("/proc/sys/net/bridge/bridge-nf-call-iptables")); err != nil {
		missing = append(missing, "netfilter on bridges: modprobe br_netfilter")
	}
	return missing
}

func (h Host) cgroups() (missing []string) {
	found, err := h.hierarchies()
	if err != nil {
		return []string{"cgroups: " + err.Error()}
	}
	for _, c := range found {
		if c.readOnly {
			missing = append(missing, "cgroups: "+c.Mount+" is mounted read-only; a container needs --privileged")
		}
	}
	if found[0].Alone {
		return append(missing, h.unified(found[0])...)
	}
	for _, controller := range controllers {
		if !slices.ContainsFunc(found, func(c hierarchy) bool { return slices.Contains(c.controllers(), controller) }) {
			missing = append(missing, "cgroup controller "+controller+": it is not mounted under /sys/fs/cgroup")
		}
	}
	return missing
}

func (h Host) path(name string) string { return filepath.Join(h.Root, name) }

// read returns a file, or nothing if it cannot be read.
func (h Host) read(name string) string {
	data, _ := os.ReadFile(h.path(name))
	return string(bytes.TrimSpace(data))
}
