package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/patience"
)

// jobNamespaces may have Jobs of rollouts. The second one is secure.
const jobNamespaces = "patching,secured"

func newJobWorld(t *testing.T) *world {
	t.Helper()
	return newWorldIn(t, cluster.Spec{JobNamespaces: jobNamespaces})
}

// cronJob creates a suspended CronJob, whose pods complete some time after their start.
func (w *world) cronJob(namespace, completes string, change ...func(*corev1.PodSpec)) *v1alpha1.RolloutJob {
	w.t.Helper()
	job := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "patch-"},
		Spec:       batchv1.CronJobSpec{Schedule: "@yearly", Suspend: new(true)},
	}
	template := &job.Spec.JobTemplate.Spec.Template
	template.Annotations = map[string]string{sandbox.CompleteAfter: completes}
	template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "patch", Image: "patch"}}}
	for _, c := range change {
		c(&template.Spec)
	}
	w.create(job)
	w.t.Cleanup(func() { w.must("delete the CronJob", w.client.Delete(w.ctx, job)) })
	return &v1alpha1.RolloutJob{Namespace: namespace, CronJob: job.Name}
}

// patching is a rollout that runs a Job on nodes.
func patching(nodes []string, job *v1alpha1.RolloutJob) v1alpha1.NodeRolloutSpec {
	spec := upgrading(nodes, len(nodes))
	spec.Target, spec.Job = nil, job
	return spec
}

// jobPods returns the pods of Jobs of a rollout.
func (w *world) jobPods(rollout string) (pods []corev1.Pod) {
	w.t.Helper()
	var jobs batchv1.JobList
	w.must("list Jobs", w.client.List(w.ctx, &jobs, client.MatchingLabels{v1alpha1.RolloutLabel: w.name(rollout)}))
	for _, job := range jobs.Items {
		var list corev1.PodList
		w.must("list pods", w.client.List(w.ctx, &list, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}))
		pods = append(pods, list.Items...)
	}
	return pods
}

// awaitFailed waits until a node of a rollout has failed, with a text in its message.
func (w *world) awaitFailed(rollout, node, reason, text string) {
	w.t.Helper()
	w.awaitRollout(rollout, node+" failed because "+reason, func(s *v1alpha1.NodeRolloutStatus) bool {
		return len(s.Failed) == 1 && s.Failed[0].Name == node && s.Failed[0].Reason == reason && strings.Contains(s.Failed[0].Message, text)
	})
}

// The Job controller runs a Job on each node when it is drained, on that node, and the node returns
// when it has succeeded. The pods of the Jobs are not drained.
func TestRolloutRunsAJobOnEachNode(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	nodes := w.nodes("one", "two")
	w.pods(nodes[0], pod{name: "web"})
	w.rollOut("patch", patching(nodes, w.cronJob("patching", "2s")))
	w.awaitWorking("patch", map[string]string{nodes[0]: v1alpha1.RolloutNodeJobRunning, nodes[1]: v1alpha1.RolloutNodeJobRunning})
	w.awaitGone("web")
	w.awaitWorking("patch", map[string]string{nodes[0]: v1alpha1.RolloutNodeDrained, nodes[1]: v1alpha1.RolloutNodeDrained})
	var ran []string
	for _, pod := range w.jobPods("patch") {
		ran = append(ran, pod.Spec.NodeName)
		if pod.Status.Phase != corev1.PodSucceeded || pod.DeletionTimestamp != nil {
			t.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
		}
	}
	if slices.Sort(ran); !slices.Equal(ran, nodes) {
		t.Errorf("pods of Jobs ran on %v, want %v", ran, nodes)
	}
	w.awaitRolloutComplete("patch", v1alpha1.ReasonRolloutComplete)
	for _, node := range nodes {
		w.awaitNode(node, "in service", func(n *corev1.Node) bool { return !n.Spec.Unschedulable })
	}
	w.deleteRollout("patch")
	w.eventually("no Job left", func() (bool, any) {
		left := w.jobPods("patch")
		return len(left) == 0, len(left)
	})
}

