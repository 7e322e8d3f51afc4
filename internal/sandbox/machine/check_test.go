package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// mounts lists the mounts of a host with cgroup v1 and, beside it, v2 without controllers.
const mounts = `24 1 0:6 / /dev rw - devtmpfs devtmpfs rw
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices
37 31 0:34 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer
39 31 0:36 /box /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,release_agent=/lib/agent,name=systemd
44 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw`

const memberships = `9:name=systemd:/
8:pids:/box/job
6:freezer:/
5:devices:/
4:memory:/jobs/7
3:cpuset:/
2:cpu,cpuacct:/
0::/`

// empty is the text of a file without text.
const empty = "-empty-"

// completeHost has everything; change takes away from it. A text of nothing removes the file.
func completeHost(t *testing.T, uid int, change map[string]string) Host {
	t.Helper()
	files := map[string]string{
		"/proc/self/status":      "Name:\ttest\nCapEff:\t000001ffffffffff\n",
		"/proc/filesystems":      "nodev\tsysfs\nnodev\toverlay\n\text4\n",
		"/proc/self/mountinfo":   mounts,
		"/proc/self/cgroup":      memberships,
		"/bin/ip":                "#!/bin/sh\n",
		"/bin/mount":             "#!/bin/sh\n",
		"/bin/nft":               "#!/bin/sh\n",
		"/bin/runc":              "#!/bin/sh\n",
		"/proc/self/ns/cgroup":   "-",
		"/proc/self/ns/ipc":      "-",
		"/proc/self/ns/mnt":      "-",
		"/proc/self/ns/net":      "-",
		"/proc/self/ns/pid":      "-",
		"/proc/self/ns/uts":      "-",
		"/proc/sys/net/bridge/x": "-",
		"/proc/sys/net/bridge/bridge-nf-call-iptables": "1",
	}
	for name, text := range change {
		files[name] = text
	}
	root := t.TempDir()
	for name, text := range files {
		switch text {
		case "":
			continue
		case empty:
			text = ""
		}
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Join(root, "bin"))
	return Host{Root: root, OS: "linux", UID: uid}
}

func TestACompleteHostRunsRealNodes(t *testing.T) {
	if err := completeHost(t, 0, nil).Check(); err != nil {
		t.Error(err)
	}
}

// incomplete are hosts that lack something, by what is said of them.
var incomplete = map[string]struct {
	uid    int
	change map[string]string
	want   []string
}{
	"an ordinary user without packages": {
		1000,
		map[string]string{"/proc/self/status": "CapEff:\t0000000000000000\n", "/bin/runc": "", "/bin/nft": "", "/bin/ip": "", "/bin/mount": ""},
		[]string{
			"root: this runs as user 1000",
			"CAP_NET_ADMIN: a container needs --privileged",
			"CAP_SYS_ADMIN: a container needs --privileged",
			"ip: install the package iproute2",
			"mount: install the package mount",
			"nft: install the package nftables",
			"runc: install the package runc",
		},
	},
	"root of a container without rights": {
		0,
		map[string]string{"/proc/self/status": "CapEff:\t00000000a80425fb\n"},
		[]string{"CAP_NET_ADMIN: a container needs --privileged", "CAP_SYS_ADMIN: a container needs --privileged"},
	},
	"what cannot be read is missing": {
		0,
		map[string]string{"/proc/self/status": "", "/proc/filesystems": "", "/proc/self/mountinfo": ""},
		[]string{
			"CAP_NET_ADMIN: a container needs --privileged",
			"CAP_SYS_ADMIN: a container needs --privileged",
			"overlay file systems: modprobe overlay",
			"cgroups: none is mounted under /sys/fs/cgroup",
		},
	},
	"half a kernel": {
		0,
		map[string]string{
			"/proc/filesystems": "ext4\n", "/proc/self/ns/cgroup": "", "/proc/self/ns/net": "", "/proc/sys/net/bridge/bridge-nf-call-iptables": "",
			"/proc/self/mountinfo": strings.ReplaceAll(strings.ReplaceAll(mounts, "cgroup cgroup rw,pids", "tmpfs tmpfs rw"), "cgroup cgroup rw,memory", "tmpfs tmpfs rw"),
		},
		[]string{
			"overlay file systems: modprobe overlay",
			"cgroup namespaces: the kernel has none",
			"net namespaces: the kernel has none",
			"netfilter on bridges: modprobe br_netfilter",
			"cgroup controller memory: it is not mounted under /sys/fs/cgroup",
			"cgroup controller pids: it is not mounted under /sys/fs/cgroup",
		},
	},
	"hierarchies of a container without rights": {
		0,
		map[string]string{"/proc/self/mountinfo": strings.ReplaceAll(mounts, "/sys/fs/cgroup/memory rw", "/sys/fs/cgroup/memory ro")},
		[]string{"cgroups: /sys/fs/cgroup/memory is mounted read-only; a container needs --privileged"},
	},
	"a mount of another group than that of this process": {
		0,
		map[string]string{"/proc/self/mountinfo": strings.ReplaceAll(mounts, "/box /sys/fs/cgroup/pids", "/boxes /sys/fs/cgroup/pids")},
		[]string{"cgroups: /sys/fs/cgroup/pids: this process is in group /box/job, but only /boxes is mounted"},
	},
	"one controller alone": {
		0,
		map[string]string{"/proc/self/mountinfo": "36 31 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"},
		[]string{
			"cgroup controller cpu: it is not mounted under /sys/fs/cgroup",
			"cgroup controller cpuacct: it is not mounted under /sys/fs/cgroup",
			"cgroup controller cpuset: it is not mounted under /sys/fs/cgroup",
			"cgroup controller devices: it is not mounted under /sys/fs/cgroup",
			"cgroup controller freezer: it is not mounted under /sys/fs/cgroup",
			"cgroup controller pids: it is not mounted under /sys/fs/cgroup",
		},
	},
	"lines that nobody can read": {
		0,
		map[string]string{"/proc/self/mountinfo": "nothing\n32 31 - cgroup cgroup\n32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup\n - "},
		[]string{"cgroups: none is mounted under /sys/fs/cgroup"},
	},
	"a hierarchy that this process is not in": {
		0,
		map[string]string{"/proc/self/cgroup": strings.ReplaceAll(memberships, "3:cpuset:/\n", "")},
		[]string{"cgroups: /sys/fs/cgroup/cpuset is mounted, but this process is in none of it"},
	},
}

