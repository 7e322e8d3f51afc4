package node

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	fake "ebbtide.dev/ebbtide/test/logind"
	"ebbtide.dev/ebbtide/test/patience"
)

// shops are two replicas, which serve for 2 s after SIGTERM, until no node sends them requests.
var shops = program{name: "shop", replicas: 2, grace: shop.grace, args: shop.args}

// patch is a CronJob that only rollouts run. It changes a file of the host.
const patch = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: patch}
spec:
  schedule: "0 0 1 1 *"
  suspend: true
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: patch, image: ` + appImage + `, args: [-task=patched, -diary=/diary/patch], volumeMounts: [` + diaryMount + `]}]
          volumes: [` + diaryVolume + `]
`

// rebootFleet has all nodes require a reboot at the same time. A rollout runs a Job on each and
// reboots it, one at a time, and a client that is on none of them has every request answered by two
// replicas. The managers are on these nodes, too.
func (s *stage) rebootFleet(t *testing.T) {
	s.settled(t)
	f := &fleet{stage: s, namespace: s.Namespace(t)}
	for _, node := range s.Nodes {
		m := &rebooted{stage: s, node: node, boot: s.bootOf(t, node), diary: newDiary(t, s.Cluster, node, "patch")}
		m.start(t)
		f.machines = append(f.machines, m)
	}
	s.run(t, "helm upgrade ebbtide charts/ebbtide --reuse-values --set agent.enabled=true,agent.reboot.enabled=true,rollouts.jobNamespaces={"+f.namespace+"}"+values)
	s.agentsReady(t)
	f.require(t, corev1.ConditionFalse)
	s.Apply(t, f.namespace, shops.text()+"---"+patch)
	f.protect(t)
	waitAvailable(t, s.Cluster, f.namespace, shops.name)
	url := s.answers(t, f.namespace, shops.name)
	asking := s.request(t, func(ctx context.Context) error {
		_, err := ask(ctx, s.Cluster, url)
		return err
	})
	seen := f.watch(t)

	for _, m := range f.machines {
		m.requireReboot(t)
	}
	f.require(t, corev1.ConditionTrue)
	f.rollOut(t)
	asking.wantAnswers(t)
	seen.wantOneAtATime(t)
	f.require(t, corev1.ConditionFalse)
	for _, m := range f.machines {
		m.diary.once(t, "patched")
		if boot := s.bootOf(t, m.node); boot == m.boot || m.reboots != 1 || m.logind.Reboots() != 0 {
			t.Errorf("%s has boot %s after %s, and %d reboots were requested, want another boot by one", m.node, boot, m.boot, m.reboots+m.logind.Reboots())
		}
	}
	s.run(t, "kubectl delete noderollout patch && kubectl wait nodemaintenances --all --for=delete --timeout 120s")
	s.settled(t)
	s.run(t, "helm upgrade ebbtide charts/ebbtide --reuse-values --set agent.enabled=false,agent.reboot.enabled=false --set-json rollouts.jobNamespaces=[]"+values)
}

// fleet is the nodes of a rollout, and an application on them.
type fleet struct {
	*stage
	machines  []*rebooted
	namespace string
}

// protect has a budget keep one of the replicas.
func (f *fleet) protect(t *testing.T) {
	t.Helper()
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: shops.name}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: new(intstr.FromInt(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": shops.name}},
	}}
	if err := f.Client.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// require waits until all nodes report whether they require a reboot.
func (f *fleet) require(t *testing.T, status corev1.ConditionStatus) {
	t.Helper()
	patience.Eventually(t, "all nodes to report that a reboot is required: "+string(status), func(ctx context.Context) (string, bool) {
		list := &corev1.NodeList{}
		err := f.Client.List(ctx, list)
		saw, n := fmt.Sprint(err), 0
		for i := range list.Items {
			c := conditionOf(&list.Items[i], v1alpha1.NodeRebootRequired)
			saw += fmt.Sprintf("\n%s: %+v", list.Items[i].Name, c)
			if c.Status == status {
				n++
			}
		}
		return saw, n == len(f.Nodes)
	})
}

func conditionOf(node *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	n := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
	if n < 0 {
		return corev1.NodeCondition{}
	}
	return node.Status.Conditions[n]
}

// rollOut reboots the nodes that require it, and returns when the rollout is complete. Each of them
// goes down and boots when its agent has asked systemd-logind for it.
func (f *fleet) rollOut(t *testing.T) {
	t.Helper()
	r := &v1alpha1.NodeRollout{ObjectMeta: metav1.ObjectMeta{Name: "patch"}, Spec: v1alpha1.NodeRolloutSpec{
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: f.Nodes},
		}}}},
		When: &v1alpha1.RolloutWhen{RebootRequired: true},
		Job:  &v1alpha1.RolloutJob{Namespace: f.namespace, CronJob: "patch"}, Reboot: true,
		// Every kubelet meets it: it says how long a node has to be Ready.
		Target: &v1alpha1.CompleteWhen{KubeletVersion: ">=1.30.0", ReadySeconds: new(int32(2))},
	}}
	if err := f.Client.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			t.Log(f.managers(t))
		}
	}()
	patience.Eventually(t, "the rollout to be complete", func(ctx context.Context) (string, bool) {
		for _, m := range f.machines {
			if m.logind.Reboots() > 0 {
				f.reboot(t, m)
			}
		}
		err := f.Client.Get(ctx, client.ObjectKeyFromObject(r), r)
		return fmt.Sprintf("%+v %v", r.Status, err), err == nil && meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionRolloutComplete)
	})
	if status := r.Status; int(status.DoneCount) != len(f.Nodes) || status.FailedCount != 0 {
		t.Errorf("%+v, want all nodes done", status)
	}
}

// reboot is what logind does when it was asked to: the machine goes down, and boots.
func (f *fleet) reboot(t *testing.T, m *rebooted) {
	t.Helper()
	running, err := pods(t.Context(), f.Cluster, f.namespace, shops.name)
	if err != nil || len(running[m.node]) > 0 {
		t.Errorf("%d pods are on %s when it reboots: %v", len(running[m.node]), m.node, err)
	}
	m.diary.once(t, "patched")
	m.reboots += m.logind.Reboots()
	m.logind.Stop()
	f.PowerOff(t, m.node)
	m.bus.Stop(t)
	f.PowerOn(t, m.node)
	m.start(t)
}

// rebooted is a node with D-Bus and systemd-logind.
type rebooted struct {
	*stage
	node string
	// boot is the one before the rollout.
	boot   string
	diary  diary // of the Job
	bus    *fake.Bus
	logind *fake.Logind
	// reboots counts what earlier boots were asked for.
	reboots int
}

func (m *rebooted) start(t *testing.T) {
	t.Helper()
	m.bus = fake.StartBusIn(t, onNode(t, m.Cluster, m.node, "run/dbus"))
	m.logind = fake.Start(t, m.bus, fake.Spec{})
}

// requireReboot does what a distribution does after an update. A boot clears /run.
func (m *rebooted) requireReboot(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(onNode(t, m.Cluster, m.node, "run/reboot-required"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// unavailable is which nodes take no pods, over time.
type unavailable struct {
	nodes    map[string]bool
	most     []string
	follower interface{ Stop(testing.TB) }
}

func (f *fleet) watch(t *testing.T) *unavailable {
	t.Helper()
	u := &unavailable{nodes: map[string]bool{}}
	list := &corev1.NodeList{}
	if err := f.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	u.follower = f.Follow(t, list, func(_ watch.EventType, object client.Object) {
		node := object.(*corev1.Node)
		if delete(u.nodes, node.Name); node.Spec.Unschedulable || !isReady(node) {
			u.nodes[node.Name] = true
		}
		if len(u.nodes) > len(u.most) {
			u.most = u.most[:0]
			for name := range u.nodes {
				u.most = append(u.most, name)
			}
		}
	})
	return u
}

// wantOneAtATime ends the watch, and wants one node to have been unavailable at a time.
func (u *unavailable) wantOneAtATime(t *testing.T) {
	t.Helper()
	u.follower.Stop(t)
	if len(u.most) != 1 {
		t.Errorf("at a time %v were unavailable, want one node", u.most)
	}
}
