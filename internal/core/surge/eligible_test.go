package surge_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/internal/core/surge"
	"ebbtide.dev/ebbtide/test/golden"
)

const registers = v1alpha1.EvacuatorAnnotationPrefix + v1alpha1.DeploymentEvacuatorClass

func TestDeploymentsThatDoNotSurge(t *testing.T) {
	t.Parallel()
	maxSurge := func(most intstr.IntOrString) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate.MaxSurge = &most }
	}
	tests := map[string]struct {
		change     func(*appsv1.Deployment)
		ineligible bool
	}{
		"nothing":            {func(*appsv1.Deployment) {}, false},
		"a default maxSurge": {func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate = nil }, false},
		"a share rounds up":  {maxSurge(intstr.FromString("1%")), false},
		"no surge":           {maxSurge(intstr.FromInt32(0)), true},
		"no share":           {maxSurge(intstr.FromString("0%")), true},
		"nonsense":           {maxSurge(intstr.FromString("much")), true},
		"deletion":           {func(d *appsv1.Deployment) { d.DeletionTimestamp = new(ago(0)) }, true},
		"a pause":            {func(d *appsv1.Deployment) { d.Spec.Paused = true }, true},
		"Recreate":           {func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType }, true},
		"a selected hash": {
			func(d *appsv1.Deployment) {
				d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{hashLabel: "abc"}}
			}, true,
		},
		"a hash in an expression": {
			func(d *appsv1.Deployment) {
				d.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: hashLabel, Operator: metav1.LabelSelectorOpExists}}}
			}, true,
		},
		"a port of the node": {
			func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 80}, {HostPort: 8080}}}}
			}, true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := web(1).Deployment
			test.change(d)
			got := surge.Ineligible(d)
			golden.Message(t, got)
			if (got != "") != test.ineligible {
				t.Errorf("ineligible because %q, want it ineligible: %t", got, test.ineligible)
			}
		})
	}
}

func TestWhoseEvacuatorWeAre(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		pod, deployment string // values of the annotation
		mode            surge.Mode
		change          func(*scene)
		want, problems  string
	}{
		"nobody's":                          {mode: surge.Annotated},
		"an annotated pod's":                {pod: "5/own", mode: surge.Annotated, want: "deployment.apps.k8s.io 5/own"},
		"an annotated Deployment's":         {deployment: "7/own", mode: surge.Annotated, want: "deployment.apps.k8s.io 7/own"},
		"the pod knows better":              {pod: "5/own", deployment: "7/own", mode: surge.Auto, want: "deployment.apps.k8s.io 5/own"},
		"everybody's":                       {mode: surge.Auto, want: "deployment.apps.k8s.io 10000/controller"},
		"everybody's who can":               {mode: surge.Auto, change: func(s *scene) { s.Deployment.Spec.Paused = true }},
		"nobody's without a Deployment":     {mode: surge.Auto, change: func(s *scene) { s.Deployment = nil }},
		"nobody's when off":                 {pod: "5/own", mode: surge.Off, problems: "surging is switched off"},
		"no Deployment's when off":          {deployment: "5/own", mode: surge.Off},
		"nobody's who cannot be understood": {deployment: "much", mode: surge.Auto, problems: `priority "much" must be an integer`},
		"a pod's that names our responder":  {mode: surge.Annotated, change: names, want: "deployment.apps.k8s.io 10000/controller"},
		"unless it cannot be replaced":      {mode: surge.Annotated, change: func(s *scene) { names(s); s.Deployment.Spec.Paused = true }},
		"or surging is off":                 {mode: surge.Off, change: names},
		"the annotation knows better":       {pod: "5/own", mode: surge.Annotated, change: names, want: "deployment.apps.k8s.io 5/own"},
		"a detached pod's": {
			deployment: "7/own", mode: surge.Annotated, want: "deployment.apps.k8s.io 10000/controller",
			change: func(s *scene) { s.detached(0, 0); s.Deployment = nil },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := web(1)
			s.Pods[0].Annotations, s.Deployment.Annotations = registration(test.pod), registration(test.deployment)
			if test.change != nil {
				test.change(s)
			}
			evacuators, problems := surge.Evacuators(s.Pods[0], s.Deployment, test.mode)
			got, said := describe(evacuators, problems)
			if got != test.want {
				t.Errorf("evacuators are %q, want %q", got, test.want)
			}
			if (test.problems == "") != (said == "") || !strings.Contains(said, test.problems) {
				t.Errorf("problems are %q, want %q", said, test.problems)
			}
		})
	}
}

// names has the pod name responders, of which one is ours.
func names(s *scene) {
	s.Pods[0].Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "example.com/first"}, {Name: v1alpha1.DeploymentSurgeResponder}}
}

func TestWhyAPodCannotBeReplaced(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mode   surge.Mode
		change func(*scene)
		unable bool
	}{
		"it can":                                {surge.Annotated, func(*scene) {}, false},
		"off":                                   {surge.Off, func(*scene) {}, true},
		"off, and on its way":                   {surge.Off, func(s *scene) { s.detached(0, 0) }, false},
		"of nobody":                             {surge.Annotated, func(s *scene) { s.Pods[0].OwnerReferences = nil }, true},
		"of a Deployment that nobody knows yet": {surge.Annotated, func(s *scene) { s.Deployment = nil }, false},
		"of a Job":                              {surge.Annotated, func(s *scene) { s.Pods[0].OwnerReferences[0].Kind = "Job" }, true},
		"paused":                                {surge.Annotated, func(s *scene) { s.Deployment.Spec.Paused = true }, true},
	} {
		s := web(1)
		test.change(s)
		got := surge.Unable(s.Pods[0], s.Deployment, test.mode)
		golden.Message(t, got)
		if (got != "") != test.unable {
			t.Errorf("%s: %q, want it unable: %t", name, got, test.unable)
		}
	}
}

func registration(value string) map[string]string {
	if value == "" {
		return nil
	}
	return map[string]string{registers: value}
}

func describe(evacuators []v1alpha1.Evacuator, problems []podclass.Problem) (all, said string) {
	for _, e := range evacuators {
		all += fmt.Sprintf("%s %d/%s", e.EvacuatorClass, e.Priority, e.Role)
	}
	for _, problem := range problems {
		said += problem.Message
	}
	return all, said
}

func TestModes(t *testing.T) {
	t.Parallel()
	for _, mode := range []surge.Mode{surge.Annotated, surge.Auto, surge.Off} {
		if got, err := surge.ParseMode(string(mode)); got != mode || err != nil {
			t.Errorf("mode %q is read as %q, %v", mode, got, err)
		}
	}
	if _, err := surge.ParseMode("always"); err == nil || !strings.Contains(err.Error(), "must be annotated, auto or off") {
		t.Errorf("an unknown mode is refused with %v", err)
	}
}
