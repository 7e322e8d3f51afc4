package lab

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
)

const (
	// runLabel ties pods to the nodes of their run.
	runLabel = "bench.ebbtide.dev/run"
	// appLabel names the Deployment of a pod and thereby its budget. The oracle
	// knows it, too.
	appLabel = "app"
)

// Work is what a contender has to drain.
type Work struct {
	// Nodes that are drained together; 0 means one.
	Nodes int
	// Apps is how many Deployments there are, all alike; 0 means one. Their pods
	// are spread over the nodes as the scheduler likes it.
	Apps int
	// Pods that each Deployment has on the nodes.
	Pods int32
	// Others are pods of each Deployment on another node.
	Others int32
	// Budget protects the pods of each Deployment; its selector is filled in. Nil
	// for no budget.
	Budget *policyv1.PodDisruptionBudgetSpec
	// Surge is how many pods of a Deployment may be surged at a time, if they are
	// to be moved by surging; 0 for pods that are simply evicted.
	Surge int
	// Refused is how many more pods there are, on the first twenty of the nodes by
	// name, which can never go because a webhook refuses them slowly.
	Refused int
	// Slow are the requests that the webhook refuses.
	Slow Slow
	// Apart has Ebbtide told by a NodeMaintenance for each node, all at once.
	Apart bool
	// InTurn has the Deployments leave one after the other, for whoever knows orders.
	InTurn bool
	// Machines has Ebbtide told by deleting the Machines of the nodes, instead of by
	// a NodeMaintenance.
	Machines bool
	// NoRefuge leaves the evicted pods without a node to go to, so that a budget
	// once used up stays so until Relieve.
	NoRefuge bool
}

// app is a Deployment of the work.
type app struct {
	name string
	// replicas are on the nodes at first, and others are added elsewhere.
	replicas, others int32
	budget           *policyv1.PodDisruptionBudgetSpec
	// surge is the Deployment's maxSurge; 0 for pods that do not surge.
	surge int
	// readyAfter delays the readiness of its pods; empty for pods that are ready at once.
	readyAfter string
}

func (w Work) nodes() int { return max(w.Nodes, 1) }

func (w Work) apps() []app {
	var apps []app
	for i := range max(w.Apps, 1) {
		apps = append(apps, app{name: fmt.Sprintf("app-%d", i+1), replicas: w.Pods, others: w.Others, budget: w.Budget, surge: w.Surge})
	}
	return apps
}

// labels are those of the nodes and of everything that runs on them.
func (load *Load) labels() map[string]string { return map[string]string{runLabel: load.Namespace} }

func (load *Load) meta(name string, app app) metav1.ObjectMeta {
	labels := load.labels()
	labels[appLabel] = app.name
	return metav1.ObjectMeta{Namespace: load.Namespace, Name: name, Labels: labels}
}

func (load *Load) deployment(app app) *appsv1.Deployment {
	meta := load.meta(app.name, app)
	selector := &metav1.LabelSelector{MatchLabels: meta.Labels}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: podSpec()}
	template.Spec.NodeSelector = load.labels()
	template.Annotations = app.annotations()
	deployment := &appsv1.Deployment{
		ObjectMeta: meta,
		Spec:       appsv1.DeploymentSpec{Replicas: new(app.replicas), Selector: selector, Template: template},
	}
	if app.surge > 0 {
		deployment.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt(app.surge))}
	}
	return deployment
}

// annotations are those of the pods of a Deployment.
func (a app) annotations() map[string]string {
	annotations := map[string]string{}
	if a.surge > 0 {
		annotations[v1alpha1.EvacuatorAnnotationPrefix+v1alpha1.DeploymentEvacuatorClass] = "10000/controller"
	}
	if a.readyAfter != "" {
		annotations[sandbox.ReadyAfter] = a.readyAfter
	}
	return annotations
}

func (load *Load) budget(app app) *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: load.meta(app.name, app), Spec: *app.budget}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: budget.Labels}
	return budget
}

// podSpec is that of instant pods. Their grace period matters to nobody but the
// namespace controller, which waits for half of it.
func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		Containers:                    []corev1.Container{{Name: "app", Image: "app"}},
		TerminationGracePeriodSeconds: new(int64(1)),
	}
}

// turns are the Deployments in the order in which they are to leave; none if
// there is no order.
func (load *Load) turns() []app {
	if !load.work.InTurn {
		return nil
	}
	return load.apps
}

// rules give the pods of each Deployment the order of its turn, on nodes of these
// labels in a NodeMaintenance, or on those of Machines if there are no labels.
func (load *Load) rules(namespace string, nodes map[string]string) []*v1alpha1.MachineDrainRule {
	var rules []*v1alpha1.MachineDrainRule
	for turn, app := range load.turns() {
		rule := &v1alpha1.MachineDrainRule{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app.name},
			Spec: v1alpha1.MachineDrainRuleSpec{
				Drain: v1alpha1.MachineDrainRuleDrain{Behavior: v1alpha1.DrainBehaviorDrain, Order: new(int32(turn + 1))},
				Pods:  []v1alpha1.MachineDrainRulePodSelector{{Selector: &metav1.LabelSelector{MatchLabels: load.meta("", app).Labels}}},
			},
		}
		if nodes != nil {
			rule.Spec.Nodes = []v1alpha1.MachineDrainRuleNodeSelector{{Selector: &metav1.LabelSelector{MatchLabels: nodes}}}
		}
		rules = append(rules, rule)
	}
	return rules
}
