package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/internal/sandbox/provider"
	"ebbtide.dev/ebbtide/internal/sandbox/provider/api"
)

const (
	// arriveWithin and departWithin bound what takes a few seconds each.
	arriveWithin = 2 * time.Minute
	departWithin = 3 * time.Minute
)

// hooks delay the deletion of the Machine until the demo removes them.
var hooks = []struct {
	step, point, done string
	lasts             time.Duration
}{
	{v1alpha1.ReasonWaitingForPreDrainHook, "preDrain", "the backup is done: its owner removes the hook " + beforeDrain, 2 * time.Second},
	{v1alpha1.ReasonWaitingForPreTerminateHook, "preTerminate", "the inventory is updated: its owner removes the hook " + beforeEnd, time.Second},
}

var (
	errNotThere = fmt.Errorf("the Machines do not run after %s", arriveWithin)
	errNotGone  = fmt.Errorf("the Machine is not gone after %s", departWithin)
)

// RunMachines shows the creation of Machines and the deletion of one of them.
func (d Demo) RunMachines(ctx context.Context) error {
	return d.on(ctx, sandbox.Spec{}, func(ctx context.Context, c *sandbox.Cluster) error {
		var log bytes.Buffer
		stop := provider.Start(ctx, c.Config, logr.FromSlogHandler(slog.NewTextHandler(&log, nil)))
		err := d.liveAndDie(ctx, c.Client)
		err = errors.Join(err, stop())
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(d.Progress, "the provider's log:\n%s\n", &log)
		}
		return err
	})
}

func (d Demo) liveAndDie(ctx context.Context, c client.WithWatch) error {
	if err := d.arrive(ctx, c); err != nil {
		return err
	}
	worker, err := moveIn(ctx, c)
	if err != nil {
		return err
	}
	return d.depart(ctx, c, worker)
}

// arrive creates Machines and prints events until their nodes are ready for pods.
func (d Demo) arrive(ctx context.Context, c client.WithWatch) error {
	ctx, cancel := context.WithTimeoutCause(ctx, arriveWithin, errNotThere)
	defer cancel()
	changes, err := watchAll(ctx, c, []source{{&v1alpha1.MachineList{}, all()}, {&corev1.NodeList{}, all()}})
	if err != nil {
		return err
	}
	fmt.Fprintf(d.Out, `
Kubernetes %s without a node. Cluster fleet/shop gets three Machines: bootstrap data from a SandboxConfig,
an instance from a SandboxMachine, and a node that joins when the instance runs.

`, sandbox.RequestedVersion())
	s := newArrival(len(workers), printer(d.Out))
	t := &teller{story: s, changes: changes, start: time.Now()}
	if err := openFleet(ctx, c); err != nil {
		return err
	}
	return t.tellUntil(ctx, s.allRun)
}

// depart deletes a Machine and prints events until it is gone.
func (d Demo) depart(ctx context.Context, c client.WithWatch, worker string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, departWithin, errNotGone)
	defer cancel()
	changes, err := watchAll(ctx, c, []source{
		{&v1alpha1.MachineList{}, named(worker)},
		{&api.SandboxMachineList{}, named(worker)},
		{&api.SandboxConfigList{}, named(worker)},
		{&corev1.NodeList{}, named(worker)},
		{&corev1.PodList{}, onNode(worker)},
		{&policyv1.PodDisruptionBudgetList{}, in(namespace)},
		{&storagev1.VolumeAttachmentList{}, all()},
	})
	if err != nil {
		return err
	}
	d.printTenants(worker)
	s := newDeparture(worker, printer(d.Out))
	t := &teller{story: s, changes: changes, start: time.Now()}
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: fleetNamespace, Name: worker}}
	if err := c.Delete(ctx, machine); err != nil {
		return fmt.Errorf("delete Machine: %w", err)
	}
	for _, hook := range hooks {
		if err := t.tellUntil(ctx, func() bool { return s.step == hook.step }); err != nil {
			return err
		}
		if err := t.tellFor(ctx, hook.lasts); err != nil {
			return err
		}
		s.say(time.Since(t.start), "hook", hook.done)
		if err := removeHooks(ctx, c, worker, hook.point); err != nil {
			return err
		}
	}
	if err := t.tellUntil(ctx, s.isGone); err != nil {
		return err
	}
	s.printSummary(d.Out)
	return nil
}

func (d Demo) printTenants(worker string) {
	fmt.Fprintf(d.Out, `
Namespace shop runs
  Deployment  web      6 pods  budget: 1 may be missing; ready after 1s
  StatefulSet db       1 pod   MachineDrainRule databases: order 100; terminates in 1s, its volume is detached within 3s
  Deployment  metrics  3 pods  MachineDrainRule monitoring: Skip

Machine %s, where db-0 runs, is deleted. Its hooks wait until their owners remove them:
%s before the drain, %s before the instance is deleted.

`, worker, beforeDrain, beforeEnd)
}
