package webhook

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/webhook/sample"
)

const rolloutWebhook = "noderollouts.ebbtide.dev"

// rollsOut is the right to NodeRollouts, without any right to nodes.
var rollsOut = rbacv1.PolicyRule{
	APIGroups: []string{v1alpha1.SchemeGroupVersion.Group}, Resources: []string{"noderollouts"},
	Verbs: []string{"get", "create", "update", "patch", "delete"},
}

func byHostname(r *v1alpha1.NodeRollout) {
	r.Spec.NodeSelector.NodeSelectorTerms = []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpExists},
	}}}
}

func TestRolloutNeedsTheRightToDeleteItsNodes(t *testing.T) {
	c := newAPI(t)
	nodes := newNodes(t, c, 3, nil)
	name, user := c.User(t, rollsOut, deletes(nodes[0], nodes[1]))
	create := func(suffix string, nodes ...string) *v1alpha1.NodeRollout {
		r := sample.Rollout(c.Pool()+suffix, nodes...)
		must(t, user.Create(t.Context(), r))
		t.Cleanup(func() { must(t, client.IgnoreNotFound(c.Client.Delete(context.WithoutCancel(t.Context()), r))) })
		return r
	}
	another := fmt.Sprintf("user %q may not delete node %s, and only who may delete a node may have it drained", name, nodes[2])
	later := fmt.Sprintf("user %q may not delete every node, and a NodeRollout that selects nodes by labels, or all but some, takes nodes that come later", name)

	wantRefusedBy(t, rolloutWebhook, user.Create(t.Context(), sample.Rollout(c.Pool()+"-three", nodes...)), another)
	byLabel := sample.Rollout(c.Pool() + "-labels")
	byHostname(byLabel)
	wantRefusedBy(t, rolloutWebhook, user.Create(t.Context(), byLabel.DeepCopy()), later)

	r := create("-two", nodes[:2]...)
	for what, change := range map[string]func(*v1alpha1.NodeRollout){
		another: func(r *v1alpha1.NodeRollout) {
			r.Spec.NodeSelector = sample.Rollout("", nodes[1:]...).Spec.NodeSelector
		},
		later: byHostname,
	} {
		widened := r.DeepCopy()
		change(widened)
		wantRefusedBy(t, rolloutWebhook, user.Update(t.Context(), widened), what)
	}

	// An administrator widens it. From then on the user may not touch it any more.
	byHostname(r)
	must(t, c.Client.Update(t.Context(), r))
	for what, change := range map[string]func(*v1alpha1.NodeRollout){
		"faster": func(r *v1alpha1.NodeRollout) { r.Spec.MaxUnavailable = new(intstr.FromInt32(9)) },
		"skips":  func(r *v1alpha1.NodeRollout) { r.Spec.Nodes = []v1alpha1.RolloutNodeSpec{{Name: nodes[2], Skip: true}} },
		"pauses": func(r *v1alpha1.NodeRollout) { r.Spec.State = v1alpha1.RolloutPaused },
		"aborts": func(r *v1alpha1.NodeRollout) { r.Spec.State = v1alpha1.RolloutAborted },
		"labels": func(r *v1alpha1.NodeRollout) { r.Labels = map[string]string{"a": "b"} },
	} {
		t.Run(what, func(t *testing.T) {
			changed := r.DeepCopy()
			change(changed)
			wantRefusedBy(t, rolloutWebhook, user.Update(t.Context(), changed), fmt.Sprintf("user %q may not delete", name))
		})
	}
	wantRefusedBy(t, rolloutWebhook, user.Delete(t.Context(), r), "and only who may delete a node may end its maintenance")

	own := create("-own", nodes[0])
	own.Spec.State = v1alpha1.RolloutPaused
	must(t, user.Update(t.Context(), own))
	own.Spec.State = v1alpha1.RolloutAborted
	must(t, user.Update(t.Context(), own))
	must(t, user.Delete(t.Context(), own))
}

