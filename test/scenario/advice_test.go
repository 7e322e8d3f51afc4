package scenario

import (
	"regexp"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/budget"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/cluster"
)

// hindrance is an application "web" on a node that its budget does not let go.
type hindrance struct {
	app    func(w *world, node string)
	budget policyv1.PodDisruptionBudgetSpec
	lock   string
	// second has another budget select the pods, too.
	second bool
	kind   v1alpha1.BlockerType
	// advice is what is suggested, before a command follows.
	advice string
	// grow follows the advice by replicas, not by the command.
	grow bool
}

func minAvailable(pods string) policyv1.PodDisruptionBudgetSpec {
	return policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.Parse(pods))}
}

func maxUnavailable(pods string) policyv1.PodDisruptionBudgetSpec {
	return policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.Parse(pods))}
}

func scaledTo(n int32) func(*world, string) {
	return func(w *world, _ string) { w.deployment("web", n) }
}

func bare(w *world, node string) {
	for _, name := range []string{"web-0", "web-1"} {
		w.create(w.podOn(node, pod{name: name, labels: map[string]string{"name": "web"}}))
	}
}

// asleep is a pod that never gets ready.
func asleep(w *world, node string) {
	p := w.podOn(node, pod{name: "web"})
	p.Annotations[sandbox.ReadyAfter] = "24h"
	w.create(p)
}

func job(w *world, _ string) {
	spec := w.podSpec()
	spec.RestartPolicy = corev1.RestartPolicyNever
	w.create(&batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: w.ns},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{
				Labels:      map[string]string{"name": "web"},
				Annotations: map[string]string{sandbox.CompleteAfter: "24h"},
			},
			Spec: spec,
		}},
	})
}

var hindrances = map[string]hindrance{
	"maxUnavailable is 0":  {app: scaledTo(2), budget: maxUnavailable("0"), advice: "Let one pod be unavailable: "},
	"maxUnavailable is 0%": {app: scaledTo(1), budget: maxUnavailable("0%"), advice: "Let one pod be unavailable: "},
	"minAvailable is 100%": {app: scaledTo(2), budget: minAvailable("100%"), advice: "Let one pod be unavailable: "},
	"a number of all":      {app: scaledTo(2), budget: minAvailable("2"), advice: "Run at least 3 replicas, or let one pod be unavailable: "},
	"a number of all, and more replicas": {
		app: scaledTo(2), budget: minAvailable("2"), advice: "Run at least 3 replicas, or let one pod be unavailable: ", grow: true,
	},
	"a percentage": {app: scaledTo(2), budget: minAvailable("67%"), advice: "Run at least 4 replicas, or let one pod be unavailable: "},
	"a percentage, and more replicas": {
		app: scaledTo(2), budget: minAvailable("67%"), advice: "Run at least 4 replicas, or let one pod be unavailable: ", grow: true,
	},
	"replicas of bare pods": {app: bare, budget: maxUnavailable("1"), advice: "Give the pods a controller, or count pods: "},
	"a number of bare pods": {app: bare, budget: minAvailable("2"), advice: "Such pods are not replaced. Start others, or allow their eviction: "},
	"a number of pods of a Job": {
		app: job, budget: minAvailable("1"), advice: "Run at least 2 replicas, or let one pod be unavailable: ",
	},
	"replicas of a Job": {
		app: job, budget: maxUnavailable("1"), kind: v1alpha1.BlockerPDBExhausted,
		advice: "The desired number of replicas is unknown, as for pods of a Job. Count pods: ",
	},
	"a pod that is not ready": {
		app: asleep, budget: minAvailable("1"), advice: "The pod is not ready itself. Get it ready, or let pods go that are not: ",
	},
	"two budgets": {
		app: scaledTo(1), budget: maxUnavailable("1"), second: true, kind: v1alpha1.BlockerMultiplePDBs,
		advice: "Keep one and narrow or delete the rest, such as: ",
	},
	"a lock": {
		app: scaledTo(1), budget: maxUnavailable("1"), kind: v1alpha1.BlockerPDBLocked,
		lock:   budget.Lock{Holder: "dba", AcquiredAt: metav1.Now(), ExpiresAt: metav1.NewTime(time.Now().Add(time.Hour))}.Write(),
		advice: "It goes when its holder unlocks the budget, or at its end. If they agree: ",
	},
	"a lock that nobody can read": {
		app: scaledTo(1), budget: maxUnavailable("1"), lock: "mine!", kind: v1alpha1.BlockerPDBLocked,
		advice: "It ends ten minutes after the last change of the budget. If it is not needed: ",
	},
}

// Who does what is suggested for a budget, literally and nothing else, sees the
// pods go.
func TestAdviceHelps(t *testing.T) {
	t.Parallel()
	m := newTerminal(t, cluster.Spec{})
	for name, h := range hindrances {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			old := w.nodes("old")[0]
			h.hinder(w, old)
			w.nodes("new")
			w.maintain("upgrade", v1alpha1.StageDrain, []string{old})

			advice := w.awaitAdvice("upgrade", old, h)
			command := advice[strings.Index(advice, "kubectl "):]
			if h.grow {
				words := regexp.MustCompile(`Run at least (\d+) replicas`).FindStringSubmatch(advice)
				command = "kubectl -n " + w.ns + " scale deployment web --replicas=" + words[1]
			}
			if said := m.shell(t, command); said.Code != 0 {
				t.Fatalf("%s\nexits with %d and says %s", command, said.Code, said.Text)
			}
			w.awaitDrained("upgrade")
		})
	}
}

// hinder creates the application, which the node is the only one to run, and its
// budget.
func (h hindrance) hinder(w *world, node string) {
	w.t.Helper()
	h.app(w, node)
	labels := map[string]string{"name": "web"}
	w.awaitPods("all of web run", func(pods []corev1.Pod) bool {
		running := len(pods) > 0
		for i := range pods {
			running = running && pods[i].Status.Phase == corev1.PodRunning
		}
		return running
	})
	names := []string{"web"}
	if h.second {
		names = append(names, "web-again")
	}
	for _, name := range names {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.ns}, Spec: h.budget}
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		if h.lock != "" {
			metav1.SetMetaDataAnnotation(&b.ObjectMeta, v1alpha1.LockAnnotation, h.lock)
		}
		w.create(b)
	}
}

// awaitAdvice waits for the suggestion that is expected.
func (w *world) awaitAdvice(maintenance, node string, h hindrance) (advice string) {
	w.t.Helper()
	kind := h.kind
	if kind == "" {
		kind = v1alpha1.BlockerPDBUnsatisfiable
	}
	w.awaitMaintenance(maintenance, "advice: "+h.advice, func(m *v1alpha1.NodeMaintenance) bool {
		status := nodeStatus(m, node)
		if status == nil {
			return false
		}
		for _, b := range status.Blockers {
			if b.Type == kind && strings.HasPrefix(b.Suggestion, h.advice+"kubectl ") {
				advice = b.Suggestion
			}
		}
		return advice != ""
	})
	return advice
}
