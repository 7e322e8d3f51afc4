package rollout

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	core "ebbtide.dev/ebbtide/internal/core/rollout"
)

// newJobFleet returns a fleet whose upgrade is a Job on each node. That of node-001 fails.
func newJobFleet(t *testing.T, nodes, limit int) *fleet {
	t.Helper()
	f := newFleet(t, nodes, limit)
	f.must(f.api.Create(t.Context(), &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "patch"}}))
	r := f.rollout("kernel")
	r.Spec.Job, r.Spec.Reboot = &v1alpha1.RolloutJob{Namespace: "ops", CronJob: "patch"}, true
	f.must(f.api.Update(t.Context(), r))
	f.failing = map[string]bool{"node-001": true}
	return f
}

// runJobs ends the Jobs that run.
func (f *fleet) runJobs() {
	f.t.Helper()
	for _, job := range f.allJobs() {
		if len(job.Status.Conditions) > 0 {
			continue
		}
		how := batchv1.JobComplete
		if f.failing[job.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]] {
			how = batchv1.JobFailed
		}
		job.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue}}
		f.must(f.api.Status().Update(f.t.Context(), &job))
	}
}

func (f *fleet) allJobs() []batchv1.Job {
	f.t.Helper()
	var list batchv1.JobList
	f.must(f.api.List(f.t.Context(), &list))
	return list.Items
}

// awaitsJob hands a drained node over. It returns true until its Job has succeeded.
func (f *fleet) awaitsJob(m *v1alpha1.NodeMaintenance) bool {
	f.t.Helper()
	attempt := m.Annotations[v1alpha1.RolloutAttemptAnnotation]
	if !strings.Contains(attempt, `"job"`) || !meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionDrained) || m.Spec.Stage != v1alpha1.StageDrain {
		return false
	}
	if m.Annotations[v1alpha1.HandedOverAnnotation] == "" {
		m.Annotations[v1alpha1.HandedOverAnnotation] = fmt.Sprintf(`{"maintenanceUID":%q,"nodeName":%q,"bootID":"b"}`, m.UID, nodeOf(m))
		f.must(f.api.Update(f.t.Context(), m))
		return true
	}
	return m.Annotations[v1alpha1.RebootAnnotation] == ""
}

// The manager may be killed behind any write, also behind those of Jobs and of what they came to.
func TestManagerKilledBehindEveryWriteRunsEachJobOnce(t *testing.T) {
	t.Parallel()
	assertKilledBehindEveryWrite(t, "3 of 4 nodes done, 1 failed", func(t *testing.T) *fleet {
		t.Helper()
		f := newJobFleet(t, 4, 2)
		f.limit = 3 // The failed node stays drained and counts no more.
		r := f.rollout("kernel")
		r.Spec.Failure.MaxFailures = new(intstr.FromInt32(2))
		f.must(f.api.Update(t.Context(), r))
		return f
	})
}

// A retry runs the Job again.
func TestRetryRunsTheJobAgain(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t, 2, 1)
	f.run()
	r := f.rollout("kernel")
	if r.Status.DoneCount != 1 || len(r.Status.Failed) != 1 || r.Status.Failed[0].Reason != v1alpha1.RolloutNodeJobFailed {
		t.Fatalf("the status is %+v", r.Status)
	}
	f.failing = nil
	r.Spec.Nodes, r.Generation = []v1alpha1.RolloutNodeSpec{{Name: "node-001", ForgivenAttemptCount: 1}}, r.Generation+1
	f.must(f.api.Update(t.Context(), r))
	f.run()
	if status := f.rollout("kernel").Status; status.DoneCount != 2 || len(f.allJobs()) != 3 {
		t.Errorf("there were %d Jobs, and the status is %+v", len(f.allJobs()), status)
	}
}

// settledStatus returns the status when the drain has ended, and the manager has tried for some minutes.
func (f *fleet) settledStatus(m *replica) v1alpha1.NodeRolloutStatus {
	f.t.Helper()
	for range 40 {
		m.sync()
		m.pass()
		f.clock.Step(5 * time.Second)
		f.advance(all)
	}
	return f.rollout("kernel").Status
}

func TestJobThatCannotBeCreatedFailsItsNode(t *testing.T) {
	t.Parallel()
	pods, jobs := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Group: "batch", Resource: "jobs"}
	security := errors.New("violates PodSecurity")
	for name, test := range map[string]struct {
		request string
		err     error
		failed  int32
		want    string
	}{
		"no CronJob":                 {"get CronJob", apierrors.NewNotFound(schema.GroupResource{Group: "batch", Resource: "cronjobs"}, "patch"), 1, `"patch" not found`},
		"pods":                       {"create Pod", apierrors.NewForbidden(pods, "patch-x", security), 1, "violates PodSecurity"},
		"quota":                      {"create Job", apierrors.NewForbidden(jobs, "patch-x", security), 1, "violates PodSecurity"},
		"a webhook without dry run":  {"create Pod", apierrors.NewBadRequest("does not support dry run"), 0, ""},
		"an API server that is busy": {"create Job", apierrors.NewTooManyRequests("later", 1), 0, "later"},
		"no answer":                  {"create Job", errCut, 0, "connection reset"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newJobFleet(t, 1, 1)
			f.refuse(test.request, test.err)
			m := f.manager(nil)
			status := f.settledStatus(m)
			if shown := append(status.Failed, status.Working...); test.want != "" && (len(shown) != 1 || !strings.Contains(shown[0].Message, test.want)) || status.FailedCount != test.failed {
				t.Fatalf("the status is %+v", status)
			}
			f.api.Refuse = nil
			if status := f.settledStatus(m); status.DoneCount != 1 {
				t.Errorf("it does not heal: %+v", status)
			}
		})
	}
}

// Whoever may create Jobs in the namespace can take the name of one.
func TestJobOfAnotherOneIsNotTaken(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t, 1, 1)
	m := f.manager(func(s *core.Snapshot) *core.Decision {
		d := core.Decide(s)
		for _, start := range d.Rollouts[0].Jobs {
			_ = f.api.Create(t.Context(), &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Namespace: start.Namespace, Name: start.Name, Labels: map[string]string{v1alpha1.RolloutLabel: "kernel"}},
				Status:     batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}},
			})
		}
		return d
	})
	status := f.settledStatus(m)
	if len(status.Failed) != 1 || !strings.Contains(status.Failed[0].Message, "not of this NodeMaintenance") {
		t.Errorf("the status is %+v", status)
	}
}

// A namespace whose Jobs cannot be read delays only them.
func TestJobsThatCannotBeReadDelayNothingElse(t *testing.T) {
	t.Parallel()
	f := newJobFleet(t, 1, 1)
	other := aRollout("other")
	other.Spec.Target = &v1alpha1.CompleteWhen{KubeletVersion: ">=1.37.0"}
	node := aNode("other")
	node.Labels["rollout"] = "other"
	f.must(f.api.Create(t.Context(), node))
	f.must(f.api.Create(t.Context(), other))
	m := f.manager(nil)
	m.jobsUnknown = true
	status := f.settledStatus(m)
	if len(status.Working) != 1 || status.Working[0].Reason != v1alpha1.RolloutNodeJobRunning || len(f.allJobs()) > 0 || f.rollout("other").Status.DoneCount != 1 {
		t.Errorf("with %d Jobs the statuses are %+v and %+v", len(f.allJobs()), status, f.rollout("other").Status)
	}
	m.jobsUnknown = false
	if status := f.settledStatus(m); status.DoneCount != 1 {
		t.Errorf("then the status is %+v", status)
	}
}
