package api

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

const registers = v1alpha1.EvacuatorAnnotationPrefix

// ofPolicy begins the warnings of our policies.
var ofPolicy = regexp.MustCompile(`^.* with binding 'ebbtide-[a-z-]+': `)

// warnings are what the API server said to one client beside its answers.
type warnings struct {
	mu   sync.Mutex
	text []string
}

// HandleWarningHeader keeps a warning without the policy's name before it.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if named := ofPolicy.FindString(text); named != "" {
		w.text = append(w.text, text[len(named):])
	}
}

// take returns what was said since it was called last.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.text
	w.text = nil
	return text
}

// warned returns a client of an API server with our policies, and what it is warned of.
func warned(t *testing.T) (client.Client, *warnings) {
	t.Helper()
	return warnedBy(t, cluster.Start(t, cluster.Spec{OnlyAPIServer: true}))
}

func warnedBy(t *testing.T, server *cluster.Cluster) (client.Client, *warnings) {
	t.Helper()
	installPolicies(t, server)
	heard := &warnings{}
	return as(t, server, rest.ImpersonationConfig{}, heard), heard
}

// step is a change of an object, and the warnings of which its writer hears.
type step struct {
	by     client.Client
	change string
	want   []string
}

// play makes one change of an object after the other.
func (w *warnings) play(t *testing.T, o *unstructured.Unstructured, steps ...step) {
	t.Helper()
	for _, s := range steps {
		if err := patch(t, s.by, o, s.change); err != nil {
			t.Fatal(err)
		}
		w.heard(t, s.change, s.want...)
	}
}

// heard wants these warnings, and no others, since the last time.
func (w *warnings) heard(t *testing.T, after string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.take(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("warnings after %s (-want +got):\n%s", after, diff)
	}
}

// installPolicies installs our policies and no webhook, and returns when they are obeyed.
func installPolicies(t *testing.T, server *cluster.Cluster) {
	t.Helper()
	last := []string{lastPolicy, lastBinding}
	for n, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		for _, o := range append(admission(t, kind), object(t, last[n])) {
			if err := server.Client.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
		}
	}
	// The API server reads policies from a cache of its own, in the order in which they were made.
	patience.Eventually(t, "the policies to be obeyed", func(ctx context.Context) (string, bool) {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: obeyed}}
		err := server.Client.Create(ctx, probe, client.DryRunAll)
		return fmt.Sprint(err), apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
	})
}

// obeyed is a policy of the tests that refuses a ConfigMap of its name. It is made after ours.
const (
	obeyed     = "policies-are-obeyed"
	lastPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: ` + obeyed + `}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations: [{expression: "object.metadata.name != '` + obeyed + `'"}]
`
	lastBinding = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: ` + obeyed + `}
spec: {policyName: ` + obeyed + `, validationActions: [Deny]}
`
)

// annotated is a pod with these annotations.
func annotated(name string, annotations map[string]string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %s
  namespace: default
  annotations:
%s
spec:
  containers: [{name: app, image: app}]`, name, pairs(annotations, "    "))
}

// pairs are the lines of a map.
func pairs(values map[string]string, prefix string) string {
	var lines []string
	for key, value := range values {
		lines = append(lines, fmt.Sprintf("%s%s: %q", prefix, key, value))
	}
	return strings.Join(lines, "\n")
}

// deployment has the value of our own class, if any, and a template with these annotations.
func deployment(name, surge string, template map[string]string) string {
	own := map[string]string{"example.com/note": "any"}
	if surge != "" {
		own[registers+v1alpha1.DeploymentEvacuatorClass] = surge
	}
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %s
  namespace: default
  annotations:
%s
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations:
%s
    spec:
      containers: [{name: app, image: app}]`, name, pairs(own, "    "), pairs(template, "        "))
}

// Annotations come in no order; those with the same fault share a warning.
func TestAWarningNamesAllAnnotations(t *testing.T) {
	t.Parallel()
	c, heard := warned(t)
	tests := map[string]struct{ value, want string }{
		"bad priorities":  {"high", ` is ignored: priority "high" must be an integer from 0 to 100000, as in "10000/controller"`},
		"two controllers": {"10000/controller", `at most one evacuator may have the role "controller", here are `},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := try(t, c, annotated("several", map[string]string{registers + "a.example.com": test.value, registers + "b.example.com": test.value}))
			if err != nil {
				t.Errorf("refused: %v", err)
			}
			got := heard.take()
			for _, words := range []string{test.want, registers + "a.example.com", registers + "b.example.com"} {
				if len(got) != 1 || !strings.Contains(got[0], words) {
					t.Errorf("warnings: %q; want one that says %q", got, words)
				}
			}
		})
	}
}

