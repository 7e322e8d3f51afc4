package node

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/patience"
)

// story is played on a stage, on which others were before.
type story[S any] struct {
	name string
	play func(*S, *testing.T)
}

// play plays stories one after the other, until one of them fails: the next ones go on from
// where it should have ended.
func play[S any](t *testing.T, stage *S, stories []story[S]) {
	t.Helper()
	for _, one := range stories {
		begin := time.Now()
		if !t.Run(one.name, func(t *testing.T) {
			one.play(stage, t)
			t.Logf("took %s", time.Since(begin).Round(100*time.Millisecond))
		}) {
			return
		}
	}
}

// Ebbtide as people have it: installed by Helm on nodes with kubelets, with programs in the
// pods that end as they like. The stories go on from where the one before has ended.
func TestLongEbbtideOnRealNodes(t *testing.T) {
	s := newStage(t)
	play(t, s, []story[stage]{
		{"it is installed by the lines of the README", (*stage).install},
		{"programs end in their own ways", (*stage).drainPrograms},
		{"an application with one replica answers every request", (*stage).surgeUnderRequests},
		{"kubectl drain works beside it", (*stage).kubectlDrain},
		{"the leader drains its own node, and all others do", (*stage).drainManagers},
		{"the managers are replaced under admission requests", (*stage).rollout},
		{"agents of nodes take static pods down and bring them back", (*stage).agents},
		{"a rollout reboots nodes that require it, and every request is answered", (*stage).rebootFleet},
		{"the power of the leader's node is cut", (*stage).cutLeader},
		{"the power of the node that is drained is cut", (*stage).cutDrained},
		{"a reboot is believed to be over much too early", (*stage).rebootInPlace},
		{"it is upgraded in the middle of a drain, and back", (*stage).upgrade},
		{"it is uninstalled in the middle of a drain", (*stage).uninstall},
	})
}

var installLines = regexp.MustCompile("(?s)<!-- install: in test/node -->\n```\n(.*?)```")

// install does what README.md says, but for the image, which the nodes have already.
func (s *stage) install(t *testing.T) {
	readme, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := installLines.FindSubmatch(readme)
	if block == nil {
		t.Fatal("README.md does not say how to install Ebbtide")
	}
	var lines []string
	for line := range strings.Lines(string(block[1])) {
		if !strings.HasPrefix(line, "make image") && !strings.HasPrefix(line, "crane push") {
			lines = append(lines, line)
		}
	}
	if len(lines) > 5 || len(lines) < 2 {
		t.Errorf("README.md installs Ebbtide by %d lines", len(lines))
	}
	s.installWithoutRights(t)
	begin := time.Now()
	out := s.run(t, strings.Join(lines, ""))
	t.Logf("installed and tested in %s:\n%s", time.Since(begin).Round(100*time.Millisecond), out)
	for _, words := range []string{"STATUS: deployed", "Phase:          Succeeded"} {
		if !strings.Contains(out, words) {
			t.Errorf("the lines do not print %q", words)
		}
	}
	s.settled(t)
}

// installWithoutRights tries to install as somebody who may look and no more: Helm says
// what is not allowed, and nothing is half done.
func (s *stage) installWithoutRights(t *testing.T) {
	t.Helper()
	user, _ := s.User(t, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}})
	out, err := s.shell(t, "helm install ebbtide charts/ebbtide --create-namespace --kube-as-user "+user+values)
	if err == nil || !strings.Contains(out, "forbidden") || !strings.Contains(out, user) {
		t.Errorf("somebody without rights installs: %v\n%s", err, out)
	}
	if left := s.run(t, "kubectl get crd -o name | grep ebbtide || true; kubectl get namespaces -o name | grep "+system+" || true"); left != "" {
		t.Errorf("an installation that was refused leaves\n%s", left)
	}
}

// serveOn starts programs with one pod each that is on a node, and waits until they serve there.
func (s *stage) serveOn(t *testing.T, namespace, node string, programs ...program) {
	t.Helper()
	patience.Eventually(t, "node "+node+" to take pods", func(ctx context.Context) (string, bool) {
		object, err := getNode(ctx, s.Cluster, node)
		return fmt.Sprintf("%+v, %v", object.Spec, err), err == nil && isReady(object) && !object.Spec.Unschedulable && len(object.Spec.Taints) == 0
	})
	for _, one := range programs {
		one.replicas, one.on = 1, node
		s.Apply(t, namespace, one.text())
	}
	for _, one := range programs {
		waitAvailable(t, s.Cluster, namespace, one.name)
		s.awaitPod(t, namespace, one.name, "to be on "+node, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == node })
	}
}

