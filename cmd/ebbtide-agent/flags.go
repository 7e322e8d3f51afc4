//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/logformat"
)

type flags struct {
	nodeName, manifestDir, stateDir, healthAddress string
	shutdown                                       string
	shutdownDelay                                  time.Duration
	controlPlane                                   controlPlane
	verbosity                                      int
	logFormat                                      logformat.Format
	version                                        bool
}

const (
	defaultManifests = "/etc/kubernetes/manifests"
	// maxShutdownDelay is longer than anybody waits for a node.
	maxShutdownDelay = 24 * time.Hour
)

var shutdownModes = map[string]v1alpha1.NodeShutdownMode{
	"drain": v1alpha1.ShutdownModeDrain, "report": v1alpha1.ShutdownModeReport, "off": v1alpha1.ShutdownModeOff,
}

// parseFlags reads the arguments into a set, which may have flags of others.
//
// Errors: as the set has them, and what is wrong with a value.
func parseFlags(set *flag.FlagSet, args []string) (flags, error) {
	f := flags{}
	set.StringVar(&f.nodeName, "node-name", os.Getenv("NODE_NAME"), "name of the Node that the agent is on")
	set.StringVar(&f.manifestDir, "manifest-dir", defaultManifests, "the kubelet's staticPodPath; if there is no such folder there are no static pods")
	set.StringVar(&f.stateDir, "state-dir", "/var/lib/ebbtide", "folder of the journal, which only root reads")
	set.StringVar(&f.healthAddress, "health-address", "127.0.0.1:9473", "address of /healthz, /readyz and /metrics; 0 serves none")
	set.StringVar(&f.shutdown, "shutdown", "drain", "what is done when the node shuts down: drain holds it up until the pods have left, report only tells of it, off does nothing")
	set.DurationVar(&f.shutdownDelay, "shutdown-delay", 0, "for how long systemd-logind is asked to let a shutdown wait, at least; 0 leaves that as it is")
	f.controlPlane.register(set)
	set.IntVar(&f.verbosity, "v", 0, "verbosity of the log")
	f.logFormat.Flag(set)
	set.BoolVar(&f.version, "version", false, "say which version this is, and end")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if f.version {
		return f, nil
	}
	return f, f.check(set)
}

func (f *flags) check(set *flag.FlagSet) error {
	if set.NArg() > 0 {
		return fmt.Errorf("there is no verb %q; the only one is restore, and it comes first", set.Arg(0))
	}
	if f.nodeName == "" {
		return errors.New("set --node-name, or NODE_NAME from the downward API")
	}
	if faults := validation.IsDNS1123Subdomain(f.nodeName); len(faults) > 0 {
		return fmt.Errorf("--node-name=%q is the name of no Node: %s", f.nodeName, faults[0])
	}
	if err := checkFolder("manifest-dir", f.manifestDir); err != nil {
		return err
	}
	if err := checkFolder("state-dir", f.stateDir); err != nil {
		return err
	}
	if inside, err := filepath.Rel(f.manifestDir, f.stateDir); err == nil && inside != ".." && !strings.HasPrefix(inside, "../") {
		return fmt.Errorf("--state-dir=%s is in --manifest-dir=%s, where the kubelet would take the journal for a pod; choose another folder", f.stateDir, f.manifestDir)
	}
	if _, known := shutdownModes[f.shutdown]; !known {
		return fmt.Errorf("--shutdown=%q is none of drain, report and off", f.shutdown)
	}
	if f.shutdownDelay < 0 || f.shutdownDelay > maxShutdownDelay {
		return fmt.Errorf("--shutdown-delay=%s has to be between 0 and %s", f.shutdownDelay, maxShutdownDelay)
	}
	if err := f.controlPlane.check(f.nodeName); err != nil {
		return err
	}
	if f.healthAddress == "0" {
		return nil
	}
	if _, port, err := net.SplitHostPort(f.healthAddress); err != nil || port == "" {
		return fmt.Errorf("--health-address=%q is no address and port, such as 127.0.0.1:9473, nor 0", f.healthAddress)
	}
	return nil
}

func checkFolder(name, path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("--%s=%q has to be an absolute path, such as %s", name, path, defaultManifests)
	}
	return nil
}