// Whoever may create a rollout, but no Jobs in a namespace, has none of them run.
func TestRolloutNeedsTheRightToCreateItsJobs(t *testing.T) {
	t.Parallel()
	c := newAPI(t)
	namespace := c.Namespace(t)
	name, user := c.User(t, rollsOut, deletes())
	refusal := fmt.Sprintf("spec.job: user %q may not create Jobs in namespace %q", name, namespace)
	job := func(r *v1alpha1.NodeRollout) {
		r.Spec.Job = &v1alpha1.RolloutJob{Namespace: namespace, CronJob: "patch"}
	}
	r := sample.Rollout(c.Pool()+"-job", "no-such-node")
	job(r)
	wantRefusedBy(t, rolloutWebhook, user.Create(t.Context(), r.DeepCopy()), refusal)

	must(t, c.Client.Create(t.Context(), r))
	t.Cleanup(func() { must(t, client.IgnoreNotFound(c.Client.Delete(context.WithoutCancel(t.Context()), r))) })
	for what, change := range map[string]func(*v1alpha1.NodeRollout){
		"other nodes": func(r *v1alpha1.NodeRollout) { r.Spec.NodeSelector = sample.Rollout("", "another").Spec.NodeSelector },
		"other job":   func(r *v1alpha1.NodeRollout) { r.Spec.Job.CronJob = "other" },
		"retries": func(r *v1alpha1.NodeRollout) {
			r.Spec.Nodes = []v1alpha1.RolloutNodeSpec{{Name: "no-such-node", ForgivenAttemptCount: 1}}
		},
		"pauses with another job": func(r *v1alpha1.NodeRollout) { r.Spec.State, r.Spec.Job.CronJob = v1alpha1.RolloutPaused, "other" },
	} {
		changed := r.DeepCopy()
		change(changed)
		if err := user.Update(t.Context(), changed); err == nil {
			t.Errorf("%s: it is accepted", what)
		} else {
			wantRefusedBy(t, rolloutWebhook, err, refusal)
		}
	}
	for _, change := range []func(){
		func() { r.Labels = map[string]string{"a": "b"} },
		func() { r.Spec.State = v1alpha1.RolloutPaused },
	} {
		change()
		must(t, user.Update(t.Context(), r))
	}
	resumed := r.DeepCopy()
	resumed.Spec.State = v1alpha1.RolloutRunning
	wantRefusedBy(t, rolloutWebhook, user.Update(t.Context(), resumed), refusal)
	r.Spec.Job = nil
	must(t, user.Update(t.Context(), r))
	_, other := c.User(t, rollsOut, deletes(), rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create"}})
	job(r)
	must(t, other.Update(t.Context(), r))
	r.Spec.State = v1alpha1.RolloutAborted
	must(t, user.Update(t.Context(), r))
}

func TestRolloutRecordsTheUserWhoAsksForIt(t *testing.T) {
	t.Parallel()
	c := newAPI(t)
	r := sample.Rollout(c.Pool()+"-kernel", "no-such-node")
	r.Annotations = map[string]string{v1alpha1.RequestedByAnnotation: "somebody-else"}
	must(t, c.Mighty(t, "anna").Create(t.Context(), r))
	t.Cleanup(func() { must(t, c.Client.Delete(context.WithoutCancel(t.Context()), r)) })
	for _, step := range []struct {
		user   string
		change func()
		want   string
	}{
		{"anna", func() {}, "anna"},
		{"bert", func() { r.Labels = map[string]string{"a": "b"} }, "anna"},
		{"bert", func() { r.Annotations = nil }, "anna"},
		{"bert", func() { r.Spec.State = v1alpha1.RolloutPaused }, "anna"},
		{"carl", func() { r.Spec.SoakSeconds = 60 }, "anna"},
		{"carl", func() { r.Spec.State = v1alpha1.RolloutRunning }, "carl"},
		{"dora", func() { r.Spec.SoakSeconds = 30 }, "dora"},
		{"emil", func() { r.Annotations[v1alpha1.RequestedByAnnotation] = "anna" }, "dora"},
		{"emil", func() { r.Spec.State = v1alpha1.RolloutAborted }, "dora"},
	} {
		step.change()
		must(t, c.Mighty(t, step.user).Update(t.Context(), r))
		if got := r.Annotations[v1alpha1.RequestedByAnnotation]; got != step.want {
			t.Errorf("after %s it names %q, want %q", step.user, got, step.want)
		}
	}
}

// The CRD does not limit the prefix of a label key.
func TestInvalidRolloutIsRefusedAndAMistakeWarnedOf(t *testing.T) {
	t.Parallel()
	c := newAPI(t)
	user, warnings := listening(t, c)
	r := sample.Rollout(c.Pool()+"-odd", "no-such-node")
	r.Spec.Maintenance.DrainPlan = []v1alpha1.DrainPlanEntry{{PodSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{strings.Repeat("long.", 51) + "com/app": "web"},
	}}}
	wantRefusedBy(t, rolloutWebhook, user.Create(t.Context(), r.DeepCopy()), "spec.maintenance.drainPlan[0].podSelector")

	r.Spec.Maintenance.DrainPlan = nil
	warnings.take()
	must(t, user.Create(t.Context(), r, client.DryRunAll))
	want := []string{"spec.nodeSelector matches no node now; nodes that it matches later join until the rollout is complete"}
	if diff := cmp.Diff(want, warnings.take()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// Whoever has others or other work approved has to ask again.
func TestRolloutOfOtherNodesHasToBeApprovedAgain(t *testing.T) {
	t.Parallel()
	c := newAPI(t)
	r := sample.Rollout(c.Pool()+"-canary", "no-such-node")
	r.Spec.Canary = &v1alpha1.RolloutCanary{NodeCount: 1, Approved: new(true)}
	must(t, c.Client.Create(t.Context(), r))
	t.Cleanup(func() { must(t, c.Client.Delete(context.WithoutCancel(t.Context()), r)) })
	for _, step := range []struct {
		change   func()
		approved bool
	}{
		{func() { r.Spec.SoakSeconds = 60 }, true},
		{func() { r.Spec.NodeSelector = sample.Rollout("", "another").Spec.NodeSelector }, false},
		{func() { r.Spec.Canary.Approved = new(true) }, true},
		{func() { r.Spec.Target = &v1alpha1.CompleteWhen{NewBoot: true} }, false},
		{func() { r.Spec.Canary.Approved = new(true) }, true},
		{func() { r.Spec.Job = &v1alpha1.RolloutJob{Namespace: "ops", CronJob: "patch"} }, false},
	} {
		step.change()
		must(t, c.Client.Update(t.Context(), r))
		if got := r.Spec.Canary.Approved; got == nil || *got != step.approved {
			t.Errorf("approved is %v, want %v", got, step.approved)
		}
	}
}

// A gate shows in the status whether a field of an object has a value, so its author has to be allowed
// to read the object. The API refuses Secrets.
func TestGateNeedsTheRightToGetItsObject(t *testing.T) {
	t.Parallel()
	c := newAPI(t)
	nodes := newNodes(t, c, 1, nil)
	reads := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"mine"}, Verbs: []string{"get"}}
	name, user := c.User(t, rollsOut, deletes(nodes[0]), reads)
	gate := func(apiVersion, kind, namespace, object string) v1alpha1.RolloutGate {
		return v1alpha1.RolloutGate{Name: "gate", Object: &v1alpha1.ObjectGate{
			APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: object, JSONPath: ".data.state", Value: "go",
		}}
	}
	with := func(gates ...v1alpha1.RolloutGate) *v1alpha1.NodeRollout {
		r := sample.Rollout(c.Pool()+"-gated", nodes...)
		r.Spec.Gates = gates
		return r
	}
	refusal := fmt.Sprintf("user %q may not get configmaps", name)
	for what, refused := range map[string]v1alpha1.RolloutGate{
		refusal:                               gate("v1", "ConfigMap", "default", "others"),
		"which the API server does not serve": gate("example.com/v1", "Fleet", "", "mine"),
		"set object.namespace":                gate("v1", "ConfigMap", "", "mine"),
		"leave out object.namespace":          gate("v1", "Node", "default", "mine"),
	} {
		wantRefusedBy(t, rolloutWebhook, user.Create(t.Context(), with(refused)), what)
	}
	r := with(gate("v1", "ConfigMap", "default", "mine"))
	must(t, user.Create(t.Context(), r))
	t.Cleanup(func() { must(t, client.IgnoreNotFound(c.Client.Delete(context.WithoutCancel(t.Context()), r))) })
	widened := r.DeepCopy()
	widened.Spec.Gates[0].Object.Name = "others"
	wantRefusedBy(t, rolloutWebhook, user.Update(t.Context(), widened), refusal)
	// An administrator adds one. The user may keep it, and end the rollout.
	r.Spec.Gates[0].Object.Name = "others"
	must(t, c.Client.Update(t.Context(), r))
	r.Spec.State = v1alpha1.RolloutPaused
	must(t, user.Update(t.Context(), r))
	must(t, user.Delete(t.Context(), r))
}
