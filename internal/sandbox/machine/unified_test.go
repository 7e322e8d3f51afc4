package machine

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unifiedMount is the line of a host with cgroup v2 alone, as Linux 6.1 writes it.
const unifiedMount = "29 28 0:27 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw"

// allControllers lists the controllers of the root on Linux 6.1.
const allControllers = "cpuset cpu io memory hugetlb pids rdma misc"

// unifiedHost returns the files of a host with cgroup v2 alone, on which this process is in a
// group. Its root is recorded from Linux 6.1; more changes it.
func unifiedHost(own string, more map[string]string) map[string]string {
	files := map[string]string{
		"/proc/self/mountinfo":                  unifiedMount,
		"/proc/self/cgroup":                     "0::" + own + "\n",
		"/sys/fs/cgroup/cgroup.controllers":     allControllers + "\n",
		"/sys/fs/cgroup/cgroup.procs":           "1\n2\n3\n",
		"/sys/fs/cgroup/cgroup.subtree_control": "\n",
	}
	maps.Copy(files, more)
	return files
}

// recorded adds a group that is not the root: its type, controllers and processes. A missing
// file is not written, so no processes are a file with nothing in it.
func recorded(path, kind, controllers string, processes bool) map[string]string {
	dir := "/sys/fs/cgroup" + strings.TrimSuffix(path, "/") + "/"
	files := map[string]string{
		dir + "cgroup.type": kind + "\n", dir + "cgroup.controllers": controllers + "\n", dir + "cgroup.subtree_control": "\n", dir + "cgroup.procs": empty,
	}
	if processes {
		files[dir+"cgroup.procs"] = "70\n71\n"
	}
	return files
}

func joined(all ...map[string]string) map[string]string {
	files := map[string]string{}
	for _, one := range all {
		maps.Copy(files, one)
	}
	return files
}

// hosts with cgroup v2 alone on which real nodes run, by the group in which racks have theirs.
var lenders = map[string]struct {
	files map[string]string
	want  string
}{
	"a host without systemd, whose processes are in the root": {unifiedHost("/", nil), "/sys/fs/cgroup"},
	"a service of OpenRC": {
		unifiedHost("/openrc.sshd", recorded("/openrc.sshd", "domain", allControllers, true)), "/sys/fs/cgroup",
	},
	"a container whose processes were moved": {
		unifiedHost("/init", joined(recorded("/", "domain", allControllers, false), recorded("/init", "domain", "", true))), "/sys/fs/cgroup",
	},
	"a container that the mount begins at": {
		joined(unifiedHost("/docker/5f/init", joined(recorded("/", "domain", allControllers, false), recorded("/init", "domain", "", true))),
			map[string]string{"/proc/self/mountinfo": strings.Replace(unifiedMount, " / ", " /docker/5f ", 1)}),
		"/sys/fs/cgroup",
	},
	"a group between that has processes": {
		unifiedHost("/a/b/c", joined(recorded("/a", "domain", allControllers, false), recorded("/a/b", "domain", "cpu", true),
			recorded("/a/b/c", "domain", "", true))),
		"/sys/fs/cgroup/a",
	},
	"a group between that has no controllers": {
		unifiedHost("/a/b", joined(recorded("/a", "domain", "", false), recorded("/a/b", "domain", "", true))), "/sys/fs/cgroup",
	},
}

func TestUnifiedHierarchyLendsTheNearestGroupThatCanHandDown(t *testing.T) {
	for name, test := range lenders {
		t.Run(name, func(t *testing.T) {
			host := completeHost(t, 0, test.files)
			if err := host.Check(); err != nil {
				t.Fatal(err)
			}
			all, err := host.hierarchies()
			if err != nil || len(all) != 1 || !all[0].Alone {
				t.Fatalf("hierarchies are %+v, %v; want v2 alone", all, err)
			}
			got, err := host.lender(all[0])
			if err != nil || host.shown(got) != test.want {
				t.Errorf("groups are made in %s, %v; want %s", host.shown(got), err, test.want)
			}
		})
	}
}

// A host with systemd lends a unit, so that its groups may have processes and be of slices.
func TestUnifiedHierarchyOfSystemdNeedsSystemdRunAndItsBus(t *testing.T) {
	files := unifiedHost("/user.slice/user-0.slice/session-1.scope", map[string]string{
		"/run/systemd/system/x": "-", "/bin/systemd-run": "#!/bin/sh\n", "/run/dbus/system_bus_socket": "-",
	})
	host := completeHost(t, 0, files)
	if err := host.Check(); err != nil || !host.managed() {
		t.Errorf("managed by systemd: %v, %v", host.managed(), err)
	}
	wantMissing(t, joined(files, map[string]string{"/bin/systemd-run": "", "/run/dbus/system_bus_socket": "", "/sys/fs/cgroup/cgroup.controllers": "cpu memory pids\n"}),
		"systemd-run: install the package systemd",
		"the system bus, by which systemd is asked for cgroups: install the package dbus and start dbus.socket",
		"cgroup controller cpuset: /sys/fs/cgroup/cgroup.controllers does not list it")
}

func wantMissing(t *testing.T, files map[string]string, want ...string) {
	t.Helper()
	text := "real nodes cannot run here; what is missing:\n- " + strings.Join(want, "\n- ")
	if err := completeHost(t, 0, files).Check(); err == nil || err.Error() != text {
		t.Errorf("error is\n%v\nwant\n%s", err, text)
	}
}

