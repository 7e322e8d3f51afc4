package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
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
	// changeAttempts is how often a change is decided anew because somebody else
	// was faster. The disruption controller writes often while pods come and go.
	changeAttempts = 10
	fieldManager   = "kubectl-ebbtide"
)

// budgetKinds are the names of the kind that kubectl takes, without the group.
var budgetKinds = []string{"pdb", "pdbs", "poddisruptionbudget", "poddisruptionbudgets"}

// budgetOptions is what lock and unlock have in common: a budget, and who the
// user is to it.
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
	flags.StringVar(&o.Holder, "holder", "", "whose lock it is; if you are not told apart by how you log in (default: user/ and who the API server says that you are)")
	o.dryRun.addFlag(cmd)
	o.output.addFlag(cmd, "Print the budget instead of sentences", formatJSON, formatYAML, formatName)
	o.connection.addFlags(cmd)
	cmd.ValidArgsFunction = o.suggest
}

// Complete reads the arguments. It asks nobody.
func (o *budgetOptions) Complete(args []string) (err error) {
	o.key.Name, err = budgetName(args)
	return err
}

// budgetName takes KIND/NAME and KIND NAME, as kubectl does.
func budgetName(args []string) (string, error) {
	words := slices.Clone(args)
	if len(words) > 0 {
		words = slices.Concat(strings.SplitN(words[0], "/", 2), words[1:])
	}
	switch {
	case len(words) == 0:
		return "", errors.New("name a budget: pdb/NAME")
	case !isBudgetKind(words[0]) && len(words) == 1:
		return "", fmt.Errorf("say of what kind %q is: pdb/%s", words[0], words[0])
	case !isBudgetKind(words[0]):
		return "", fmt.Errorf("%q is not a PodDisruptionBudget; nothing else can be locked: pdb/NAME", words[0])
	case len(words) == 1 || words[1] == "":
		return "", fmt.Errorf("name a budget: %s/NAME", words[0])
	case len(words) > 2:
		return "", fmt.Errorf("one budget at a time, not also %s", strings.Join(words[2:], " "))
	}
	if wrong := validation.IsDNS1123Subdomain(words[1]); len(wrong) > 0 {
		return "", fmt.Errorf("%q is no name of a PodDisruptionBudget: %s", words[1], wrong[0])
	}
	return words[1], nil
}

func isBudgetKind(word string) bool {
	kind, group, _ := strings.Cut(strings.ToLower(word), ".")
	return slices.Contains(budgetKinds, kind) && slices.Contains([]string{"", "policy", "v1.policy"}, group)
}

// Validate refuses what no cluster would make right.
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
	o.clients, o.clock, o.key.Namespace, err = o.connection.open(o.ErrOut)
	return err
}

// identify finds out who the user is to a lock.
func (o *budgetOptions) identify(ctx context.Context) (holder string, err error) {
	if o.Holder != "" {
		return o.Holder, nil
	}
	review, err := o.clients.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
		return "", said{fmt.Errorf("the API server does not tell who you are, so say it with --holder: %w", err)}
	case err != nil:
		return "", fmt.Errorf("ask who you are: %w", err)
	case review.Status.UserInfo.Username == "":
		return "", errors.New("the API server does not tell who you are, so say it with --holder")
	}
	holder = "user/" + review.Status.UserInfo.Username
	if err := budget.CheckHolder(holder); err != nil {
		return "", fmt.Errorf("your name is not fit for a lock, so say another with --holder: %w", err)
	}
	return holder, nil
}

// edit is what becomes of the annotations of a budget; nil leaves it as it is.
type edit map[string]any

// change reads the budget, and writes what decide makes of it unless somebody
// else has written in between; then it is decided anew.
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
	return nil, fmt.Errorf("PodDisruptionBudget %s was written by others %d times in a row; try again", o.key, changeAttempts)
}

// write changes nothing but these annotations, and only of what was read.
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
	options := metav1.PatchOptions{FieldManager: fieldManager}
	if o.dryRun.Mode == dryRunServer {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return o.clients.PolicyV1().PodDisruptionBudgets(b.Namespace).Patch(ctx, b.Name, types.MergePatchType, patch, options)
}

// explain says what to do about an error of the API server.
func (o *budgetOptions) explain(err error, verb string) error {
	switch {
	case apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return fmt.Errorf("there is no PodDisruptionBudget %s in namespace %s. See those that are there with\n  %s",
			o.key.Name, o.key.Namespace, command.Of("kubectl get pdb%s", o.again(o.key.Namespace)))
	case apierrors.IsForbidden(err) && lacks(err, verb):
		return said{fmt.Errorf("a lock is an annotation of its budget, and you may not %s budgets in namespace %s. "+
			"Ask whoever runs it for the verb %s on poddisruptionbudgets.policy there. The API server says:\n  %w",
			verb, o.key.Namespace, verb, err)}
	}
	return err
}

// lacks reports whether the user has not this verb on budgets.
func lacks(err error, verb string) bool {
	right, found := apierror.MissingRight(err.Error())
	return found && right.Verb == verb && right.Resource == "poddisruptionbudgets"
}

// print prints the budget as the user wants it; otherwise these sentences.
func (o *budgetOptions) print(b *policyv1.PodDisruptionBudget, sentences string) error {
	shown := b.DeepCopy()
	shown.SetGroupVersionKind(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"))
	shown.ManagedFields = nil
	return o.output.print(o.Out, shown, "poddisruptionbudget.policy/"+b.Name, func(to io.Writer) error {
		_, err := fmt.Fprintln(to, sentences)
		return err
	})
}

// unlock is the command that unlocks the budget.
func (o *budgetOptions) unlock(flags string) string {
	words := command.Join("%s unlock pdb/%s%s", commandName(), o.key.Name, o.again(o.key.Namespace))
	if o.flags.Changed("holder") {
		words = command.Join("%s --holder %s", words, command.Quote(o.Holder))
	}
	return words.String() + flags
}

// look is the command that shows whose maintenance has locked a budget.
func (o *budgetOptions) look(maintenance string) string {
	return o.kubectl("describe nodemaintenance %s", maintenance)
}

// drainOf returns whose lock of a drain it is; ok is false if it is none.
func drainOf(hold budget.Hold) (maintenance, node string, ok bool) {
	maintenance, node, ok = hold.Drain()
	// What says so and has no such names is not from a drain, and not fit to be shown.
	ok = ok && len(validation.IsDNS1123Subdomain(maintenance)) == 0 && len(validation.IsDNS1123Subdomain(node)) == 0
	return maintenance, node, ok
}

// left is how long a lock holds from now on.
func left(hold budget.Hold, now time.Time) string { return duration.HumanDuration(hold.Ends.Sub(now)) }

// suggest completes the names of budgets.
func (o *budgetOptions) suggest(cmd *cobra.Command, args []string, written string) ([]string, cobra.ShellCompDirective) {
	prefix := "pdb/"
	switch {
	case len(args) == 1 && isBudgetKind(args[0]) && !strings.Contains(args[0], "/"):
		prefix = ""
	case len(args) > 0:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return o.connection.suggest(suggestBudgets.under(prefix))(cmd, args, written)
}