// goneFrom wants no pod of these applications on a node whose containers have not ended.
func (s *stage) goneFrom(t *testing.T, namespace, node string, apps ...string) {
	t.Helper()
	for _, app := range apps {
		list := &corev1.PodList{}
		if err := s.Client.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{"app": app}); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			pod := &list.Items[i]
			ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
			if pod.Spec.NodeName == node && !ended {
				t.Errorf("pod %s is %s on %s, which is drained", pod.Name, pod.Status.Phase, node)
			}
		}
	}
}

const daemonAndDatabase = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: log-agent}
spec:
  selector: {matchLabels: {app: log-agent}}
  template:
    metadata: {labels: {app: log-agent}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: app, image: %[1]s}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data-db-0}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: %[3]s, resources: {requests: {storage: 1Mi}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - {name: app, image: %[1]s, args: [-graceful], volumeMounts: [{name: data, mountPath: /data}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: %[3]s, resources: {requests: {storage: 1Mi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[3]s}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Mi}
  storageClassName: ""
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: /var/lib/kubelet/story-data, type: DirectoryOrCreate}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%[2]s]}]}]}}
`

// drainPrograms drains a node of programs that end at once, late or never by themselves, of
// one that crashes, one whose replacement takes its time, a DaemonSet, and a database whose
// volume is on the node.
func (s *stage) drainPrograms(t *testing.T) {
	node, namespace := s.Nodes[0], s.Namespace(t)
	s.serveOn(t, namespace, node,
		program{name: "graceful", grace: 10 * time.Second, args: []string{"-graceful", "-linger=1s"}},
		program{name: "deaf", grace: 5 * time.Second, args: []string{"-deaf"}},
		program{name: "slow", grace: 3 * time.Second, args: []string{"-ready-after=5s", "-graceful"}, surges: true})
	s.Apply(t, namespace, program{name: "crashing", replicas: 1, grace: time.Second, args: []string{"-crash-after=1s"}, on: node}.text())
	s.Apply(t, namespace, fmt.Sprintf(daemonAndDatabase, appImage, node, "story-"+namespace))
	s.awaitPod(t, namespace, "db", "to run on "+node, func(pod *corev1.Pod) bool { return isPodReady(pod) && pod.Spec.NodeName == node })

	s.maintain(t, "programs", node, func(m *v1alpha1.NodeMaintenance) { m.Spec.DrainDepth = v1alpha1.PodTypeDaemonSet })
	t.Logf("drained in %s", s.drained(t, "programs"))
	s.goneFrom(t, namespace, node, "graceful", "deaf", "slow", "crashing", "log-agent", "db")
	for _, app := range []string{"graceful", "deaf", "slow"} {
		waitAvailable(t, s.Cluster, namespace, app)
	}
	s.complete(t, "programs")
	s.awaitPod(t, namespace, "db", "to be back on "+node, func(pod *corev1.Pod) bool { return isPodReady(pod) && pod.Spec.NodeName == node })
	s.awaitPod(t, namespace, "log-agent", "to be back on "+node, func(pod *corev1.Pod) bool { return isPodReady(pod) && pod.Spec.NodeName == node })
}

// awaitPod waits for a pod of an application as it is wanted.
func (s *stage) awaitPod(t *testing.T, namespace, app, what string, wanted func(*corev1.Pod) bool) {
	t.Helper()
	patience.Eventually(t, "a pod of "+app+" "+what, func(ctx context.Context) (string, bool) {
		list := &corev1.PodList{}
		err := s.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app": app})
		saw := fmt.Sprint(err)
		for i := range list.Items {
			if wanted(&list.Items[i]) {
				return "", true
			}
			saw += fmt.Sprintf(" %s on %s: %+v", list.Items[i].Name, list.Items[i].Spec.NodeName, list.Items[i].Status.Conditions)
		}
		return saw, false
	})
}

// answers waits until a Service leads to its pods, and returns where it is.
func (s *stage) answers(t *testing.T, namespace, name string) (url string) {
	t.Helper()
	url = address(t, s.Cluster, namespace, name)
	patience.Eventually(t, "Service "+name+" to answer", func(ctx context.Context) (string, bool) {
		_, err := ask(ctx, s.Cluster, url)
		return fmt.Sprint(err), err == nil
	})
	return url
}

// requests asks without end, several at a time, until it is stopped.
type requests struct {
	ended       context.CancelFunc
	all         sync.WaitGroup
	asked, lost atomic.Int64
	mu          sync.Mutex
	why         []string
}

func (s *stage) request(t *testing.T, ask func(context.Context) error) *requests {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &requests{ended: cancel}
	t.Cleanup(cancel)
	for range 4 {
		r.all.Go(func() {
			for ctx.Err() == nil {
				// What is under way at the end is waited for.
				if err := ask(context.WithoutCancel(ctx)); err != nil {
					r.lost.Add(1)
					r.mu.Lock()
					r.why = append(r.why, time.Now().UTC().Format("15:04:05.000 ")+err.Error())
					r.mu.Unlock()
				}
				r.asked.Add(1)
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	return r
}

// wantAnswers asks no more, and wants all of many requests to have been answered.
func (r *requests) wantAnswers(t *testing.T) {
	t.Helper()
	r.ended()
	r.all.Wait()
	asked, lost := r.asked.Load(), r.lost.Load()
	t.Logf("%d of %d requests failed", lost, asked)
	if lost > 0 || asked < 200 {
		t.Errorf("%d of %d requests failed, want none of at least 200: %v", lost, asked, r.why[:min(len(r.why), 5)])
	}
}

// shop goes on for a moment after SIGTERM, like most of what is to answer every request.
var shop = program{name: "shop", grace: 10 * time.Second, args: []string{"-graceful", "-linger=2s"}, surges: true}

// surgeUnderRequests drains the node of an application with one replica, twice, while it is
// asked all the time.
func (s *stage) surgeUnderRequests(t *testing.T) {
	namespace := s.Namespace(t)
	s.serveOn(t, namespace, s.Nodes[0], shop)
	url := s.answers(t, namespace, "shop")
	asking := s.request(t, func(ctx context.Context) error {
		_, err := ask(ctx, s.Cluster, url)
		return err
	})
	for n, node := range s.Nodes[:2] {
		name := fmt.Sprint("surge-", n)
		s.maintain(t, name, node)
		t.Logf("%s drained in %s", node, s.drained(t, name))
		s.goneFrom(t, namespace, node, "shop")
		s.complete(t, name)
	}
	asking.wantAnswers(t)
}

// kubectlDrain is what others do to a node meanwhile.
func (s *stage) kubectlDrain(t *testing.T) {
	node, namespace := s.Nodes[1], s.Namespace(t)
	s.serveOn(t, namespace, node, shop)
	url := s.answers(t, namespace, "shop")
	asking := s.request(t, func(ctx context.Context) error {
		_, err := ask(ctx, s.Cluster, url)
		return err
	})
	out := s.run(t, "kubectl drain "+node+" --ignore-daemonsets --timeout 90s")
	asking.wantAnswers(t)
	s.goneFrom(t, namespace, node, "shop")
	if !strings.Contains(out, "drained") {
		t.Errorf("kubectl drain does not say that the node is drained:\n%s", out)
	}
	s.run(t, "kubectl uncordon "+node)
}

// drainManagers drains the node of whoever leads, until every node had its turn.
func (s *stage) drainManagers(t *testing.T) {
	for n := range s.Nodes {
		s.settled(t)
		pod, node := s.leader(t)
		name := fmt.Sprint("managers-", n)
		s.maintain(t, name, node)
		took := s.drained(t, name)
		now, elsewhere := s.leader(t)
		t.Logf("%s, with %s that led, drained in %s; %s leads", node, pod, took, now)
		if elsewhere == node {
			t.Errorf("%s leads on %s, which is drained", now, node)
		}
		s.complete(t, name)
	}
	s.settled(t)
}

// rollout replaces all managers twice while requests need them to be admitted.
func (s *stage) rollout(t *testing.T) {
	asking := s.request(t, func(ctx context.Context) error {
		m := &v1alpha1.NodeMaintenance{Spec: v1alpha1.NodeMaintenanceSpec{Stage: v1alpha1.StageIdle, NodeSelector: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"nobody"}},
			}}},
		}}}
		m.GenerateName = "asked-"
		return s.Client.Create(ctx, m, client.DryRunAll)
	})
	for range 2 {
		s.run(t, "kubectl -n "+system+" rollout restart deployment/ebbtide && kubectl -n "+system+" rollout status deployment/ebbtide --timeout 120s")
	}
	s.settled(t)
	asking.wantAnswers(t)
}
