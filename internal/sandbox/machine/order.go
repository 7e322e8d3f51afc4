package machine

// Spec is the rack to open.
type Spec struct {
	// Dir is an existing folder. Each machine has one in it, with its disk and logs.
	Dir string
	// Programs is the folder with containerd, ctr, the shim, kubelet, kube-proxy and the
	// plugins of the network.
	Programs string
	// Nodes are their names, of which there are at most MaxNodes.
	Nodes []string
	// Services is the range of their addresses.
	Services string
	// Pause is an archive with the image PauseImage. Without one there are no pods.
	Pause string
}

// MaxNodes bounds the nodes of a rack.
const MaxNodes = 20

// Check returns nil if real nodes can run on this machine, or an error that lists
// everything that is missing.
func Check() error { return realHost().Check() }

// Main returns only in a process that is none of a machine: main packages and TestMain
// whose program opens racks call it before anything else, with their arguments.
func Main(args []string) {
	if len(args) == 0 {
		return
	}
	switch args[0] {
	case initName:
		runInit()
	case janitorName:
		runJanitor(args[1:])
	}
}

// Names under which this program is started again.
const (
	initName    = "ebbtide-machine"
	janitorName = "ebbtide-janitor"
)

// order specifies a machine; its init reads it as JSON.
type order struct {
	Hostname          string
	MachineID, BootID string
	// Dir is an empty folder on which the root is mounted, in the machine only.
	Dir string
	// Binds are folders of the host, by their place in the machine: its disk.
	Binds map[string]string
	// Files are texts, by their place in the machine.
	Files map[string]string
	// Settings are of its network, by their file under /proc/sys.
	Settings map[string]string
	Cgroups  []hierarchy
	Programs []program
}

// program is kept running by a machine.
type program struct {
	Name string
	Args []string // of which the first is the path
	// After is a file that it waits for.
	After string
}

// programDir holds the binaries in every machine, and plugins of the network too.
const programDir = "/opt/cni/bin"

// logDir holds the logs of a machine's programs.
const logDir = "/var/log"
