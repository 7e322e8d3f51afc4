package scenario

import (
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/cluster"
)

// remote is a Cluster in another control plane, which has nothing of Ebbtide. Its
// world is there: nodes, pods, budgets. Its Machines are at home.
type remote struct {
	*world
	home *world
	name string // of the Cluster, and of the Secret with its kubeconfig
	// proxy is the way that the kubeconfig leads.
	proxy *cluster.Proxy
}

// remote creates a Cluster that can be reached.
func (w *world) remote(name string) *remote {
	w.t.Helper()
	r := w.elsewhere(name)
	r.store(r.proxy.Kubeconfig(w.t))
	return r
}

// elsewhere creates a Cluster whose Secret does not exist.
func (w *world) elsewhere(name string) *remote {
	w.t.Helper()
	c := cluster.Start(w.t, cluster.Spec{Workload: true})
	there := &world{
		t: w.t, ctx: w.ctx, client: c.Client, cluster: c, prefix: w.prefix + name + "-", ns: c.Namespace(w.t),
	}
	w.letManagerReadSecrets()
	w.clusterOf(name, func(c *v1alpha1.Cluster) {
		c.Labels = map[string]string{"name": name}
		c.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: name}
	})
	return &remote{world: there, home: w, name: name, proxy: c.Proxy(w.t)}
}

// letManagerReadSecrets binds the role of the chart, as who has remote clusters does.
func (w *world) letManagerReadSecrets() {
	w.t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "ebbtide-kubeconfigs"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ebbtide-kubeconfigs"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: cluster.Account.Namespace, Name: cluster.Account.Name}},
	}
	w.must("bind the role of kubeconfigs", client.IgnoreAlreadyExists(w.client.Create(w.ctx, binding)))
	w.eventually("the API server to know it", func() (bool, any) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               cluster.Account.User(),
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: w.ns, Verb: "get", Resource: "secrets"},
		}}
		w.must("review the manager's rights", w.client.Create(w.ctx, review))
		return review.Status.Allowed, review.Status.Reason
	})
}

// store puts a kubeconfig into the Secret of the Cluster.
func (r *remote) store(kubeconfig []byte) {
	r.t.Helper()
	r.storeAs("value", kubeconfig)
}

func (r *remote) storeAs(key string, kubeconfig []byte) {
	r.t.Helper()
	r.forgetSecret()
	r.home.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.home.ns, Name: r.name}, Data: map[string][]byte{key: kubeconfig},
	})
}

func (r *remote) forgetSecret() {
	r.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.home.ns, Name: r.name}}
	r.must("delete the Secret", client.IgnoreNotFound(r.home.client.Delete(r.ctx, secret)))
}

// running creates a Machine and waits until its node there takes pods.
func (r *remote) running(short string, changes ...func(*v1alpha1.Machine)) string {
	r.t.Helper()
	name := r.machine(short, changes...)
	r.awaitRunning(name)
	return name
}

// machine creates a Machine whose node is to be there.
func (r *remote) machine(short string, changes ...func(*v1alpha1.Machine)) string {
	r.t.Helper()
	w, name := r.home, r.world.name(short)
	r.cluster.ForgetNodes(r.t, name)
	w.createConfig(name)
	w.createInstance(name)
	instance := w.instance()
	w.change(instance, name, func() { instance.Spec.NodeLabels[cluster.PoolLabel] = r.cluster.Pool() })
	w.machineOnly(name, append(changes, r.own)...)
	return name
}

func (r *remote) awaitRunning(name string) {
	r.t.Helper()
	r.home.awaitPhase(name, v1alpha1.MachineRunning)
	r.awaitNode(name, "taking pods", func(n *corev1.Node) bool {
		return nodeReady(n) == corev1.ConditionTrue && len(n.Spec.Taints) == 0
	})
}

func (r *remote) own(m *v1alpha1.Machine) { m.Spec.ClusterName = r.name }

