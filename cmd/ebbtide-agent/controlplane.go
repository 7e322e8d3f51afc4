//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"ebbtide.dev/ebbtide/internal/agent"
	"ebbtide.dev/ebbtide/internal/core/maintenance"
)

// controlPlane are the flags of an agent on a node of the control plane.
type controlPlane struct {
	pods, namespace string
	restoreAfter    time.Duration
	host            bool
}

const (
	retain, terminate = "Retain", "Terminate"
	// A restart of an API server must not be taken for its end, and nobody waits a day.
	leastRestoreAfter, mostRestoreAfter = time.Minute, 24 * time.Hour
)

func (c *controlPlane) register(set *flag.FlagSet) {
	set.StringVar(&c.pods, "control-plane-pods", retain, "Retain leaves pods of the control plane alone; "+
		"Terminate takes them down at their turn if an API server of another host goes on, and needs --host")
	set.DurationVar(&c.restoreAfter, "control-plane-restore-after", 10*time.Minute,
		"for how long no API server may answer before pods of the control plane come back that were taken down")
	set.BoolVar(&c.host, "host", false, "the agent is a unit of its host, with a kubeconfig, and keeps a Lease instead of a pod")
	set.StringVar(&c.namespace, "namespace", "ebbtide-system", "namespace of Ebbtide, where an agent with --host keeps its Lease")
}

func (c *controlPlane) check(node string) error {
	switch {
	case c.pods != retain && c.pods != terminate:
		return fmt.Errorf("--control-plane-pods=%q is neither %s nor %s", c.pods, retain, terminate)
	case c.pods == terminate && !c.host:
		return fmt.Errorf("--control-plane-pods=%s needs --host: an agent in a pod does not start without an API server, and so could not bring one back", terminate)
	case c.host && os.Getenv("KUBERNETES_SERVICE_HOST") != "":
		return errors.New("--host is for a unit of a host, and this is a pod, which does not start without an API server")
	case c.restoreAfter < leastRestoreAfter || c.restoreAfter > mostRestoreAfter:
		return fmt.Errorf("--control-plane-restore-after=%s has to be from %s to %s", c.restoreAfter, leastRestoreAfter, mostRestoreAfter)
	case len(validation.IsDNS1123Label(c.namespace)) > 0:
		return fmt.Errorf("--namespace=%q is the name of no namespace: %s", c.namespace, validation.IsDNS1123Label(c.namespace)[0])
	case c.host && len(validation.IsDNS1123Subdomain(maintenance.AgentLease(node))) > 0:
		return fmt.Errorf("--node-name=%q is too long for the name of a Lease, which --host needs", node)
	}
	return nil
}

// options returns the agent's options for the API server of a connection.
func (c *controlPlane) options(config *rest.Config) agent.ControlPlane {
	o := agent.ControlPlane{Terminate: c.pods == terminate, Host: c.host, RestoreAfter: c.restoreAfter, Namespace: c.namespace}
	// An unknown name is empty, and then nothing of the control plane is taken down.
	o.Hostname, _ = os.Hostname()
	address := config.Host
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	if u, err := url.Parse(address); err == nil {
		o.Address = u.Hostname()
	}
	return o
}
