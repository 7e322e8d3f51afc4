package demo

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/sandbox"
)

//go:embed database.yaml
var database []byte

// saving is the time that the database needs to save its data.
const saving = 2 * time.Second

// RunEvictionRequests drains a node with a pod that responds to its eviction.
//
// Errors: this version of Kubernetes has no EvictionRequests.
func (d Demo) RunEvictionRequests(ctx context.Context) error {
	if err := sandbox.CheckEvictionRequests(sandbox.RequestedVersion()); err != nil {
		return err
	}
	return d.on(ctx, sandbox.Spec{Nodes: 2, EvictionRequests: true}, func(ctx context.Context, c *sandbox.Cluster) error {
		ctx, cancel := context.WithTimeoutCause(ctx, drainWithin, errTooLong)
		defer cancel()
		if _, err := c.StartProgram(ctx, "examples/responder", "--kubeconfig="+c.Kubeconfig); err != nil {
			return err
		}
		node, err := openDatabase(ctx, c.Client)
		if err != nil {
			return err
		}
		return d.respond(ctx, c.Client, node)
	})
}

// openDatabase starts the database and returns its node.
func openDatabase(ctx context.Context, c client.Client) (node string, err error) {
	if err := create(ctx, c, database); err != nil {
		return "", err
	}
	pod := &corev1.Pod{}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, openWithin, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "db-0"}, pod)
		return err == nil && podclass.Ready(pod), client.IgnoreNotFound(err)
	})
	if err != nil {
		return "", fmt.Errorf("wait for the database: %w", err)
	}
	return pod.Spec.NodeName, nil
}

// respond drains the node, saves the data, completes the maintenance, and prints the story.
func (d Demo) respond(ctx context.Context, c client.WithWatch, node string) error {
	changes, err := watchAll(ctx, c, []source{
		{&corev1.NodeList{}, named(node)},
		{&corev1.PodList{}, onNode(node)},
		{&lifecyclev1alpha1.EvictionRequestList{}, in("default")},
		{&lifecyclev1alpha1.EvictionList{}, in("default")},
		{&v1alpha1.NodeMaintenanceList{}, named(maintenance)},
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, `
Kubernetes %s with the feature gate EvictionRequestAPI. Ebbtide is the controller of EvictionRequests;
StatefulSet db has one pod. Its responder example.com/save (examples/responder) waits until the data is saved.

NodeMaintenance %s, stage Drain, for %s.

`, sandbox.RequestedVersion(), maintenance, node)
	s := newResponse(node, printer(d.Out))
	t := &teller{story: s, changes: changes, start: time.Now()}
	if err := c.Create(ctx, newMaintenance(node)); err != nil {
		return fmt.Errorf("create NodeMaintenance: %w", err)
	}
	if err := t.tellUntil(ctx, s.isReported); err != nil {
		return err
	}
	if err := t.tellFor(ctx, saving); err != nil {
		return err
	}
	s.say(time.Since(t.start), "saved", "the data is saved: annotation example.com/saved of db-0")
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = "default", "db-0"
	saved := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"example.com/saved":"true"}}}`))
	if err := c.Patch(ctx, pod, saved); err != nil {
		return fmt.Errorf("annotate the pod: %w", err)
	}
	if err := t.tellUntil(ctx, s.isDrained); err != nil {
		return err
	}
	s.say(time.Since(t.start), "complete", "the work is done: stage Complete")
	if err := complete(ctx, c); err != nil {
		return err
	}
	return t.tellUntil(ctx, s.isBack)
}