// found creates a node there, and a Machine that has it and nothing else. It goes
// no further before it is deleted.
func (r *remote) found(short string, changes ...func(*v1alpha1.Machine)) string {
	r.t.Helper()
	name := r.world.name(short)
	node := sandbox.NewNode(name, map[string]string{cluster.PoolLabel: r.cluster.Pool()})
	node.Spec.ProviderID = "scenario://" + name
	r.cluster.ForgetNodes(r.t, name)
	r.create(node)
	r.home.machineOnly(name, append(changes, r.own, func(m *v1alpha1.Machine) {
		m.Spec.ProviderID = node.Spec.ProviderID
		m.Spec.Bootstrap = v1alpha1.MachineBootstrap{}
	})...)
	r.home.awaitMachine(name, "held by us", func(m *v1alpha1.Machine) bool { return len(m.Finalizers) > 0 })
	return name
}

// rule creates a MachineDrainRule for the pods of an application on the Machines
// of this Cluster.
func (r *remote) rule(app string, drain v1alpha1.MachineDrainRuleDrain, changes ...func(*v1alpha1.MachineDrainRulePodSelector)) {
	r.t.Helper()
	pods := v1alpha1.MachineDrainRulePodSelector{Selector: labelSelector("app", app)}
	for _, change := range changes {
		change(&pods)
	}
	r.home.create(&v1alpha1.MachineDrainRule{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.home.ns, Name: app},
		Spec: v1alpha1.MachineDrainRuleSpec{
			Drain:    drain,
			Machines: []v1alpha1.MachineDrainRuleMachineSelector{{ClusterSelector: labelSelector("name", r.name)}},
			Pods:     []v1alpha1.MachineDrainRulePodSelector{pods},
		},
	})
}

// awaitReachable waits until the Cluster says whether it can be used, with all of
// these words.
func (r *remote) awaitReachable(status metav1.ConditionStatus, reason string, words ...string) {
	r.t.Helper()
	what := fmt.Sprintf("Reachable=%s (%s) that says %q", status, reason, words)
	await(r.home, what, &v1alpha1.Cluster{}, r.name, func(c *v1alpha1.Cluster) bool {
		found := apimeta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReachable)
		missing := func(part string) bool { return !contains(found.Message, part) }
		return found != nil && found.Status == status && found.Reason == reason && !slices.ContainsFunc(words, missing)
	})
}

func (r *remote) awaitBack() {
	r.t.Helper()
	r.awaitReachable(metav1.ConditionTrue, v1alpha1.ReasonReachable)
}

// awaitStuck waits until the deletion of a Machine stands still before its drain,
// for a reason that it says in all of these words.
func (r *remote) awaitStuck(machine string, words ...string) {
	r.t.Helper()
	all := append([]string{
		"Nodes could not be read: cluster " + r.home.ns + "/" + r.name + " is unreachable since ",
		"Restore the cluster or correct its kubeconfig. If the cluster is lost, set annotations",
	}, words...)
	r.home.awaitStep(machine, v1alpha1.ReasonDrainingNode, all...)
	r.home.awaitSays(machine, v1alpha1.ConditionDrainingSucceeded, "Unknown", v1alpha1.ReasonUnknown, all...)
}

// awaitNothingOf waits until nothing is left of a Machine, here and there.
func (r *remote) awaitNothingOf(machine string) {
	r.t.Helper()
	r.home.awaitNothingLeft(machine)
	r.awaitAbsent(&corev1.Node{}, machine)
}

// kubeconfig is the administrator's, changed.
func (r *remote) kubeconfig(change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) []byte {
	r.t.Helper()
	config, err := clientcmd.Load(r.proxy.Kubeconfig(r.t))
	r.must("read the kubeconfig", err)
	at := config.Contexts[config.CurrentContext]
	change(config.Clusters[at.Cluster], config.AuthInfos[at.AuthInfo])
	content, err := clientcmd.Write(*config)
	r.must("write the kubeconfig", err)
	return content
}

func (r *remote) leadingTo(url string, authority []byte) []byte {
	r.t.Helper()
	return r.kubeconfig(func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		cluster.Server = url
		if authority != nil {
			cluster.CertificateAuthorityData = authority
		}
	})
}
