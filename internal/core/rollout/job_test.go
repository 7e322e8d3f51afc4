package rollout_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/test/golden"
)

// jobWrites returns the writes of Jobs of a decision. Those that are refused fail.
func (w *world) jobWrites(d *rollout.RolloutDecision) (writes []func()) {
	for _, start := range d.Jobs {
		if _, refused := w.refusedJobs[start.Key()]; refused {
			continue
		}
		writes = append(writes, func() {
			if _, at := find(w.jobs, start.Name); at >= 0 {
				return
			}
			job := start.Job(&batchv1.CronJob{})
			job.UID = w.uid()
			w.jobs = append(w.jobs, job)
			w.progress++
		})
	}
	for _, job := range d.StopJobs {
		writes = append(writes, func() { w.deleteJob(job.Name) })
	}
	return writes
}

func (w *world) deleteJob(name string) {
	w.jobs = slices.DeleteFunc(slices.Clone(w.jobs), func(job *batchv1.Job) bool { return job.Name == name })
}

// collectJobs deletes the Jobs whose NodeMaintenance is gone.
func (w *world) collectJobs() {
	w.jobs = slices.DeleteFunc(slices.Clone(w.jobs), func(job *batchv1.Job) bool {
		return !slices.ContainsFunc(w.maintenances, func(m *v1alpha1.NodeMaintenance) bool { return m.UID == job.OwnerReferences[0].UID })
	})
}

// endJob ends the latest Job.
func endJob(how batchv1.JobConditionType) func(w *world) {
	return func(w *world) {
		w.t.Helper()
		if len(w.jobs) == 0 {
			w.t.Fatal("there is no Job")
		}
		edit(w, w.jobs, w.jobs[len(w.jobs)-1].Name, func(job *batchv1.Job) {
			job.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "Job has reached\nthe limit"}}
		})
	}
}

func withJob(s *v1alpha1.NodeRolloutSpec) {
	s.Job, s.Target = &v1alpha1.RolloutJob{Namespace: "ops", CronJob: "patch"}, nil
}

func withReboot(s *v1alpha1.NodeRolloutSpec) { s.Reboot = true }

// drainsA drains node a, and hands it over to whatever is to be done on it.
var drainsA = onA(func(w *world, name string) {
	w.editMaintenance(name, w.handOver)
	w.drain(name)
})

// running runs the Job on node a.
func running(change ...func(*v1alpha1.NodeRolloutSpec)) func(w *world) {
	return then(begun(append([]func(*v1alpha1.NodeRolloutSpec){withJob}, change...)...), drainsA, settled)
}

func boots(name string) func(w *world) {
	return node(name, func(n *corev1.Node) { n.Status.NodeInfo.BootID = "another" })
}

// refuses has the Job of node a refused.
func refuses(final bool) func(w *world) {
	return func(w *world) {
		w.t.Helper()
		w.refusedJobs[rollout.Decide(w.snapshot()).Rollouts[0].Jobs[0].Key()] = rollout.JobRefusal{Message: `pods "x" is forbidden: violates PodSecurity`, Final: final}
	}
}

func TestJobDecidesAboutItsNode(t *testing.T) {
	t.Parallel()
	failed := []string{"a failed: JobFailed", "b c wait: MaxFailures", "Degraded=True: MaxFailures"}
	refused := []string{"a failed: JobRefused", "b c wait: MaxFailures", "Degraded=True: MaxFailures"}
	works := []string{"a: JobRunning", "b c wait: MaxUnavailable"}
	drained := []string{"a: Drained", "b c wait: MaxUnavailable"}
	nextOne := []string{"1 done", "b: Draining", "c wait: MaxUnavailable"}
	unsynced := func(w *world) { w.jobNamespaces["ops"] = false }
	deletesJob := func(w *world) { w.deleteJob(w.jobs[0].Name) }
	tell(t, map[string]story{
		"drains":                    {begun(withJob), []string{"a: Draining", "b c wait: MaxUnavailable"}},
		"not handed over yet":       {then(begun(withJob), onA((*world).drain)), works},
		"runs":                      {running(), works},
		"runs for too long":         {then(running(), passes(time.Hour)), []string{"a failed: WorkTimedOut", "b c wait: MaxFailures", "Degraded=True: MaxFailures"}},
		"succeeds":                  {then(running(), endJob(batchv1.JobComplete)), drained},
		"succeeds and is deleted":   {then(running(), endJob(batchv1.JobComplete), settled, deletesJob), drained},
		"succeeds and node returns": {then(running(), endJob(batchv1.JobComplete), settled, onA((*world).comeBackAndFinish)), nextOne},
		"succeeds before a reboot":  {then(running(withReboot), endJob(batchv1.JobComplete)), drained},
		"node boots":                {then(running(), boots("a")), drained},
		"node boots in the end":     {then(running(withReboot), boots("a"), settled), drained},
		"fails":                     {then(running(), endJob(batchv1.JobFailed)), failed},
		"fails, and its node boots": {then(running(), endJob(batchv1.JobFailed), settled, boots("a")), failed},
		"fails and is deleted":      {then(running(), endJob(batchv1.JobFailed), settled, deletesJob), failed},
		"fails and is forgiven":     {then(running(), endJob(batchv1.JobFailed), settled, spec(forgiven("a", 1)), settled, onA((*world).accept), drainsA), works},
		"is deleted and runs again": {then(running(), deletesJob), works},
		"is refused":                {then(begun(withJob), drainsA, refuses(true)), refused},
		"cannot be created":         {then(begun(withJob), drainsA, refuses(false)), works},
		"is no longer refused":      {then(begun(withJob), drainsA, refuses(true), settled, func(w *world) { clear(w.refusedJobs) }), works},
		"other namespace":           {then(begun(withJob, func(s *v1alpha1.NodeRolloutSpec) { s.Job.Namespace = "kube-system" }), drainsA), refused},
		"unknown":                   {then(begun(withJob), drainsA, unsynced), works},
		"unknown after its end":     {then(running(), endJob(batchv1.JobComplete), settled, unsynced), drained},
		"completed by a user":       {then(running(), onA((*world).completeAndFinish)), []string{"a failed: TargetNotMet", "b c wait: MaxFailures", "Degraded=True: MaxFailures"}},
		"another job":               {then(running(), endJob(batchv1.JobComplete), settled, spec(func(s *v1alpha1.NodeRolloutSpec) { s.Job = &v1alpha1.RolloutJob{Namespace: "ops", CronJob: "clean"} })), works},
		"another job while it runs": {then(running(), spec(func(s *v1alpha1.NodeRolloutSpec) { s.Job = &v1alpha1.RolloutJob{Namespace: "ops", CronJob: "clean"} })), works},
		"another job for nodes that are done": {
			then(running(), endJob(batchv1.JobComplete), settled, onA((*world).comeBackAndFinish), settled, spec(func(s *v1alpha1.NodeRolloutSpec) { s.Job.CronJob = "clean" })),
			[]string{"b: Draining", "a c wait: MaxUnavailable"},
		},
		"no more job":                {then(running(), spec(func(s *v1alpha1.NodeRolloutSpec) { s.Job = nil })), drained},
		"aborted while it runs":      {then(running(), spec(aborted)), []string{"a: JobRunning", "b c wait: NotRunning", "Complete=True: Aborted"}},
		"aborted before it starts":   {then(begun(withJob), drainsA, spec(aborted)), []string{"a: Drained", "b c wait: NotRunning", "Complete=True: Aborted"}},
		"aborted, and then succeeds": {then(running(), spec(aborted), settled, endJob(batchv1.JobComplete)), []string{"a: Drained", "b c wait: NotRunning", "Complete=True: Aborted"}},
	})
}

