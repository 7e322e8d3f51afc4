package lint_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/core/lint"
	"ebbtide.dev/ebbtide/internal/core/podclass"
	"ebbtide.dev/ebbtide/test/difference"
	"ebbtide.dev/ebbtide/test/golden"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func controlled(name, kind, owner string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), Labels: map[string]string{"app": owner},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: owner, UID: types.UID(owner), Controller: ptr.To(true)}},
	}
}

func podOf(name, kind, owner string, volumes ...corev1.Volume) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: controlled(name, kind, owner), Spec: corev1.PodSpec{Volumes: volumes}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if kind == "" {
		pod.OwnerReferences = nil
	}
	return pod
}

func emptyDir(name string, medium corev1.StorageMedium) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}}
}

func claimed(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}
}

// budgetOf selects the pods of an application.
func budgetOf(name, app string, maxUnavailable int, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt(maxUnavailable)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: allowed, ExpectedPods: 2, CurrentHealthy: 2, DesiredHealthy: 2},
	}
}

func deploymentOf(name string, replicas int32, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
	for _, one := range change {
		one(d)
	}
	return d
}

func surging(d *appsv1.Deployment) {
	d.Annotations = map[string]string{v1alpha1.EvacuatorAnnotationPrefix + v1alpha1.DeploymentEvacuatorClass: "10000/controller"}
}

func labelled(d *appsv1.Deployment) {
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": d.Name}}
	d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
}

func recreated(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType }

func TestMain(m *testing.M) { os.Exit(golden.Main(m)) }

type finding struct {
	given lint.Snapshot
	want  []string
}

func finds(t *testing.T, findings map[string]finding) {
	t.Helper()
	for name, test := range findings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			difference.None(t, "found", test.want, told(t, test.given))
		})
	}
}

func forPods(pods ...*corev1.Pod) lint.Snapshot { return lint.Snapshot{Pods: pods} }

func under(s lint.Snapshot, budgets ...*policyv1.PodDisruptionBudget) lint.Snapshot {
	s.Budgets = budgets
	return s
}

func TestBudgetsThatHoldADrainUp(t *testing.T) {
	t.Parallel()
	finds(t, map[string]finding{
		"nothing": {lint.Snapshot{}, nil},
		"a budget that allows one": {
			under(forPods(podOf("web-a", "ReplicaSet", "web")), budgetOf("web", "web", 1, 1)), nil,
		},
		"a budget that allows none for the moment": {
			under(forPods(podOf("web-a", "ReplicaSet", "web")), budgetOf("web", "web", 1, 0)), nil,
		},
		"a budget that never allows any":            {under(forPods(podOf("web-a", "ReplicaSet", "web"), podOf("web-b", "ReplicaSet", "web")), budgetOf("web", "web", 0, 0)), []string{"Error BudgetNeverAllows PodDisruptionBudget shop/web, 2 pods"}},
		"a budget that never allows any, of nobody": {under(forPods(), budgetOf("web", "web", 0, 0)), nil},
		"two budgets on a pod":                      {under(forPods(podOf("web-a", "ReplicaSet", "web-1")), budgetOf("one", "web-1", 1, 1), budgetOf("two", "web-1", 1, 1)), []string{"Error SeveralBudgets ReplicaSet shop/web-1, 1 pods"}},
	})
}

func TestApplicationsThatGoDown(t *testing.T) {
	t.Parallel()
	finds(t, map[string]finding{
		"a single replica":             {lint.Snapshot{Deployments: []*appsv1.Deployment{deploymentOf("web", 1)}}, []string{"Warning SingleReplica Deployment shop/web, 1 pods"}},
		"a single replica by default":  {lint.Snapshot{Deployments: []*appsv1.Deployment{deploymentOf("web", 0, func(d *appsv1.Deployment) { d.Spec.Replicas = nil })}}, []string{"Warning SingleReplica Deployment shop/web, 1 pods"}},
		"a single replica that surges": {lint.Snapshot{Deployments: []*appsv1.Deployment{deploymentOf("web", 1, surging)}}, nil},
		"no replica, and two":          {lint.Snapshot{Deployments: []*appsv1.Deployment{deploymentOf("web", 0), deploymentOf("api", 2, labelled)}}, []string{"Warning NoBudget Deployment shop/api, 2 pods"}},
		"two under a budget": {
			under(lint.Snapshot{Deployments: []*appsv1.Deployment{deploymentOf("api", 2, labelled)}}, budgetOf("any", "api", 1, 1)), nil,
		},
		"two under a budget of others":           {under(lint.Snapshot{Deployments: []*appsv1.Deployment{deploymentOf("api", 2, labelled)}}, budgetOf("any", "web", 1, 1)), []string{"Warning NoBudget Deployment shop/api, 2 pods"}},
		"two that surge":                         {lint.Snapshot{Deployments: []*appsv1.Deployment{deploymentOf("api", 2, surging)}}, nil},
		"a single replica that would and cannot": {lint.Snapshot{Deployments: []*appsv1.Deployment{deploymentOf("web", 1, surging, recreated)}}, []string{"Warning SingleReplica Deployment shop/web, 1 pods"}},
		"a single replica of a StatefulSet": {
			lint.Snapshot{StatefulSets: []*appsv1.StatefulSet{
				{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}},
				{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "queue"}, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3)}},
				{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "led"}, Spec: appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.EvacuatorAnnotationPrefix + "leader.example.com": "20000/leader"}},
				}}},
			}},
			[]string{
				"Warning SingleReplica StatefulSet shop/db, 1 pods",
				"Warning NoBudget StatefulSet shop/queue, 3 pods",
			},
		},
	})
}

