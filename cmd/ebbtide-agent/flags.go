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
	reboot                                         bool
	rebootSentinel                                 string
	controlPlane                                   controlPlane
	verbosity                                      int
	logFormat                                      logformat.Format
	version                                        bool
}

const (
	defaultManifests = "/etc/kubernetes/manifests"
	maxShutdownDelay = 24 * time.Hour
)

var shutdownModes = map[string]v1alpha1.NodeShutdownMode{
	"drain": v1alpha1.ShutdownModeDrain, "report": v1alpha1.ShutdownModeReport, "off": v1alpha1.ShutdownModeOff,
}

// parseFlags reads the arguments into a set, which may have other flags.
func parseFlags(set *flag.FlagSet, args []string) (flags, error) {
	f := flags{}
	set.StringVar(&f.nodeName, "node-name", os.Getenv("NODE_NAME"), "name of the agent's node")
	set.StringVar(&f.manifestDir, "manifest-dir", defaultManifests, "the kubelet's staticPodPath; a node without this folder has no static pods")
	set.StringVar(&f.stateDir, "state-dir", "/var/lib/ebbtide", "folder of the journal, readable only by root")
	set.StringVar(&f.healthAddress, "health-address", "127.0.0.1:9473", "address of /healthz, /readyz and /metrics; 0 disables them")
	set.StringVar(&f.shutdown, "shutdown", "drain", "behavior during a node shutdown: drain (delay it until the pods have left), report (only announce it) or off")
	set.DurationVar(&f.shutdownDelay, "shutdown-delay", 0, "minimum InhibitDelayMaxSec of systemd-logind; 0 keeps its setting")
	set.BoolVar(&f.reboot, "reboot", false, "reboot the node when it is drained for a NodeMaintenance with the annotation "+v1alpha1.RebootAnnotation)
	set.StringVar(&f.rebootSentinel, "reboot-sentinel", "", "file that asks for a reboot, such as /run/reboot-required, reported as node condition RebootRequired; empty reports nothing")
	f.controlPlane.register(set)
	set.IntVar(&f.verbosity, "v", 0, "log verbosity")
	f.logFormat.Flag(set)
	set.BoolVar(&f.version, "version", false, "print version and exit")
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
		return fmt.Errorf("unknown command %q; the only one is restore, which must come first", set.Arg(0))
	}
	if f.nodeName == "" {
		return errors.New("set --node-name, or NODE_NAME from the downward API")
	}
	if faults := validation.IsDNS1123Subdomain(f.nodeName); len(faults) > 0 {
		return fmt.Errorf("invalid --node-name=%q: %s", f.nodeName, faults[0])
	}
	if err := f.checkPaths(); err != nil {
		return err
	}
	if inside, err := filepath.Rel(f.manifestDir, f.stateDir); err == nil && inside != ".." && !strings.HasPrefix(inside, "../") {
		return fmt.Errorf("--state-dir=%s must not be inside --manifest-dir=%s, whose files the kubelet reads as pods", f.stateDir, f.manifestDir)
	}
	if _, known := shutdownModes[f.shutdown]; !known {
		return fmt.Errorf("--shutdown must be drain, report or off, not %q", f.shutdown)
	}
	if f.shutdownDelay < 0 || f.shutdownDelay > maxShutdownDelay {
		return fmt.Errorf("--shutdown-delay=%s must be between 0 and %s", f.shutdownDelay, maxShutdownDelay)
	}
	if err := f.controlPlane.check(f.nodeName); err != nil {
		return err
	}
	if f.healthAddress == "0" {
		return nil
	}
	if _, port, err := net.SplitHostPort(f.healthAddress); err != nil || port == "" {
		return fmt.Errorf("--health-address must be HOST:PORT such as 127.0.0.1:9473, or 0, not %q", f.healthAddress)
	}
	return nil
}

func (f *flags) checkPaths() error {
	if f.rebootSentinel != "" {
		if err := checkFolder("reboot-sentinel", f.rebootSentinel); err != nil {
			return err
		}
	}
	if err := checkFolder("manifest-dir", f.manifestDir); err != nil {
		return err
	}
	return checkFolder("state-dir", f.stateDir)
}

func checkFolder(name, path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("--%s=%q must be an absolute path", name, path)
	}
	return nil
}
