package scenario

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/certificate"
	"ebbtide.dev/ebbtide/internal/core/evacuation"
	"ebbtide.dev/ebbtide/internal/kube"
	"ebbtide.dev/ebbtide/internal/sandbox"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

// TestLongUninstall ends Ebbtide in the middle of drains, a surge, a reboot in place and
// DaemonSets: by the hook of its chart, and by the plugin where managers are gone. It acts
// on everything in the cluster, so that it has one for itself.
func TestLongUninstall(t *testing.T) {
	t.Parallel()
	t.Run("the check says what works", checked)
	t.Run("the hook refuses, and then completes everything", hookCompletes)
	t.Run("managers that are gone are released", managersAreReleased)
}

// leaving is a fleet that Ebbtide leaves in the middle.
type leaving struct {
	*fleet
	bin string
	// before are the keys of Ebbtide in the whole cluster when nothing had begun.
	before []string
	// cordoned is a node that a person had cordoned before its maintenance.
	cordoned string
	// announced is a node of which a maintenance is planned, and rolled one of a rollout.
	announced, rolled string
	all               []string
}

func newLeaving(t *testing.T) *leaving {
	t.Helper()
	l := &leaving{fleet: newFleetIn(t, cluster.Spec{Replicas: true, NoMachines: true}), bin: t.TempDir()}
	for name, path := range map[string]string{
		"ebbtide": prebuilt.Path(t, "ebbtide"), "kubectl-ebbtide": prebuilt.Path(t, "kubectl-ebbtide"), "kubectl": cluster.KubectlPath(t),
	} {
		l.must("put it into the PATH", os.Symlink(path, filepath.Join(l.bin, name)))
	}
	more := l.nodes("cordoned", "planned", "rolled")
	l.cordoned, l.announced, l.rolled = more[0], more[1], more[2]
	l.all = append(more, l.held, l.old, l.name("new"), l.reboots[0].node, l.reboots[1].node, l.name("three"))
	l.everywhere(daemon{name: "log"}, l.all)
	l.everywhere(daemon{name: "proxy", tolerant: true}, l.all)
	l.cordon(l.cordoned, true)
	l.before = l.traces()
	return l
}

// begins brings everything into the middle.
func (l *leaving) begins() {
	l.t.Helper()
	l.fleet.begins()
	l.maintain("twice", v1alpha1.StageDrain, []string{l.cordoned})
	l.awaitDrained("twice")
	l.awaitHeld("proxy", l.cordoned)
	l.awaitAway("log", l.cordoned)
	l.maintain("next-week", v1alpha1.StageIdle, []string{l.announced})
	l.awaitNode(l.announced, "announced", func(n *corev1.Node) bool { return announces(n) })
	l.setLock("web", fmt.Sprintf(`{"holder":"user/anna","reason":"moving \u001b[2Jshards","acquiredAt":%q,"expiresAt":%q}`,
		time.Now().UTC().Format(time.RFC3339), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	l.askToo("janes")
	// Managers are gone when the test cleans up.
	l.t.Cleanup(l.unguard)
}

// unguard has nobody asked any more who may be gone.
func (l *leaving) unguard() {
	meta := metav1.ObjectMeta{Name: "ebbtide"}
	for _, object := range []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Account.Namespace, Name: "ebbtide-uninstall"}},
	} {
		l.must("remove "+object.GetName(), client.IgnoreNotFound(l.client.Delete(l.ctx, object)))
	}
	maintenances := &v1alpha1.NodeMaintenanceList{}
	l.must("list maintenances", l.client.List(l.ctx, maintenances))
	for i := range maintenances.Items {
		l.eventually("our webhooks not to be called", func() (bool, any) {
			err := l.setFinalizers(&maintenances.Items[i], "[]")
			return client.IgnoreNotFound(err) == nil, fmt.Sprint(err)
		})
	}
}

func announces(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Reason == v1alpha1.ReasonNodeMaintenance })
}

// askToo is somebody else who asks for the evacuation of a pod that nobody may evict.
func (l *leaving) askToo(name string) {
	l.t.Helper()
	l.pods(l.name("three"), pod{name: name, neverEvicted: true})
	p := &corev1.Pod{}
	l.get(p, name)
	l.create(evacuation.New(p, v1alpha1.InstigatorFinalizerPrefix+"jane.example.com", nil))
}

// exec runs a binary of Ebbtide as a user with a kubeconfig.
func (l *leaving) exec(kubeconfig, name string, args ...string) printed {
	l.t.Helper()
	return l.launch(kubeconfig, filepath.Join(l.bin, name), args...)
}