func TestPodsThatAreNotMadeAgainOrComeBack(t *testing.T) {
	t.Parallel()
	everything := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	finished := podOf("tool", "", "tool")
	finished.Status.Phase = corev1.PodSucceeded
	finds(t, map[string]finding{
		"pods that nobody owns": {forPods(podOf("tool-4", "", "x"), podOf("tool-1", "", "x"), podOf("tool-3", "", "x"), podOf("tool-2", "", "x"), finished, mirror()), []string{"Warning BarePod Namespace shop, 4 pods"}},
		"a DaemonSet that tolerates everything": {
			lint.Snapshot{DaemonSets: []*appsv1.DaemonSet{
				{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "proxy"}, Status: appsv1.DaemonSetStatus{CurrentNumberScheduled: 5},
					Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Tolerations: everything}}},
				},
				{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "logs"}},
			}},
			[]string{"Warning ToleratesEverything DaemonSet shop/proxy, 5 pods"},
		},
	})
}

func mirror() *corev1.Pod {
	pod := podOf("proxy-node-1", "", "proxy", emptyDir("run", ""))
	podclass.MakeMirror(pod, "node")
	return pod
}

func TestDataThatIsOnANode(t *testing.T) {
	t.Parallel()
	set := &appsv1.ReplicaSet{ObjectMeta: controlled("web-1", "Deployment", "web")}
	finds(t, map[string]finding{
		"data on the node": {
			lint.Snapshot{
				Pods: []*corev1.Pod{
					podOf("web-a", "ReplicaSet", "web-1", emptyDir("cache", ""), emptyDir("lock", corev1.StorageMediumMemory), claimed("away"), claimed("here")),
					podOf("web-b", "ReplicaSet", "web-1", emptyDir("cache", "")),
					podOf("job-a", "Job", "job"), mirror(),
				},
				Deployments: []*appsv1.Deployment{deploymentOf("web", 2, surging)}, ReplicaSets: []*appsv1.ReplicaSet{set},
				Claims: []*corev1.PersistentVolumeClaim{
					{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "here"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "disk"}},
					{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "away"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "nfs"}},
				},
				Volumes: []*corev1.PersistentVolume{
					{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{}}}},
					{ObjectMeta: metav1.ObjectMeta{Name: "nfs"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}}}},
				},
			},
			[]string{"Note LocalData Deployment shop/web, 2 pods"},
		},
	})
}

// told lists the findings. Their texts are in testdata/messages.txt.
func told(t *testing.T, s lint.Snapshot) (lines []string) {
	t.Helper()
	s.Now = noon
	for _, f := range lint.Of(s).Findings {
		object := strings.TrimPrefix(f.Object.Namespace+"/"+f.Object.Name, "/")
		lines = append(lines, fmt.Sprintf("%s %s %s %s, %d pods", f.Severity, f.Check, f.Object.Kind, object, f.PodCount))
	}
	for _, text := range texts(s) {
		golden.Message(t, text)
	}
	return lines
}

func texts(s lint.Snapshot) (texts []string) {
	for _, f := range lint.Of(s).Findings {
		texts = append(texts, f.Message+" "+f.Suggestion)
	}
	return texts
}

// The worst is first, and the order in which objects are read makes no difference.
func TestTheOrderOfFindings(t *testing.T) {
	t.Parallel()
	s := lint.Snapshot{Deployments: []*appsv1.Deployment{deploymentOf("b", 1), deploymentOf("a", 1)}}
	for i := range 20 {
		s.Pods = append(s.Pods, podOf(fmt.Sprintf("tool-%d", i), "", "x", emptyDir("cache", "")), podOf(fmt.Sprintf("web-%d", i), "ReplicaSet", "web"))
	}
	s.Budgets = []*policyv1.PodDisruptionBudget{budgetOf("web", "web", 0, 0), budgetOf("y", "x", 1, 1), budgetOf("x", "x", 1, 1)}
	want := told(t, s)
	report := lint.Of(s)
	if report.Count != (lint.Count{Errors: 21, Warnings: 3, Notes: 20}) {
		t.Errorf("it counts %+v", report.Count)
	}
	for i, check := range []lint.Check{lint.BudgetNeverAllows, lint.SeveralBudgets} {
		if report.Findings[i].Check != check {
			t.Errorf("finding %d is %s, want %s", i, report.Findings[i].Check, check)
		}
	}
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 1))
		random.Shuffle(len(s.Pods), func(i, j int) { s.Pods[i], s.Pods[j] = s.Pods[j], s.Pods[i] })
		random.Shuffle(len(s.Deployments), func(i, j int) { s.Deployments[i], s.Deployments[j] = s.Deployments[j], s.Deployments[i] })
		if diff := cmp.Diff(want, told(t, s)); diff != "" {
			t.Fatalf("order %d (-first +this):\n%s", seed, diff)
		}
	}
}

// Names are no commands of a terminal.
func TestNamesOfOthersAreShownInALine(t *testing.T) {
	t.Parallel()
	for _, line := range texts(lint.Snapshot{Pods: []*corev1.Pod{podOf("a", "ReplicaSet", "web", emptyDir("\x1b[2Jcache\nx", ""))}}) {
		if strings.ContainsAny(line, "\x1b\n") {
			t.Errorf("shown: %q", line)
		}
	}
}