// refused are hosts with cgroup v2 alone that lack something, by what is said of it.
var refused = map[string]struct {
	files map[string]string
	want  []string
}{
	"controllers that the kernel was booted without": {
		unifiedHost("/", map[string]string{"/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io\n"}),
		[]string{
			"cgroup controller memory: /sys/fs/cgroup/cgroup.controllers does not list it",
			"cgroup controller pids: /sys/fs/cgroup/cgroup.controllers does not list it",
		},
	},
	"a container that got some controllers": {
		unifiedHost("/init", joined(recorded("/", "domain", "memory pids", false), recorded("/init", "domain", "", true))),
		[]string{
			"cgroup controller cpu: /sys/fs/cgroup/cgroup.controllers does not list it",
			"cgroup controller cpuset: /sys/fs/cgroup/cgroup.controllers does not list it",
		},
	},
	"a container without rights": {
		joined(unifiedHost("/", nil), map[string]string{"/proc/self/mountinfo": strings.Replace(unifiedMount, "rw,relatime", "ro,relatime", 1)}),
		[]string{"cgroups: /sys/fs/cgroup is mounted read-only; a container needs --privileged"},
	},
	"a container whose processes are in the root of its namespace": {
		unifiedHost("/", recorded("/", "domain", allControllers, true)),
		[]string{"cgroup v2: each group from that of this process upwards has processes, so none can hand controllers down. " +
			"In a container, move them: mkdir -p /sys/fs/cgroup/init; " +
			"for p in $(cat /sys/fs/cgroup/cgroup.procs); do echo $p >/sys/fs/cgroup/init/cgroup.procs; done"},
	},
	"a container in the namespace of a host with systemd": {
		unifiedHost("/system.slice/docker-5f.scope", recorded("/system.slice/docker-5f.scope", "domain", allControllers, true)),
		[]string{"cgroup v2: group /sys/fs/cgroup/system.slice/docker-5f.scope belongs to a systemd that does not run here. " +
			"Start the container with a cgroup namespace of its own: --cgroupns=private"},
	},
	"a threaded group": {
		unifiedHost("/", recorded("/", "domain threaded", allControllers, false)),
		[]string{`cgroup v2: group /sys/fs/cgroup is of type "domain threaded"; real nodes need one of type "domain"`},
	},
	"a process from outside of its cgroup namespace": {
		unifiedHost("/../../box", nil),
		[]string{"cgroups: /sys/fs/cgroup: this process is in group /../../box, which is outside of its cgroup namespace"},
	},
	"a mount from outside of its cgroup namespace": {
		joined(unifiedHost("/", nil), map[string]string{"/proc/self/mountinfo": strings.Replace(unifiedMount, " / ", " /../.. ", 1)}),
		[]string{"cgroups: /sys/fs/cgroup: it was mounted in another cgroup namespace; mount it again in this one"},
	},
}

func TestUnifiedHierarchyThatCannotBeDelegatedIsRefused(t *testing.T) {
	for name, test := range refused {
		t.Run(name, func(t *testing.T) { wantMissing(t, test.files, test.want...) })
	}
}

// What is missing besides is named with it.
func TestUnifiedHierarchyIsOneOfManyThingsThatMayBeMissing(t *testing.T) {
	wantMissing(t, joined(unifiedHost("/", map[string]string{"/sys/fs/cgroup/cgroup.controllers": "cpuset cpu pids\n"}), map[string]string{"/bin/runc": ""}),
		"runc: install the package runc",
		"cgroup controller memory: /sys/fs/cgroup/cgroup.controllers does not list it")
}

// A host that has v1 hierarchies besides v2 goes on to use them.
func TestHybridHierarchiesAreNotAlone(t *testing.T) {
	all, err := completeHost(t, 0, nil).hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.Alone {
			t.Errorf("%s is taken for v2 alone", c.Mount)
		}
	}
}

// Each group above that of a machine hands down what nodes use and it has; that of the machine
// does not yet, or it could not take the first process.
func TestUnifiedGroupOfAMachineGetsControllersFromThoseAbove(t *testing.T) {
	host := completeHost(t, 0, unifiedHost("/", joined(
		map[string]string{"/sys/fs/cgroup/cgroup.subtree_control": "memory rdma\n"},
		recorded("/ebbtide-7-1-1", "domain", "cpu cpuset memory pids rdma", false),
		recorded("/ebbtide-7-1-1/node-1", "domain", "cpu cpuset memory pids", false),
	)))
	all, err := host.hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	g := group{all, "ebbtide-7-1-1"}.below("node-1")
	if err := g.make(); err != nil {
		t.Fatal(err)
	}
	if err := g.take(70); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, host, map[string]string{
		"/sys/fs/cgroup/cgroup.subtree_control":                      "+cpu +cpuset +pids +hugetlb +io",
		"/sys/fs/cgroup/ebbtide-7-1-1/cgroup.subtree_control":        "+cpu +cpuset +memory +pids",
		"/sys/fs/cgroup/ebbtide-7-1-1/node-1/cgroup.subtree_control": "\n",
		"/sys/fs/cgroup/ebbtide-7-1-1/node-1/cgroup.procs":           "70",
	})
}

// The processes of a machine leave the root of its namespace, which then hands down, too.
func TestUnifiedGroupOfAMachineIsVacated(t *testing.T) {
	host := completeHost(t, 0, unifiedHost("/", recorded("/", "domain", "cpu memory pids", true)))
	if err := vacate(host.path("/sys/fs/cgroup")); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, host, map[string]string{
		"/sys/fs/cgroup/init/cgroup.procs":      "0",
		"/sys/fs/cgroup/cgroup.subtree_control": "+cpu +memory +pids",
	})
}

func wantFiles(t *testing.T, host Host, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for name := range want {
		data, err := os.ReadFile(filepath.Join(host.Root, name))
		if err != nil {
			t.Error(err)
		}
		got[name] = string(data)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