// A node whose Job fails stays drained. When it is retried, the Job runs again.
func TestFailedJobOfARolloutIsRetried(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	node := w.nodes("one")[0]
	job := w.cronJob("patching", "1h")
	w.rollOut("patch", patching([]string{node}, job))
	w.awaitWorking("patch", map[string]string{node: v1alpha1.RolloutNodeJobRunning})
	w.failJobPod("patch")
	w.awaitFailed("patch", node, v1alpha1.RolloutNodeJobFailed, "kubectl logs --namespace patching job/"+job.CronJob)
	w.assertStaysCordoned(node)

	w.changeCronJob(job, func(template *corev1.PodTemplateSpec) { template.Annotations[sandbox.CompleteAfter] = "0s" })
	w.changeRollout("patch", func(spec *v1alpha1.NodeRolloutSpec) {
		spec.Nodes = []v1alpha1.RolloutNodeSpec{{Name: node, ForgivenAttemptCount: 1}}
	})
	w.awaitWorking("patch", map[string]string{node: v1alpha1.RolloutNodeDrained})
	w.awaitRolloutComplete("patch", v1alpha1.ReasonRolloutComplete)
}

// failJobPod has the only running pod of a Job fail.
func (w *world) failJobPod(rollout string) {
	w.t.Helper()
	patience.Eventually(w.t, "the pod of the Job fails", func(context.Context) (string, bool) {
		for _, pod := range w.jobPods(rollout) {
			if pod.Status.Phase == corev1.PodRunning {
				err := w.client.Status().Patch(w.ctx, &pod, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"phase":"Failed"}}`)))
				return fmt.Sprint(err), err == nil
			}
		}
		return "no pod runs", false
	})
}

func (w *world) changeCronJob(job *v1alpha1.RolloutJob, edit func(*corev1.PodTemplateSpec)) {
	w.t.Helper()
	found := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace}}
	w.change(found, job.CronJob, func() { edit(&found.Spec.JobTemplate.Spec.Template) })
}

// A script may end in a reboot. The Job has then succeeded, and is deleted before it runs again.
func TestBootEndsTheJobOfARollout(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	node := w.nodes("one")[0]
	w.boot(node)
	spec := patching([]string{node}, w.cronJob("patching", "1h"))
	spec.Target = &v1alpha1.CompleteWhen{NewBoot: true, ReadySeconds: new(int32(0))}
	w.rollOut("patch", spec)
	w.eventually("a pod of the Job on the node", func() (bool, any) {
		pods := w.jobPods("patch")
		return len(pods) == 1 && pods[0].Status.Phase == corev1.PodRunning, pods
	})
	w.boot(node)
	w.awaitRolloutComplete("patch", v1alpha1.ReasonRolloutComplete)
	w.eventually("no Job left", func() (bool, any) {
		left := w.jobPods("patch")
		return len(left) == 0, len(left)
	})
}

// Pod Security refuses the pods of a template that wants the host, as the Job controller would not
// say: the node has failed. It goes on when the template is mended.
func TestJobThatPodSecurityRefusesFailsItsNode(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	namespace := &corev1.Namespace{}
	w.change(namespace, "secured", func() { namespace.Labels["pod-security.kubernetes.io/enforce"] = "restricted" })
	node := w.nodes("one")[0]
	job := w.cronJob("secured", "0s", func(pod *corev1.PodSpec) { pod.HostPID = true })
	w.rollOut("patch", patching([]string{node}, job))
	w.awaitFailed("patch", node, v1alpha1.RolloutNodeJobRefused, "hostPID=true")
	if pods := w.jobPods("patch"); len(pods) > 0 {
		t.Errorf("%d pods were made", len(pods))
	}
	w.assertStaysCordoned(node)

	w.changeCronJob(job, func(template *corev1.PodTemplateSpec) {
		template.Spec.HostPID = false
		template.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
		template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	})
	w.awaitWorking("patch", map[string]string{node: v1alpha1.RolloutNodeDrained})
}
