package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/sandbox/machine"
)

//go:embed edge.yaml
var edge []byte

//go:embed edge-pod.yaml
var edgePod []byte

// edgeFile is the manifest of the static pod edge.
const edgeFile = "edge.yaml"

// RunNodes drains a real node with a static pod, cuts its power, and completes the maintenance.
//
// Errors: this machine cannot run real nodes, and all missing requirements.
func (d Demo) RunNodes(ctx context.Context) error {
	if err := machine.Check(); err != nil {
		return err
	}
	return d.on(ctx, sandbox.Spec{RealNodes: 1}, func(ctx context.Context, c *sandbox.Cluster) error {
		ctx, cancel := context.WithTimeoutCause(ctx, drainWithin, errTooLong)
		defer cancel()
		node := c.RealNodes()[0]
		agent, err := openEdge(ctx, c, node)
		if err == nil {
			err = d.outage(ctx, c, node)
		}
		if err != nil && agent != nil {
			fmt.Fprintf(d.Progress, "the end of the agent's log:\n%s\n", agent.Tail(20))
		}
		return err
	})
}

// openEdge starts a DaemonSet and a static pod on a node, and an agent beside its kubelet.
func openEdge(ctx context.Context, c *sandbox.Cluster, node string) (*sandbox.Program, error) {
	if err := create(ctx, c.Client, edge); err != nil {
		return nil, err
	}
	manifests := c.Manifests(node)
	if err := os.WriteFile(filepath.Join(manifests, edgeFile), edgePod, 0o600); err != nil {
		return nil, err
	}
	// The host of this sandbox does not shut down with its nodes.
	agent, err := c.StartProgram(ctx, "cmd/ebbtide-agent", "--node-name="+node, "--manifest-dir="+manifests,
		"--state-dir="+filepath.Join(c.Dir, "agent"), "--kubeconfig="+c.Kubeconfig, "--health-address=0", "--shutdown=off")
	if err != nil {
		return nil, err
	}
	saw := ""
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, openWithin, true, func(ctx context.Context) (bool, error) {
		pods, reported := &corev1.PodList{}, &v1alpha1.NodeAgent{}
		err := errors.Join(c.Client.List(ctx, pods, client.InNamespace("default")), c.Client.Get(ctx, client.ObjectKey{Name: node}, reported))
		ready := 0
		for i := range pods.Items {
			if podclass.Ready(&pods.Items[i]) {
				ready++
			}
		}
		saw = fmt.Sprintf("%d of 2 pods are ready, the agent reports %d static pods, %v", ready, len(reported.Status.StaticPods), err)
		return err == nil && ready == 2 && len(reported.Status.StaticPods) == 1, nil
	})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("wait for the pods: %s: %w", saw, err)
	}
	return agent, err
}

// outage drains the node, cuts its power, completes the maintenance, and prints the story.
func (d Demo) outage(ctx context.Context, c *sandbox.Cluster, node string) error {
	changes, err := watchAll(ctx, c.Client, []source{
		{&corev1.NodeList{}, named(node)},
		{&corev1.PodList{}, onNode(node)},
		{&v1alpha1.NodeAgentList{}, named(node)},
		{&v1alpha1.NodeMaintenanceList{}, all()},
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, `
Kubernetes %s, one real node with kubelet and containerd. It runs
  DaemonSet   log-agent   1 pod
  static pod  edge        from /etc/kubernetes/manifests/%s

NodeMaintenance %s, stage Drain, for %s: the DaemonSet first, then the static pod.
Then the power is cut.

`, sandbox.RequestedVersion(), edgeFile, maintenance, node)
	s := newOutage(node, printer(d.Out))
	t := &teller{story: s, changes: changes, start: time.Now()}
	work := newMaintenance(node)
	work.Spec.DrainPlan = nil
	if err := c.Client.Create(ctx, work); err != nil {
		return fmt.Errorf("create NodeMaintenance: %w", err)
	}
	if err := t.tellUntil(ctx, s.isDrained); err != nil {
		return err
	}
	s.say(time.Since(t.start), "off", "the power of "+node+" is switched off and on again")
	if err := c.PowerOff(node); err != nil {
		return err
	}
	if err := c.PowerOn(ctx, node); err != nil {
		return err
	}
	if err := t.tellUntil(ctx, s.hasBooted); err != nil {
		return err
	}
	s.say(time.Since(t.start), "complete", "the work is done: stage Complete")
	if err := complete(ctx, c.Client); err != nil {
		return err
	}
	if err := t.tellUntil(ctx, s.isBack); err != nil {
		return err
	}
	s.printSummary(d.Out)
	return nil
}
