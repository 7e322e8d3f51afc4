package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
)

type lockOptions struct {
	budgetOptions
	For    time.Duration
	Reason string
}

func newLock(streams genericiooptions.IOStreams) *cobra.Command {
	o := &lockOptions{budgetOptions: budgetOptions{IOStreams: streams}}
	cmd := &cobra.Command{
		Use:   "lock pdb/NAME",
		Short: "Let nobody disrupt the pods of a PodDisruptionBudget for a while",
		Long: `Let nobody disrupt the pods of a PodDisruptionBudget for a while.

While you rebalance storage, say, and would rather not lose a replica, lock the
budget. Ebbtide then evicts none of its pods and has everybody else who calls
the eviction API wait: kubectl drain, autoscalers. Deleting pods is still
possible.

A lock has an end. Lock again to renew it; until then, its reason stays unless
you give another. Somebody else's lock has to end first. The lock is the
annotation ` + v1alpha1.LockAnnotation + ` of the budget: you need the verbs get and patch on
it.

Those flags of kubectl that choose a cluster and a user and are not listed below
(--server, --token, --as-group and so on) work, too.`,
		Example: `  # Lock a budget for an hour
  kubectl ebbtide lock pdb/web

  # Lock it for longer, and tell those who wait what for
  kubectl ebbtide lock pdb/db -n shop --for 2h --reason "moving shards, ask #storage"

  # Lock it in the name of a job rather than your own
  kubectl ebbtide lock pdb/db -n shop --holder rebalancer/nightly`,
		RunE: runs(o),
	}
	cmd.Flags().DurationVar(&o.For, "for", time.Hour, "how long from now, at most 4h; less if the manager's --longest-lock is less")
	cmd.Flags().StringVar(&o.Reason, "reason", "", "what for; everybody who has to wait is shown it")
	o.addFlags(cmd)
	return cmd
}

// Validate refuses what no cluster would make right.
func (o *lockOptions) Validate() error {
	if err := o.budgetOptions.Validate(); err != nil {
		return err
	}
	return budget.Claim{For: o.For, Reason: o.Reason}.Check()
}

// Run locks the budget or says who has.
func (o *lockOptions) Run(ctx context.Context) error {
	if err := o.open(); err != nil {
		return err
	}
	holder, err := o.identify(ctx)
	if err != nil {
		return err
	}
	claim := budget.Claim{Holder: holder, For: o.For, Reason: o.Reason}
	b, err := o.change(ctx, func(b *policyv1.PodDisruptionBudget, now time.Time) (edit, error) {
		claim.Now = now
		lock, obstacle := claim.Lock(b)
		if obstacle != nil {
			return nil, fmt.Errorf("%s\n%s", obstacle.Describe(b), o.instead(*obstacle, now))
		}
		return edit{v1alpha1.LockAnnotation: lock.Write()}, nil
	})
	if err != nil {
		return err
	}
	o.warnIfNobodyHonours(ctx)
	return o.report(b, claim.Now)
}

// instead says how to get on where there is a lock already.
func (o *lockOptions) instead(obstacle budget.Hold, now time.Time) string {
	ends := "It ends in " + left(obstacle, now)
	if maintenance, node, ok := drainOf(obstacle); ok {
		return fmt.Sprintf("It is for the pods that stay on node %s, and is renewed until they are back. See how far that is with\n  %s",
			node, o.look(maintenance))
	}
	if obstacle.Unreadable != nil {
		return fmt.Sprintf("%s, unless the budget is changed. Lock it then, or remove what is there with\n  %s", ends, o.unlock(" --force"))
	}
	return fmt.Sprintf("%s, unless it is renewed. Lock it then, or take it from its holder with\n  %s", ends, o.unlock(" --force"))
}

// report says what holds now, as everybody else reads it.
func (o *lockOptions) report(b *policyv1.PodDisruptionBudget, now time.Time) error {
	hold, locked := budget.LockOf(b, now, 0)
	if !locked {
		return fmt.Errorf("PodDisruptionBudget %s is not locked, although the API server took the lock: something else in the cluster changes annotation %s",
			o.key, v1alpha1.LockAnnotation)
	}
	sentences := hold.Describe(b) + o.only()
	if o.dryRun.Mode == dryRunNone {
		sentences += fmt.Sprintf("\nThat is %s from now. Lock again to renew it, or end it with\n  %s", left(hold, now), o.unlock(""))
	}
	return o.print(b, sentences)
}

// warnIfNobodyHonours warns where Ebbtide is not installed.
func (o *lockOptions) warnIfNobodyHonours(ctx context.Context) {
	err := o.clients.Discovery().RESTClient().Get().AbsPath("/apis/" + v1alpha1.SchemeGroupVersion.Group).Do(ctx).Error()
	switch {
	case apierrors.IsNotFound(err):
		fmt.Fprintf(o.ErrOut, "warning: Ebbtide is not installed in this cluster (nobody serves %s), and the lock protects nothing until it is\n", v1alpha1.SchemeGroupVersion.Group)
	case err != nil:
		fmt.Fprintln(o.ErrOut, "warning: Ebbtide may not be installed in this cluster, and then the lock protects nothing:", err)
	}
}
