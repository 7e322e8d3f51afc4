package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// With cgroup v2 alone, a group hands controllers down to groups below it only while it has no
// processes of its own; the root of the hierarchy is exempt. The group of a rack is therefore
// made in an ancestor of our own group that has none, or in a unit that systemd delegates to us,
// and the processes of a machine are in a group below that of the machine.

// unifiedControllers lists the controllers of cgroup v2 that kubelet and runc need, and the ones
// that they use where they exist. Devices and the freezer are no controllers there.
var (
	unifiedControllers  = []string{"cpu", "cpuset", "memory", "pids"}
	optionalControllers = []string{"hugetlb", "io"}
)

const (
	// processesName is the group of the processes of a machine, below that of the machine.
	processesName = "init"
	// machinesName is the group of the machines of a rack in a unit of systemd.
	machinesName = "machines"
)

// managed reports that systemd manages the hierarchy. Groups are then made in units only.
func (h Host) managed() bool {
	info, err := os.Stat(h.path("/run/systemd/system"))
	return err == nil && info.IsDir()
}

// unified returns what prevents a rack on a host with cgroup v2 alone.
func (h Host) unified(c hierarchy) (missing []string) {
	dir := h.path(c.Mount)
	if h.managed() {
		if _, err := exec.LookPath("systemd-run"); err != nil {
			missing = append(missing, "systemd-run: install the package systemd")
		}
		if _, err := os.Stat(h.path("/run/dbus/system_bus_socket")); err != nil {
			missing = append(missing, "the system bus, by which systemd is asked for cgroups: install the package dbus and start dbus.socket")
		}
	} else {
		lender, err := h.lender(c)
		if err != nil {
			return []string{"cgroup v2: " + err.Error()}
		}
		dir = lender
	}
	for _, controller := range h.absent(dir) {
		missing = append(missing, fmt.Sprintf("cgroup controller %s: %s/cgroup.controllers does not list it", controller, h.shown(dir)))
	}
	return missing
}

// absent returns the controllers that a group lacks.
func (h Host) absent(dir string) []string {
	available := strings.Fields(h.read(h.shown(dir) + "/cgroup.controllers"))
	return slices.DeleteFunc(slices.Clone(unifiedControllers), func(controller string) bool {
		return slices.Contains(available, controller)
	})
}

// lender returns the folder of the group in which the groups of racks are made: the nearest one
// at or above our own that can hand down all controllers. If each lacks some, it returns the
// highest one.
//
// Errors: no group can hand controllers down; our own belongs to a systemd of another host.
func (h Host) lender(c hierarchy) (string, error) {
	if own := h.shown(c.Own); ofSystemd(own) {
		return "", fmt.Errorf("group %s belongs to a systemd that does not run here. "+
			"Start the container with a cgroup namespace of its own: --cgroupns=private", own)
	}
	top := h.path(c.Mount)
	lender, err := "", error(nil)
	for dir := c.Own; ; dir = filepath.Dir(dir) {
		free, unfit := h.handsDown(dir, top)
		if free || unfit != nil {
			lender, err = dir, unfit
		}
		if free && len(h.absent(dir)) == 0 || dir == top {
			break
		}
	}
	if lender == "" {
		return "", errors.New("each group from that of this process upwards has processes, so none can hand controllers down. " +
			"In a container, move them: mkdir -p /sys/fs/cgroup/init; " +
			"for p in $(cat /sys/fs/cgroup/cgroup.procs); do echo $p >/sys/fs/cgroup/init/cgroup.procs; done")
	}
	return lender, err
}

// handsDown reports whether a group can hand controllers down.
//
// Errors: it has no processes, but cannot be used for another reason.
func (h Host) handsDown(dir, top string) (bool, error) {
	// Only the root of a hierarchy has no type. It may have processes, too.
	kind, err := os.ReadFile(filepath.Join(dir, "cgroup.type"))
	if errors.Is(err, fs.ErrNotExist) && dir == top {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("group %s: %w", h.shown(dir), err)
	}
	if text := strings.TrimSpace(string(kind)); text != "domain" {
		return false, fmt.Errorf("group %s is of type %q; real nodes need one of type \"domain\"", h.shown(dir), text)
	}
	processes, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return false, fmt.Errorf("group %s: %w", h.shown(dir), err)
	}
	return len(processes) == 0, nil
}

// ofSystemd reports that a path has the name of a unit in it.
func ofSystemd(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(element string) bool {
		return slices.Contains([]string{".scope", ".service", ".slice"}, filepath.Ext(element))
	})
}

// shown returns a path as it is on the host.
func (h Host) shown(path string) string { return strings.TrimPrefix(path, h.Root) }

// makeUnified makes a group of a name below another one, with all controllers.
func makeUnified(dir, name string) error {
	for element := range strings.SplitSeq(name, "/") {
		if err := enable(dir); err != nil {
			return err
		}
		dir = filepath.Join(dir, element)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// vacate moves this process from the root of its cgroup namespace, which is mounted in a folder,
// to a group below it. The kubelet can then make groups with controllers there.
func vacate(dir string) error {
	if err := moveTo(filepath.Join(dir, processesName), "0"); err != nil {
		return err
	}
	return enable(dir)
}

// moveTo moves a process to a group, which is made. Process 0 is the one that asks.
func moveTo(dir, pid string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(pid), 0o644)
}

// enable has a group hand down the controllers that nodes use, as far as it has them.
func enable(dir string) error {
	available, err := words(dir, "cgroup.controllers")
	if err != nil {
		return err
	}
	enabled, err := words(dir, "cgroup.subtree_control")
	if err != nil {
		return err
	}
	var change []string
	for _, controller := range slices.Concat(unifiedControllers, optionalControllers) {
		if slices.Contains(available, controller) && !slices.Contains(enabled, controller) {
			change = append(change, "+"+controller)
		}
	}
	if len(change) == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(strings.Join(change, " ")), 0o644)
}

func words(dir, file string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(dir, file))
	return strings.Fields(string(data)), err
}
