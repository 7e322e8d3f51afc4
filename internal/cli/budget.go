package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/apierror"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/core/command"
)

const (
	// changeAttempts bounds the conflicts with other writers. The disruption controller writes
	// often while pods come and go.
	changeAttempts = 10
	fieldManager   = "kubectl-ebbtide"
)

// budgetOptions are the options that lock and unlock share.
type budgetOptions struct {
	genericiooptions.IOStreams
	connection
	Holder string
	dryRun
	output

	key     types.NamespacedName
	clients kubernetes.Interface
	clock   *clock
}

func (o *budgetOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.Holder, "holder", "", "holder of the lock (default user/ and your user name)")
	o.dryRun.addFlag(cmd)
	o.output.addFlag(cmd, formatJSON, formatYAML, formatName)
	o.connection.addFlags(cmd)
	cmd.ValidArgsFunction = o.suggest
}

// Complete reads the argument.
func (o *budgetOptions) Complete(args []string) error {
	s, err := oneSubject(args, kindBudget)
	o.key = types.NamespacedName{Namespace: s.namespace, Name: s.name}
	return err
}

// Validate rejects invalid flags.
func (o *budgetOptions) Validate() error {
	if err := errors.Join(o.dryRun.check(), o.output.check()); err != nil {
		return err
	}
	if o.flags.Changed("holder") {
		return budget.CheckHolder(o.Holder)
	}
	return nil
}

func (o *budgetOptions) open() (err error) {
	var namespace string
	o.clients, o.clock, namespace, err = o.connection.open(o.ErrOut)
	o.key.Namespace = cmp.Or(o.key.Namespace, namespace)
	return err
}

// identify returns the holder name of the user.
func (o *budgetOptions) identify(ctx context.Context) (holder string, err error) {
	if o.Holder != "" {
		return o.Holder, nil
	}
	review, err := o.clients.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
		return "", final(fmt.Errorf("the API server does not report your user name; specify --holder: %w", err))
	case err != nil:
		return "", fmt.Errorf("create selfsubjectreview: %w", err)
	case review.Status.UserInfo.Username == "":
		return "", errors.New("the API server does not report your user name; specify --holder")
	}
	holder = "user/" + review.Status.UserInfo.Username
	if err := budget.CheckHolder(holder); err != nil {
		return "", fmt.Errorf("your user name cannot hold a lock; specify --holder: %w", err)
	}
	return holder, nil
}

// edit is a merge patch of the annotations of a budget; nil changes nothing.
type edit map[string]any

// change reads the budget and writes what decide returns. After a conflict it decides again.
func (o *budgetOptions) change(ctx context.Context, decide func(*policyv1.PodDisruptionBudget, time.Time) (edit, error)) (*policyv1.PodDisruptionBudget, error) {
	for range changeAttempts {
		b, err := o.clients.PolicyV1().PodDisruptionBudgets(o.key.Namespace).Get(ctx, o.key.Name, metav1.GetOptions{})
		if err != nil {
			return nil, o.explain(err, "get")
		}
		now, err := o.clock.now()
		if err != nil {
			return nil, err
		}
		annotations, err := decide(b, now)
		if err != nil || annotations == nil {
			return b, err
		}
		b, err = o.write(ctx, b, annotations)
		if !apierrors.IsConflict(err) {
			return b, o.explain(err, "patch")
		}
	}
	return nil, fmt.Errorf("PodDisruptionBudget %q changed during each of %d attempts; try again", o.key, changeAttempts)
}

// write patches these annotations under the resource version that was read.
func (o *budgetOptions) write(ctx context.Context, b *policyv1.PodDisruptionBudget, annotations edit) (*policyv1.PodDisruptionBudget, error) {
	if o.dryRun.Mode == dryRunClient {
		b = b.DeepCopy()
		delete(b.Annotations, v1alpha1.LockAnnotation)
		if text, ok := annotations[v1alpha1.LockAnnotation].(string); ok {
			metav1.SetMetaDataAnnotation(&b.ObjectMeta, v1alpha1.LockAnnotation, text)
		}
		return b, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": b.UID, "resourceVersion": b.ResourceVersion, "annotations": annotations,
	}})
	if err != nil {
		return nil, err
	}
	options := metav1.PatchOptions{FieldManager: fieldManager, DryRun: o.dryRun.options()}
	return o.clients.PolicyV1().PodDisruptionBudgets(b.Namespace).Patch(ctx, b.Name, types.MergePatchType, patch, options)
}

// explain adds to an error of the API server what the user can do.
func (o *budgetOptions) explain(err error, verb string) error {
	switch {
	case apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return fmt.Errorf("PodDisruptionBudget %q not found in namespace %q. List them with\n  %s",
			o.key.Name, o.key.Namespace, command.Of("kubectl get pdb%s", o.again(o.key.Namespace)))
	case apierrors.IsForbidden(err) && lacks(err, verb):
		return final(fmt.Errorf("a lock is an annotation of its PodDisruptionBudget; it requires the verb %s on poddisruptionbudgets.policy in namespace %q:\n  %w",
			verb, o.key.Namespace, err))
	}
	return err
}

// lacks reports whether the user lacks this verb on budgets.
func lacks(err error, verb string) bool {
	right, found := apierror.MissingRight(err.Error())
	return found && right.Verb == verb && right.Resource == "poddisruptionbudgets"
}

// print prints the budget as -o specifies, otherwise these sentences.
func (o *budgetOptions) print(b *policyv1.PodDisruptionBudget, sentences string) error {
	shown := b.DeepCopy()
	shown.SetGroupVersionKind(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"))
	shown.ManagedFields = nil
	return o.output.print(o.Out, shown, "poddisruptionbudget.policy/"+b.Name, func(to io.Writer) error {
		_, err := fmt.Fprintln(to, sentences)
		return err
	})
}

// unlock returns the command that unlocks the budget.
func (o *budgetOptions) unlock(flags string) string {
	words := command.Join("%s unlock pdb/%s%s", commandName(), o.key.Name, o.again(o.key.Namespace))
	if o.flags.Changed("holder") {
		words = command.Join("%s --holder %s", words, command.Quote(o.Holder))
	}
	return words.String() + flags
}

// describe returns the command that shows the maintenance which has locked a budget.
func (o *budgetOptions) describe(maintenance string) string {
	return o.kubectl("describe nodemaintenance %s", maintenance)
}

// drainOf returns the maintenance and node of the lock of a drain; ok is false for other locks.
func drainOf(hold budget.Hold) (maintenance, node string, ok bool) {
	maintenance, node, ok = hold.Drain()
	// Other names are forged.
	ok = ok && len(validation.IsDNS1123Subdomain(maintenance)) == 0 && len(validation.IsDNS1123Subdomain(node)) == 0
	return maintenance, node, ok
}

// left returns for how long a lock still holds.
func left(hold budget.Hold, now time.Time) string { return duration.HumanDuration(hold.Ends.Sub(now)) }

// suggest completes the names of budgets.
func (o *budgetOptions) suggest(cmd *cobra.Command, args []string, written string) ([]string, cobra.ShellCompDirective) {
	prefix := "pdb/"
	switch {
	case len(args) == 1 && isKind(args[0], kindBudget):
		prefix = ""
	case len(args) > 0:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return o.connection.suggest(suggestBudgets.under(prefix))(cmd, args, written)
}
