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
		Short: "Lock a PodDisruptionBudget against disruptions",
		Long: `Lock a PodDisruptionBudget against disruptions, for example while you rebalance
storage.

While the lock holds, Ebbtide evicts none of the budget's pods, and evictions by
other clients are refused. Pods can still be deleted.

A lock expires. Lock again to renew it; its reason stays unless you specify
another. The lock is the annotation ` + v1alpha1.LockAnnotation + `. Requires the verbs
get and patch on the PodDisruptionBudget.`,
		Example: `  # Lock a budget for an hour
  kubectl ebbtide lock pdb/web

  # Lock a budget for two hours, with a reason for those who wait
  kubectl ebbtide lock pdb/db -n shop --for 2h --reason "moving shards, ask #storage"

  # Lock a budget in the name of a job
  kubectl ebbtide lock pdb/db -n shop --holder rebalancer/nightly`,
		RunE: runs(o),
	}
	cmd.Flags().DurationVar(&o.For, "for", time.Hour, "duration of the lock, at most 4h or the manager's --longest-lock")
	cmd.Flags().StringVar(&o.Reason, "reason", "", "reason shown to everyone who waits")
	o.addFlags(cmd)
	return cmd
}

// Validate rejects invalid flags.
func (o *lockOptions) Validate() error {
	if err := o.budgetOptions.Validate(); err != nil {
		return err
	}
	return budget.Claim{For: o.For, Reason: o.Reason}.Check()
}

// Run locks the budget, or reports its holder.
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
	o.warnWithoutEbbtide(ctx)
	return o.report(b, claim.Now)
}

// instead returns what to do about the lock of another holder.
func (o *lockOptions) instead(obstacle budget.Hold, now time.Time) string {
	if maintenance, node, ok := drainOf(obstacle); ok {
		return fmt.Sprintf("It protects the pods that stay on node %s and is renewed until they are back. See its progress with\n  %s",
			node, o.describe(maintenance))
	}
	return fmt.Sprintf("It expires in %s unless it is renewed. Wait, or remove it with\n  %s", left(obstacle, now), o.unlock(" --force"))
}

// report prints the lock that the budget now bears.
func (o *lockOptions) report(b *policyv1.PodDisruptionBudget, now time.Time) error {
	hold, locked := budget.LockOf(b, now, 0)
	if !locked {
		return fmt.Errorf("PodDisruptionBudget %q is not locked although the API server accepted the lock: another client changes annotation %s",
			o.key, v1alpha1.LockAnnotation)
	}
	sentences := hold.Describe(b) + o.suffix()
	if o.dryRun.Mode == dryRunNone {
		sentences += fmt.Sprintf("\nIt expires in %s. Lock again to renew it, or remove it with\n  %s", left(hold, now), o.unlock(""))
	}
	return o.print(b, sentences)
}

// warnWithoutEbbtide warns where Ebbtide is not installed.
func (o *lockOptions) warnWithoutEbbtide(ctx context.Context) {
	err := o.clients.Discovery().RESTClient().Get().AbsPath("/apis/" + v1alpha1.SchemeGroupVersion.Group).Do(ctx).Error()
	switch {
	case apierrors.IsNotFound(err):
		fmt.Fprintf(o.ErrOut, "warning: Ebbtide is not installed in this cluster, so the lock has no effect (%s is not served)\n", v1alpha1.SchemeGroupVersion.Group)
	case err != nil:
		fmt.Fprintln(o.ErrOut, "warning: cannot check whether Ebbtide is installed; without it the lock has no effect:", err)
	}
}
