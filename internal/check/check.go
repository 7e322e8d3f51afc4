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

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances;noderollouts,verbs=create
// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,resourceNames=ebbtide-check,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes,resourceNames=ebbtide-check,verbs=delete
// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations,verbs=create,namespace=release

const (
	// name is shared by all objects of a check; no node has it.
	name = "ebbtide-check"
	// maxError bounds an error, in bytes.
	maxError = 500
)

// Check tests an installation.
type Check struct {
	// Client uses the account of the check.
	Client client.WithWatch
	// Namespace of the managers.
	Namespace string
	// Timeout bounds all checks.
	Timeout time.Duration
	// Out receives a line for each check, and a suggestion if it fails.
	Out io.Writer
}

// failure is the reason of a failed check, and a suggestion.
type failure struct{ why, help string }

// Run makes all checks, and returns an error if one failed.
func (c Check) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	checks := []struct {
		what string
		try  func(context.Context) *failure
	}{
		{"the managers have the rights for all of their parts", c.mayAct},
		{"the API server calls the validating webhooks: an Evacuation of a missing pod and a NodeRollout in an unknown time zone are rejected", c.validates},
		{"the API server calls the mutating webhooks: a NodeMaintenance gets its drain plan", c.mutates},
		{"the leader acts: a NodeMaintenance without nodes goes from Idle to Complete", c.acts},
	}
	failed := 0
	for _, one := range checks {
		problem := one.try(ctx)
		if problem == nil {
			fmt.Fprintln(c.Out, "ok   ", one.what)
			continue
		}
		failed++
		fmt.Fprintf(c.Out, "FAIL  %s\n      reason: %s\n      suggestion: %s\n", one.what, problem.why, problem.help)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(checks))
	}
	return nil
}

// Names in the chart of the webhook of Evacuations and of the policy during an uninstall.
const evacuations, rollouts, uninstalls = "evacuations.ebbtide.dev", "noderollouts.ebbtide.dev", "ebbtide-uninstall"

// validates requests what our webhook rejects.
func (c Check) validates(ctx context.Context) *failure {
	e := &v1alpha1.Evacuation{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: string(absent) + "-" + name},
		Spec:       v1alpha1.EvacuationSpec{PodRef: v1alpha1.LocalPodReference{Name: name, UID: absent}},
	}
	e.Finalizers = []string{v1alpha1.InstigatorFinalizerPrefix + "check.ebbtide.dev"}
	for webhook, object := range map[string]client.Object{evacuations: e, rollouts: rollout()} {
		err := c.Client.Create(ctx, object, client.DryRunAll)
		if refused := apierrors.IsInvalid(err) || apierrors.IsForbidden(err); !refused || apierror.Webhook(err.Error()) != webhook {
			return c.explain(err, "it was not rejected by "+webhook, "ValidatingWebhookConfiguration")
		}
	}
	return nil
}

// mutates requests what our webhook completes.
func (c Check) mutates(ctx context.Context) *failure {
	m := maintenance()
	// An object of an earlier check would be the only error.
	m.Name, m.GenerateName = "", name+"-"
	err := c.Client.Create(ctx, m, client.DryRunAll)
	if err == nil && len(m.Spec.DrainPlan) > 0 {
		return nil
	}
	return c.explain(err, "it has none", "MutatingWebhookConfiguration")
}

// explain returns the failure of a webhook that was not called, or of another rejection.
func (c Check) explain(err error, otherwise, configuration string) *failure {
	switch {
	case err == nil:
		return &failure{otherwise, command.Of("check that %s ebbtide exists and names the Service of the managers: "+
			"kubectl get %s ebbtide -o yaml; otherwise upgrade the chart", configuration, strings.ToLower(configuration))}
	case apierror.UncalledWebhook(err.Error()) != "":
		return &failure{brief(err), command.Of("check that managers are ready: kubectl get pods -n %[1]s -l app.kubernetes.io/name=ebbtide; "+
			"that the Service finds them: kubectl get endpointslices -n %[1]s -l kubernetes.io/service-name=ebbtide-webhook; "+
			"and that NetworkPolicies (chart value networkPolicy.apiServerCIDRs) and firewalls allow the API server to connect to port 9443", c.Namespace)}
	case apierror.Policy(err.Error()) == uninstalls:
		return &failure{brief(err), "none during an uninstall; otherwise delete that ConfigMap"}
	case apierrors.IsForbidden(err):
		return &failure{brief(err), "check the rights of the account, which ClusterRole and Role ebbtide-check of the chart grant"}
	}
	return &failure{brief(err), command.Of("search the logs of the managers for it: kubectl logs -n %s -l app.kubernetes.io/name=ebbtide", c.Namespace)}
}

func brief(err error) string { return excerpt.Line(err.Error(), maxError) }

// absent is a UID that no pod has.
const absent = types.UID("00000000-0000-4000-8000-0000eb000000")

// maintenance returns a planned one of a node that does not exist.
func maintenance() *v1alpha1.NodeMaintenance {
	return &v1alpha1.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageIdle, Reason: "a check of the installation", NodeSelector: noNode()},
	}
}

// rollout returns an invalid one of a node that does not exist.
func rollout() *v1alpha1.NodeRollout {
	return &v1alpha1.NodeRollout{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.NodeRolloutSpec{
			NodeSelector: noNode(), State: v1alpha1.RolloutPaused,
			Windows: []v1alpha1.MaintenanceWindow{{From: "00:00", To: "01:00", TimeZone: "No/Where"}},
		},
	}
}

// noNode selects a node that does not exist.
func noNode() *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}},
	}}
}

var errOver = errors.New("timed out")