func TestEverythingThatIsMissingIsNamedAtOnce(t *testing.T) {
	for name, test := range incomplete {
		t.Run(name, func(t *testing.T) {
			err := completeHost(t, test.uid, test.change).Check()
			want := "real nodes cannot run here; what is missing:\n- " + strings.Join(test.want, "\n- ")
			if err == nil || err.Error() != want {
				t.Errorf("error is\n%v\nwant\n%s", err, want)
			}
		})
	}
}

func TestOtherSystemsHaveNoRealNodes(t *testing.T) {
	err := Host{OS: "darwin"}.Check()
	if want := "real nodes need Linux, this is darwin"; err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}

// The cgroups of a rack are made below the one that this process is in, wherever that is
// mounted.
func TestCgroupsAreFoundWhereThisProcessIs(t *testing.T) {
	host := completeHost(t, 0, nil)
	found, err := host.hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		found[i].Own = strings.TrimPrefix(found[i].Own, host.Root)
	}
	want := []hierarchy{
		{Mount: "/sys/fs/cgroup/cpu,cpuacct", Options: "cpu,cpuacct", Own: "/sys/fs/cgroup/cpu,cpuacct"},
		{Mount: "/sys/fs/cgroup/cpuset", Options: "cpuset", Own: "/sys/fs/cgroup/cpuset"},
		{Mount: "/sys/fs/cgroup/memory", Options: "memory", Own: "/sys/fs/cgroup/memory/jobs/7"},
		{Mount: "/sys/fs/cgroup/devices", Options: "devices", Own: "/sys/fs/cgroup/devices"},
		{Mount: "/sys/fs/cgroup/freezer", Options: "freezer", Own: "/sys/fs/cgroup/freezer"},
		{Mount: "/sys/fs/cgroup/pids", Options: "pids", Own: "/sys/fs/cgroup/pids/job"},
		{Mount: "/sys/fs/cgroup/systemd", Options: "name=systemd", Own: "/sys/fs/cgroup/systemd"},
		{Mount: "/sys/fs/cgroup/unified", Options: "", Own: "/sys/fs/cgroup/unified"},
	}
	if diff := cmp.Diff(want, found, cmpopts.IgnoreUnexported(hierarchy{})); diff != "" {
		t.Errorf("hierarchies (-want +got):\n%s", diff)
	}
}