// The Job of an earlier attempt may still change the node.
func TestJobWaitsForThatOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	then(running(), passes(2*time.Hour), settled, spec(forgiven("a", 1)))(w)
	w.decide() // The former NodeMaintenance is still there.
	then(onA((*world).accept), drainsA)(w)
	w.decide()
	if len(w.jobs) != 1 {
		t.Fatalf("%d Jobs run on one node", len(w.jobs))
	}
	endJob(batchv1.JobFailed)(w)
	w.decide()
	if len(w.jobs) != 2 {
		t.Errorf("after the end of the first Job there are %d", len(w.jobs))
	}
}

// A node reboots after its Job, and not before; a Job whose node has booted is stopped.
func TestRebootFollowsTheJob(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(*world){"succeeded": endJob(batchv1.JobComplete), "booted": boots("a")} {
		w := newWorld(t, "a")
		running(withReboot)(w)
		if m := w.of("a"); m.Annotations[v1alpha1.RebootAnnotation] != "" || !m.Spec.CompleteWhen.NewBoot {
			t.Errorf("before the Job has ended it has %v, %+v", m.Annotations, m.Spec.CompleteWhen)
		}
		then(ends, settled)(w)
		if m := w.of("a"); m.Annotations[v1alpha1.RebootAnnotation] != "true" || w.attempt(m).Result != v1alpha1.RolloutJobSucceeded {
			t.Errorf("%s: it has %v", name, m.Annotations)
		}
		if left := len(w.jobs); left != map[string]int{"succeeded": 1, "booted": 0}[name] {
			t.Errorf("%s: %d Jobs are left", name, left)
		}
	}
}

func TestJobIsMadeFromACronJob(t *testing.T) {
	t.Parallel()
	for name, template := range map[string]string{
		"job": "spec: {template: {spec: {restartPolicy: Never, containers: [{name: patch, image: patch}]}}}",
		"job-hostile": `
metadata: {labels: {ebbtide.dev/rollout: other, team: ops}, annotations: {ebbtide.dev/boot-id: other}}
spec:
  backoffLimit: 2
  ttlSecondsAfterFinished: 1
  activeDeadlineSeconds: 600
  template:
    metadata: {labels: {cluster.x-k8s.io/drain: wait-completed}}
    spec:
      nodeName: other
      nodeSelector: {pool: a}
      hostPID: true
      tolerations: [{key: mine, operator: Exists}]
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions: [{key: pool, operator: In, values: [a]}]
            - {}
            - matchFields: [{key: metadata.name, operator: NotIn, values: [b]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "a")
			then(begun(withJob), drainsA)(w)
			from := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "patch"}}
			if err := yaml.UnmarshalStrict([]byte(template), &from.Spec.JobTemplate); err != nil {
				t.Fatal(err)
			}
			start := rollout.Decide(w.snapshot()).Rollouts[0].Jobs[0]
			job := start.Job(from)
			text, err := yaml.Marshal(map[string]any{"job": job, "pod": rollout.Pod(job)})
			if err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, name+".yaml", string(text))
			if !start.Owns(job) || len(job.Name) > 63 {
				t.Errorf("Job %s is not of the NodeMaintenance", job.Name)
			}
		})
	}
}

func TestNameOfAJobIsShort(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	then(begun(withJob, func(s *v1alpha1.NodeRolloutSpec) {
		s.Job.CronJob = "a234567890123456789012345678901234567890123456.-890"
	}), drainsA)(w)
	if name := rollout.Decide(w.snapshot()).Rollouts[0].Jobs[0].Name; len(name) > 63 || name[:46] != "a23456789012345678901234567890123456789012345"+"6" || name[46] != '-' {
		t.Errorf("the name is %q", name)
	}
}
