// Package check tests whether an installation works, beyond ready pods: the API server calls the
// webhooks, their changes arrive, and a manager leads and acts. Its NodeMaintenance selects a
// node that does not exist and is always removed, so no node or pod is touched. The markers are
// the rights of its account.
package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/apierror"
	"ebbtide.dev/ebbtide/internal/core/command"
	"ebbtide.dev/ebbtide/internal/core/excerpt"
)

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,verbs=create
// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,resourceNames=ebbtide-check,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes,resourceNames=ebbtide-check,verbs=delete
// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=create,namespace=release

const (
	// name is that of everything that a check asks for; no node has it.
	name = "ebbtide-check"
	// maxError is how many bytes of an error are shown.
	maxError = 500
)

// Check tries an installation.
type Check struct {
	// Client is that of the account of the check.
	Client client.WithWatch
	// Namespace is that of the managers.
	Namespace string
	// Timeout is how long all of it may take.
	Timeout time.Duration
	// Out gets a line for each check, and what to do if it fails.
	Out io.Writer
}

// failure is why a check failed and what to do about it.
type failure struct{ why, help string }

// Run makes all checks.
//
// Errors: one of them failed; Out says which and why.
func (c Check) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	checks := []struct {
		what string
		try  func(context.Context) *failure
	}{
		{"the account of the managers has its rights: no part of them is left out", c.mayAct},
		{"the API server asks the validating webhooks: an Evacuation of a pod that does not exist is refused", c.validates},
		{"the API server asks the mutating webhooks: a NodeMaintenance gets its drain plan", c.mutates},
		{"the leader acts: a NodeMaintenance over no node goes from Idle to Complete", c.acts},
	}
	failed := 0
	for _, one := range checks {
		problem := one.try(ctx)
		if problem == nil {
			fmt.Fprintln(c.Out, "ok   ", one.what)
			continue
		}
		failed++
		fmt.Fprintf(c.Out, "FAIL  %s\n      what happened: %s\n      what to do: %s\n", one.what, problem.why, problem.help)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(checks))
	}
	return nil
}

// The webhook that validates Evacuations, and the policy that lets nobody begin anything while
// Ebbtide is being uninstalled, as the chart names them.
const evacuations, uninstalls = "evacuations.ebbtide.dev", "ebbtide-uninstall"

// validates asks for what our webhook refuses, whatever the account may do.
func (c Check) validates(ctx context.Context) *failure {
	e := &v1alpha1.Evacuation{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: string(absent) + "-" + name},
		Spec:       v1alpha1.EvacuationSpec{PodRef: v1alpha1.LocalPodReference{Name: name, UID: absent}},
	}
	e.Finalizers = []string{v1alpha1.InstigatorFinalizerPrefix + "check.ebbtide.dev"}
	err := c.Client.Create(ctx, e, client.DryRunAll)
	if refused := apierrors.IsInvalid(err) || apierrors.IsForbidden(err); refused && apierror.Webhook(err.Error()) == evacuations {
		return nil
	}
	return c.explain(err, "it was not refused", "ValidatingWebhookConfiguration")
}

// mutates asks for what our webhook completes.
func (c Check) mutates(ctx context.Context) *failure {
	m := maintenance()
	// One of an earlier check would be all that the API server speaks of.
	m.Name, m.GenerateName = "", name+"-"
	err := c.Client.Create(ctx, m, client.DryRunAll)
	if err == nil && len(m.Spec.DrainPlan) > 0 {
		return nil
	}
	return c.explain(err, "it got none", "MutatingWebhookConfiguration")
}

// explain says what to do about a webhook that was not asked, or about another refusal.
func (c Check) explain(err error, otherwise, configuration string) *failure {
	switch {
	case err == nil:
		return &failure{otherwise, command.Of("see whether %s ebbtide is installed and names the Service of the managers: "+
			"kubectl get %s ebbtide -o yaml; if not, install the chart again", configuration, strings.ToLower(configuration))}
	case apierror.UncalledWebhook(err.Error()) != "":
		return &failure{brief(err), command.Of("see whether managers are ready: kubectl get pods -n %[1]s -l app.kubernetes.io/name=ebbtide; "+
			"whether the Service finds them: kubectl get endpointslices -n %[1]s -l kubernetes.io/service-name=ebbtide-webhook; "+
			"and whether NetworkPolicies (networkPolicy.apiServerCIDRs of the chart) and firewalls let the API server reach port 9443 of their nodes", c.Namespace)}
	case apierror.Policy(err.Error()) == uninstalls:
		return &failure{brief(err), "nothing, if it is; otherwise delete that ConfigMap"}
	case apierrors.IsForbidden(err):
		return &failure{brief(err), "see which rights the account of the check has: the chart gives them with ClusterRole and Role ebbtide-check"}
	}
	return &failure{brief(err), command.Of("look for the same words in the logs of the managers: kubectl logs -n %s -l app.kubernetes.io/name=ebbtide", c.Namespace)}
}

func brief(err error) string { return excerpt.Line(err.Error(), maxError) }

// absent is a UID that nobody has.
const absent = types.UID("00000000-0000-4000-8000-0000eb000000")

// maintenance is planned for a node that does not exist.
func maintenance() *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.NodeMaintenanceSpec{
			Stage: v1alpha1.StageIdle, Reason: "a check of the installation",
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}},
			}},
		},
	}
}

var errOver = errors.New("the time is up")
