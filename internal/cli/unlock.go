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

Your own lock goes; so does with --force that of anybody else. A drain whose
lock is taken away takes it again while it needs it. That a budget is not locked
is no error.

Those flags of kubectl that choose a cluster and a user and are not listed below
(--server, --token, --as-group and so on) work, too.`,
		Example: `  # Remove your own lock
  kubectl ebbtide unlock pdb/web

  # Remove somebody else's lock, or one that nobody can read
  kubectl ebbtide unlock pdb/db -n shop --force`,
		RunE: runs(o),
	}
	cmd.Flags().BoolVar(&o.Force, "force", false, "remove the lock whoever has it")
	o.addFlags(cmd)
	return cmd
}

// Run removes the lock or says why not.
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
			sentences = fmt.Sprintf("PodDisruptionBudget %s is not locked: its last lock ended at %s", o.key, hold.Ends.UTC().Format(time.RFC3339))
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

// granted says what has gone. Who takes a lock from somebody else may want to
// tell them.
func (o *unlockOptions) granted(hold budget.Hold) string {
	sentences := fmt.Sprintf("PodDisruptionBudget %s is unlocked%s", o.key, o.only())
	if o.Force {
		sentences += fmt.Sprintf("\nIts lock was that of %q, until %s", hold.Holder, hold.Ends.UTC().Format(time.RFC3339))
	}
	if maintenance, _, ok := drainOf(hold); ok {
		sentences += fmt.Sprintf("\nNodeMaintenance %s takes it again while it needs it. See how far it is with\n  %s", maintenance, o.look(maintenance))
	}
	return sentences
}

// instead says how to get on where the lock is not one's own.
func (o *unlockOptions) instead(hold budget.Hold, holder string, now time.Time) string {
	force := o.unlock(" --force")
	if maintenance, node, ok := drainOf(hold); ok {
		return fmt.Sprintf("It is for the pods that stay on node %s, and NodeMaintenance %s takes it again while it needs it. See how far it is with\n"+
			"  %s\nor take it away all the same with\n  %s", node, maintenance, o.look(maintenance), force)
	}
	if hold.Unreadable != nil {
		return fmt.Sprintf("It ends in %s, unless the budget is changed. Remove it now with\n  %s", left(hold, now), force)
	}
	return fmt.Sprintf("You are %s, so it is not yours. It ends in %s, unless it is renewed. Take it from its holder with\n  %s",
		holder, left(hold, now), force)
}