// launch runs a program to its end.
func (l *leaving) launch(kubeconfig, path string, args ...string) printed {
	l.t.Helper()
	command := exec.CommandContext(l.ctx, path, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+filepath.Join(l.bin, "cache"),
		"PATH="+l.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	text, err := command.CombinedOutput()
	if err != nil && command.ProcessState == nil {
		l.t.Fatal(err)
	}
	return printed{command.ProcessState.ExitCode(), strings.ReplaceAll(rfc3339.ReplaceAllString(string(text), "TIME"), l.prefix, "")}
}

// assertSays wants an exit code and words of a command, and nothing that a terminal obeys.
func (p printed) assertSays(t *testing.T, code int, words ...string) {
	t.Helper()
	if p.Code != code {
		t.Errorf("exit code %d, want %d: %s", p.Code, code, p.Text)
	}
	for _, one := range words {
		if !strings.Contains(p.Text, one) {
			t.Errorf("it does not say %q:\n%s", one, p.Text)
		}
	}
	if strings.Contains(p.Text, "\x1b") {
		t.Errorf("it prints an escape sequence: %q", p.Text)
	}
}

// account makes an account with the rights of a verb, as the chart gives them, and returns
// its kubeconfig.
func (l *leaving) account(verb string) string {
	l.t.Helper()
	text, err := os.ReadFile("../../charts/ebbtide/files/role-" + verb + ".yaml")
	l.must("read the role", err)
	ns, name := cluster.Account.Namespace, "ebbtide-"+verb
	var all strings.Builder
	all.WriteString(strings.ReplaceAll(string(text), "namespace: release", "namespace: "+ns))
	for _, of := range []struct{ kind, namespace string }{{"ClusterRole", ""}, {"Role", ns}, {"Role", metav1.NamespaceSystem}} {
		fmt.Fprintf(&all, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %[1]sBinding\nmetadata: {name: %[2]s, namespace: %[4]q}\n"+
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %[1]s, name: %[2]s}\nsubjects: [{kind: ServiceAccount, name: %[2]s, namespace: %[3]s}]\n",
			of.kind, name, ns, of.namespace)
	}
	fmt.Fprintf(&all, "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s}\n", name)
	l.cluster.Apply(l.t, ns, all.String())
	account := sandbox.Account{Namespace: ns, Name: name}
	l.eventually("the rights of "+name, func() (bool, any) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: account.User(), Groups: account.Groups(),
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Resource: "configmaps", Namespace: ns},
		}}
		if verb == "check" {
			review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Verb: "create", Group: v1alpha1.SchemeGroupVersion.Group, Resource: "nodemaintenances"}
		}
		l.must("review rights", l.client.Create(l.ctx, review))
		return review.Status.Allowed, review.Status
	})
	return l.cluster.ServiceAccountKubeconfig(l.t, ns, name)
}

func hookCompletes(t *testing.T) {
	l := newLeaving(t)
	hook := l.account("uninstall")
	l.begins()
	args := []string{"uninstall", "--namespace=" + cluster.Account.Namespace, "--service-account=" + cluster.Account.Name}

	l.exec(hook, "ebbtide", append(args, "--on-maintenances=Refuse")...).assertSays(t, 1,
		"error: Ebbtide is in use, and uninstalling it would leave behind:",
		"NodeMaintenances in progress (5): empty (Drain), reboot-one (Drain), reboot-two (Drain), replace (Drain), twice (Drain)",
		"Planned NodeMaintenances, announced on their nodes (1): next-week",
		"janes", "Nodes whose pods stay under locks (2): one, two",
		"PodDisruptionBudgets locked by their owners (1): ", "web by user/anna",
		"kubectl patch nodemaintenance NAME --type=merge",
	)
	l.maintain("still-possible", v1alpha1.StageIdle, []string{l.announced})

	// It is gone when the test cleans up, as are its managers.
	r := &v1alpha1.NodeRollout{ObjectMeta: metav1.ObjectMeta{Name: l.name("kernel")}, Spec: draining([]string{l.rolled}, 1)}
	l.must("create a rollout", l.client.Create(l.ctx, r))
	l.awaitRolloutComplete("kernel", v1alpha1.ReasonRolloutComplete)

	l.autoscaler(true)
	l.exec(hook, "ebbtide", append(args, "--on-maintenances=Complete", "--timeout=90s")...).assertSays(t, 0,
		"Deleting NodeRollouts (1): kernel",
		"Completing NodeMaintenances (6): empty, kernel-", "reboot-one, reboot-two, replace, twice",
		"NodeMaintenance empty is complete and only waits for the removal of its nodes; they are released without it. The cluster-autoscaler drains node held to remove it",
		"Deleting planned NodeMaintenances (2): next-week, still-possible",
		"its lock is no longer enforced: PodDisruptionBudget", "user/anna until TIME: moving [2Jshards",
		"No traces of Ebbtide are left.",
	)
	l.assertNobodyBegins()
	l.autoscaler(false)
	l.assertGivenBack()
	l.assertGoesWithItsAccount()
}

