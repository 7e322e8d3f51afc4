package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
)

type unlockOptions struct {
	budgetOptions
	Force bool
}

func newUnlock(streams genericiooptions.IOStreams) *cobra.Command {
	o := &unlockOptions{budgetOptions: budgetOptions{IOStreams: streams}}
	cmd := &cobra.Command{
		Use:   "unlock pdb/NAME",
		Short: "Remove the lock of a PodDisruptionBudget",
		Long: `Remove the lock of a PodDisruptionBudget.

Without --force, only your own lock is removed. A drain locks the budget again
for as long as it needs the lock. Unlocking a budget without a lock succeeds.`,
		Example: `  # Remove your own lock
  kubectl ebbtide unlock pdb/web

  # Remove the lock of another holder
  kubectl ebbtide unlock pdb/db -n shop --force`,
		RunE: runs(o),
	}
	cmd.Flags().BoolVar(&o.Force, "force", false, "remove the lock of any holder")
	o.addFlags(cmd)
	return cmd
}

// Run removes the lock.
func (o *unlockOptions) Run(ctx context.Context) error {
	if err := o.open(); err != nil {
		return err
	}
	holder := ""
	if !o.Force {
		var err error
		if holder, err = o.identify(ctx); err != nil {
			return err
		}
	}
	sentences := ""
	b, err := o.change(ctx, func(b *policyv1.PodDisruptionBudget, now time.Time) (edit, error) {
		release, hold := budget.ReleaseOf(b, holder, now, o.Force)
		switch release {
		case budget.ReleaseRefused:
			return nil, fmt.Errorf("%s\n%s", hold.Describe(b), o.instead(hold, holder, now))
		case budget.ReleaseGranted:
			sentences = o.granted(hold)
			return edit{v1alpha1.LockAnnotation: nil}, nil
		case budget.ReleaseEnded:
			sentences = fmt.Sprintf("PodDisruptionBudget %s is not locked: its last lock expired at %s", o.key, hold.Ends.UTC().Format(time.RFC3339))
		default:
			sentences = fmt.Sprintf("PodDisruptionBudget %s is not locked", o.key)
		}
		return nil, nil
	})
	if err != nil {
		return err
	}
	return o.print(b, sentences)
}

// granted reports which lock was removed.
func (o *unlockOptions) granted(hold budget.Hold) string {
	sentences := fmt.Sprintf("PodDisruptionBudget %s is unlocked%s", o.key, o.suffix())
	if o.Force {
		sentences += fmt.Sprintf("\nIts holder was %q, until %s", hold.Holder, hold.Ends.UTC().Format(time.RFC3339))
	}
	if maintenance, _, ok := drainOf(hold); ok {
		sentences += fmt.Sprintf("\nNodeMaintenance %s locks it again while it needs the lock. See its progress with\n  %s", maintenance, o.describe(maintenance))
	}
	return sentences
}

// instead returns what to do about the lock of another holder.
func (o *unlockOptions) instead(hold budget.Hold, holder string, now time.Time) string {
	force := o.unlock(" --force")
	if maintenance, node, ok := drainOf(hold); ok {
		return fmt.Sprintf("It protects the pods that stay on node %s, and NodeMaintenance %s locks it again while it needs the lock. See its progress with\n"+
			"  %s\nor remove it with\n  %s", node, maintenance, o.describe(maintenance), force)
	}
	return fmt.Sprintf("You are %s. It expires in %s unless it is renewed. Remove it with\n  %s", holder, left(hold, now), force)
}