// Nobody is told again by each change of a pod.
func TestUpdateOfAPodIsNotWarnedOf(t *testing.T) {
	t.Parallel()
	c, heard := warned(t)
	o := create(t, c, annotated("updated", map[string]string{registers + "a.example.com": "1"}))
	heard.play(t, o, step{c, "metadata: {annotations: {" + registers + "a.example.com: high}}", nil})
}

// Whoever applies a Deployment is told what its pods would be told of, which
// are created by somebody who does not read it.
func TestApplierOfATemplateIsWarned(t *testing.T) {
	t.Parallel()
	c, heard := warned(t)
	tests := map[string]struct {
		document string
		want     []string
	}{
		"a good template": {deployment("good", "10000/controller", map[string]string{registers + "a.example.com": "9"}), nil},
		"a bad template":  {deployment("bad", "", map[string]string{registers + "a.example.com": "high"}), []string{badPriority("a.example.com", "high")}},
		"a bad request to surge": {
			deployment("surge", "yes", nil),
			[]string{"annotation " + registers + `deployment.apps.k8s.io must be "10000/controller", not "yes"`},
		},
		"a StatefulSet":               {strings.Replace(deployment("stateful", "", map[string]string{registers + "a.example.com": "high"}), "kind: Deployment", "kind: StatefulSet", 1), []string{badPriority("a.example.com", "high")}},
		"a DaemonSet":                 {strings.Replace(deployment("daemon", "", map[string]string{registers + "a.example.com": "high"}), "kind: Deployment", "kind: DaemonSet", 1), []string{badPriority("a.example.com", "high")}},
		"a Job":                       {job(map[string]string{registers + "a.example.com": "high"}), []string{badPriority("a.example.com", "high")}},
		"a template without metadata": {strings.Replace(job(nil), "      metadata: {annotations: {}}\n", "", 1), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := try(t, c, test.document); err != nil {
				t.Errorf("refused: %v", err)
			}
			heard.heard(t, "its creation", test.want...)
		})
	}
}

func job(annotations map[string]string) string {
	return `
apiVersion: batch/v1
kind: Job
metadata: {name: job, namespace: default}
spec:
  template:
      metadata: {annotations: {` + strings.ReplaceAll(pairs(annotations, ""), "\n", ", ") + `}}
      spec:
        restartPolicy: Never
        containers: [{name: app, image: app}]`
}

// A template is checked when its annotations change, and by no other change.
func TestUpdateOfATemplateIsWarnedOfOnce(t *testing.T) {
	t.Parallel()
	c, heard := warned(t)
	o := create(t, c, deployment("changed", "", map[string]string{registers + "a.example.com": "1"}))
	heard.play(t, o,
		step{c, "spec: {template: {metadata: {annotations: {" + registers + "a.example.com: high}}}}", []string{badPriority("a.example.com", "high")}},
		step{c, "spec: {paused: true}", nil},
		step{c, "spec: {template: {metadata: {annotations: {" + registers + "a.example.com: '9'}}}}", nil})
}

// The API server finds nothing to say about our policies in the kinds that they match.
func TestPoliciesFitTheirKinds(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Spec{OnlyAPIServer: true})
	schemas, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	checker := &validating.TypeChecker{
		SchemaResolver: &resolver.ClientDiscoveryResolver{Discovery: schemas}, RestMapper: c.Client.RESTMapper(),
	}
	for _, policy := range policies(t) {
		for _, problem := range checker.Check(policy) {
			t.Errorf("%s: %s: %s", policy.Name, problem.FieldRef, problem.Warning)
		}
	}
}

// policies are the ValidatingAdmissionPolicies of the chart.
func policies(t *testing.T) (all []*admissionregistrationv1.ValidatingAdmissionPolicy) {
	t.Helper()
	for _, o := range admission(t, "ValidatingAdmissionPolicy") {
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, policy, true); err != nil {
			t.Fatal(err)
		}
		all = append(all, policy)
	}
	return all
}

// admission returns what the chart has of one kind that the API server asks about requests.
func admission(t *testing.T, kind string) (all []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range cluster.Chart(t) {
		if o.GetKind() == kind {
			all = append(all, o)
		}
	}
	if len(all) == 0 {
		t.Fatalf("the chart has no %s", kind)
	}
	return all
}