// autoscaler begins to remove the node that is drained, or gives up.
func (l *leaving) autoscaler(removes bool) {
	l.t.Helper()
	n := &corev1.Node{}
	l.change(n, l.held, func() {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.ToBeDeletedTaint })
		if removes {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: v1alpha1.ToBeDeletedTaint, Effect: corev1.TaintEffectNoSchedule})
		}
	})
}

// assertNobodyBegins wants nothing to be begun that nobody would end.
func (l *leaving) assertNobodyBegins() {
	l.t.Helper()
	err := l.client.Create(l.ctx, l.planned("late", v1alpha1.StageDrain, named([]string{l.held}), nil))
	want := "Ebbtide is being uninstalled, and nothing is begun any more; if it is not, delete ConfigMap ebbtide-uninstall: " +
		"kubectl delete configmap -n " + cluster.Account.Namespace + " ebbtide-uninstall"
	if err == nil || !strings.Contains(err.Error(), want) {
		l.t.Errorf("a NodeMaintenance is created after everything was ended: %v, want: %s", err, want)
	}
}

// assertGivenBack wants nothing of Ebbtide to be left anywhere, and everything to run.
func (l *leaving) assertGivenBack() {
	l.t.Helper()
	if diff := cmp.Diff(l.before, l.traces()); diff != "" {
		l.t.Errorf("keys of Ebbtide in the whole cluster (-before +after):\n%s", diff)
	}
	for _, node := range l.all {
		if node != l.name("new") {
			l.assertUnschedulable(node, node == l.cordoned)
		}
	}
	l.powerUp(l.reboots[0].node)
	l.letNew()
	l.release("stuck")
	l.awaitServing(app{name: "web", replicas: webReplicas})
	l.awaitOn("log", l.all)
	l.awaitOn("proxy", l.all)
	for _, name := range []string{"empty", "replace", "reboot-one", "reboot-two", "twice"} {
		m := &v1alpha1.NodeMaintenance{}
		l.get(m, l.name(name))
		if m.Spec.Stage != v1alpha1.StageComplete || len(m.Finalizers) > 0 {
			l.t.Errorf("%s is in stage %s with finalizers %v", name, m.Spec.Stage, m.Finalizers)
		}
	}
}

// powerUp is the end of a reboot in which nobody is interested any more.
func (l *leaving) powerUp(node string) {
	l.t.Helper()
	n := &corev1.Node{}
	l.change(n, node, func() { n.Annotations[sandbox.NodeAnnotation] = "fake" })
	l.recover(node)
}

// assertGoesWithItsAccount does what Helm does next, and wants the garbage collector to
// remove the rest.
func (l *leaving) assertGoesWithItsAccount() {
	l.t.Helper()
	for _, manager := range l.managers {
		manager.Kill()
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Account.Namespace, Name: cluster.Account.Name}}
	l.must("delete the ServiceAccount", l.client.Delete(l.ctx, account))
	for _, rest := range []client.Object{
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: kube.LeaderLease}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DrainLockMutex}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "ebbtide-uninstall"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: certificate.SecretName}},
	} {
		key := types.NamespacedName{Namespace: cluster.Account.Namespace, Name: rest.GetName()}
		l.eventually(fmt.Sprintf("%T %s gone with the ServiceAccount", rest, key), func() (bool, any) {
			err := l.client.Get(l.ctx, key, rest)
			return client.IgnoreNotFound(err) == nil && err != nil, rest
		})
	}
}

func managersAreReleased(t *testing.T) {
	l := newLeaving(t)
	l.begins()
	for _, manager := range l.managers {
		manager.Kill()
	}
	admin := l.cluster.Kubeconfig
	l.exec(admin, "kubectl-ebbtide", "release", "--yes").assertSays(t, 1,
		"a manager is running and would redo the changes: ", "in namespace "+cluster.Account.Namespace+" until TIME unless it is renewed", "add --force")

	marks := l.traces()
	commands := l.page("run: in test/scenario")
	if want := []string{"kubectl ebbtide release\n", "kubectl ebbtide release --yes\n"}; !slices.Equal(commands, want) {
		t.Fatalf("the page has its reader run %q, want %q", commands, want)
	}
	plan := l.awaitPlan(commands[0])
	shown := l.page("printed: by this command in test/scenario, among more of the same")
	plan.assertSays(t, 0, strings.SplitAfter(strings.Join(shown, ""), "\n")...)
	plan.assertSays(t, 0, "NodeMaintenance (5):\n", "twice: set stage Complete instead of Drain; remove finalizer nodemaintenance.k8s.io/maintenance-completion",
		"  "+"cordoned: leave it cordoned, as it was before its maintenance; ", "held: make it schedulable; ", "planned: remove conditions MaintenancePlanned",
		"return it to its ReplicaSet; remove annotation ebbtide.dev/surge", "remove scheduling gate ebbtide.dev/node-maintenance",
		"user/anna until TIME: moving [2Jshards", "MutatingWebhookConfiguration (1):\n  ebbtide: delete it",
		"Nothing was changed. Make these changes with\n  kubectl ebbtide release --yes\n")
	if diff := cmp.Diff(marks, l.traces()); diff != "" {
		t.Errorf("a dry run has changed something (-before +after):\n%s", diff)
	}

	bert, _ := l.cluster.User(t,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}},
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list"}},
		rbacv1.PolicyRule{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"get", "list"}},
	)
	l.exec(admin, "kubectl-ebbtide", "release", "--yes", "--as="+bert).assertSays(t, 1,
		"Could not read every Pod: list pods: ", `cannot list resource "pods"`, "Could not read every NodeMaintenance: ",
		"Could not remove the traces on", `cannot patch resource "poddisruptionbudgets"`, "objects could not be changed, and ",
		"kinds of objects could not be read; ask a user with more rights to run kubectl ebbtide release")
	l.assertUnschedulable(l.held, false)

	l.shell(commands[1]).assertSays(t, 0, "Removed the traces of Ebbtide on")
	l.before = slices.DeleteFunc(l.before, func(line string) bool {
		return strings.Contains(line, "WebhookConfiguration") || strings.HasPrefix(line, "Lease ")
	})
	l.assertGivenBack()
	planned := &v1alpha1.NodeMaintenance{}
	l.get(planned, l.name("next-week"))
	if planned.Spec.Stage != v1alpha1.StageIdle {
		t.Errorf("a planned maintenance is in stage %s", planned.Spec.Stage)
	}
	l.exec(admin, "kubectl-ebbtide", "release", "--yes").assertSays(t, 0, "No traces of Ebbtide found.")
	l.assertAManagerComesBackToNothing()
}

// awaitPlan waits until the lease of the manager that was killed is over.
func (l *leaving) awaitPlan(command string) (plan printed) {
	l.t.Helper()
	l.eventually("the lease to be over", func() (bool, any) {
		plan = l.shell(command)
		return plan.Code == 0, plan.Text
	})
	return plan
}

// shell runs a command as somebody pastes it.
func (l *leaving) shell(command string) printed {
	l.t.Helper()
	return l.launch(l.cluster.Kubeconfig, "sh", "-c", command)
}

// page are the blocks of docs/uninstall.md with a marker.
func (l *leaving) page(marker string) (blocks []string) {
	l.t.Helper()
	text, err := os.ReadFile("../../docs/uninstall.md")
	l.must("read the page", err)
	for _, block := range regexp.MustCompile("(?s)<!-- "+regexp.QuoteMeta(marker)+" -->\n```\n(.*?)```").FindAllSubmatch(text, -1) {
		blocks = append(blocks, string(block[1]))
	}
	return blocks
}

// assertAManagerComesBackToNothing wants a manager that is installed again to leave alone
// what was released, and to announce what is planned.
func (l *leaving) assertAManagerComesBackToNothing() {
	l.t.Helper()
	l.awaitLeads(l.cluster.StartReplica(l.t))
	l.awaitNode(l.announced, "announced again", announces)
	for _, node := range l.all {
		if node != l.name("new") {
			l.assertUnschedulable(node, node == l.cordoned)
		}
	}
	if left := l.evacuations(); len(left) > 0 {
		l.t.Errorf("there are evacuations again: %v", left)
	}
}
