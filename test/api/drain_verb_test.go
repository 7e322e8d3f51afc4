package api

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
)

// printed is what a person sees of a run.
type printed struct {
	Code        int
	Out, ErrOut string
}

// chance is the end of a name that was made.
var chance = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)

// desk is where somebody uses the plugin on a cluster that has three nodes of its own,
// POOL-a to POOL-c, and no manager.
type desk struct {
	*cluster.Cluster
	t *testing.T
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{cluster.Start(t, cluster.Spec{OnlyAPIServer: true}), t}
	for _, name := range []string{"a", "b", "c"} {
		d.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: d.Pool() + "-" + name, Labels: map[string]string{"pool": d.Pool(), "node": name}}})
	}
	t.Cleanup(func() {
		for _, m := range d.maintenances() {
			_ = d.Client.Delete(context.WithoutCancel(t.Context()), &m)
		}
	})
	return d
}

func (d *desk) create(object client.Object) {
	d.t.Helper()
	d.createBy(d.Client, object)
}

func (d *desk) createBy(creator client.Client, object client.Object) {
	d.t.Helper()
	if err := creator.Create(d.t.Context(), object); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = d.Client.Delete(context.WithoutCancel(d.t.Context()), object) })
}

// run runs the plugin. What differs from run to run is shown by words.
func (d *desk) run(args ...string) printed {
	d.t.Helper()
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "POOL", d.Pool())
	}
	out, told, code := plugin(d.t, d.Cluster, args[0], args[1:]...)
	shown := strings.NewReplacer(d.Kubeconfig, "CONFIG", d.Pool(), "POOL", "go run ./cmd/kubectl-ebbtide", "kubectl ebbtide")
	return printed{code, chance.ReplaceAllString(shown.Replace(out), "-RANDOM"), chance.ReplaceAllString(shown.Replace(told), "-RANDOM")}
}

// maintenances are those of this desk, by name.
func (d *desk) maintenances() (all []v1alpha1.NodeMaintenance) {
	d.t.Helper()
	list := &v1alpha1.NodeMaintenanceList{}
	if err := d.Client.List(context.WithoutCancel(d.t.Context()), list); err != nil {
		d.t.Fatal(err)
	}
	for i := range list.Items {
		if strings.Contains(list.Items[i].Spec.Reason+list.Items[i].Name, d.Pool()) {
			all = append(all, list.Items[i])
		}
	}
	return all
}

// asked are the specs that commands ask for.
var asked = map[string]string{
	"drain POOL-b node/POOL-a --all-at-once": `
  nodeSelector:
    nodeSelectorTerms:
    - matchFields:
      - key: metadata.name
        operator: In
        values:
        - POOL-b
    - matchFields:
      - key: metadata.name
        operator: In
        values:
        - POOL-a
  stage: Drain
`,
	"drain -l pool=POOL,node!=c,!gpu --all-at-once --reason kernel --depth daemonset": `
  drainDepth: DaemonSet
  nodeSelector:
    nodeSelectorTerms:
    - matchExpressions:
      - key: gpu
        operator: DoesNotExist
      - key: node
        operator: NotIn
        values:
        - c
      - key: pool
        operator: In
        values:
        - POOL
  reason: kernel
  stage: Drain
`,
	"drain POOL-c --in-place 10m --deadline 2036-03-01T22:00:00+01:00 --on-deadline delete --ignore-daemonsets": `
  deadline:
    onDeadline: Delete
    time: "2036-03-01T21:00:00Z"
  drainDepth: Default
  inPlace:
    expectedDowntimeSeconds: 600
  nodeSelector:
    nodeSelectorTerms:
    - matchFields:
      - key: metadata.name
        operator: In
        values:
        - POOL-c
  stage: Drain
`,
	"cordon POOL-c": `
  nodeSelector:
    nodeSelectorTerms:
    - matchFields:
      - key: metadata.name
        operator: In
        values:
        - POOL-c
  stage: Cordon
`,
}

// What is asked for is what is typed, and is shown before it is done.
func TestDrainShowsWhatItWouldAskFor(t *testing.T) {
	d := newDesk(t)
	for args, want := range asked {
		got := d.run(append(strings.Fields(args), "--name", "POOL-x", "--dry-run=client", "-o", "yaml")...)
		want = "apiVersion: ebbtide.dev/v1alpha1\nkind: NodeMaintenance\nmetadata:\n  name: POOL-x\nspec:" + want
		if diff := cmp.Diff(want, got.Out); diff != "" || got.Code != 0 {
			t.Errorf("%s: exit code %d, tells %q (-want +got):\n%s", args, got.Code, got.ErrOut, diff)
		}
	}
	if left := d.maintenances(); len(left) > 0 {
		t.Errorf("a client dry run has created %v", left)
	}
	if got := d.run("drain", "POOL-a", "--dry-run=server"); got.Out != "NodeMaintenance drain-POOL-a-RANDOM drains POOL-a (server dry run)\n" || len(d.maintenances()) > 0 {
		t.Errorf("%+v, and there are %d maintenances", got, len(d.maintenances()))
	}
}

// The flags of kubectl drain are said to be what they are here, or refused before anything
// is asked for.
func TestDrainTakesTheFlagsOfKubectl(t *testing.T) {
	d := newDesk(t)
	const done = "NodeMaintenance POOL-x drains POOL-a (dry run)\n"
	for flag, want := range map[string]printed{
		"--ignore-daemonsets":               {Out: done, ErrOut: "--ignore-daemonsets sets spec.drainDepth to Default: pods of DaemonSets and static pods stay on the nodes\n"},
		"--ignore-daemonsets=false":         {Out: done},
		"--delete-emptydir-data":            {Out: done, ErrOut: "--delete-emptydir-data has no effect: emptyDir volumes are always deleted with their pods\n"},
		"--force":                           {Out: done, ErrOut: "--force has no effect: pods without a controller are always evicted, within their PodDisruptionBudgets, and not recreated\n"},
		"--skip-wait-for-delete-timeout":    {Code: 1, ErrOut: "error: flag needs an argument: --skip-wait-for-delete-timeout\n"},
		"--skip-wait-for-delete-timeout=30": {Out: done, ErrOut: "--skip-wait-for-delete-timeout has no effect: the drain waits for every pod, and shows those that do not terminate as blockers\n"},
		"--chunk-size=100":                  {Out: done, ErrOut: "--chunk-size has no effect: lists are always read in pages\n"},
		"--timeout=5m":                      {Out: done},
		"--grace-period=-1":                 {Out: done},
		"--grace-period=0":                  {Code: 1, ErrOut: "error: --grace-period is not supported: each pod has the terminationGracePeriodSeconds of its spec. To finish by a given time, use --deadline\n"},
		"--disable-eviction": {Code: 1, ErrOut: "error: --disable-eviction is not supported, as it bypasses PodDisruptionBudgets. To delete the remaining pods at a given time, " +
			"use --deadline with --on-deadline=Delete, which requires the verb bypass-budgets on nodemaintenances\n"},
		"--pod-selector=app=web": {Code: 1, ErrOut: "error: --pod-selector is not supported, as the node would count as drained with pods left. To keep pods, label them " +
			"cluster.x-k8s.io/drain=skip or skip them by a MachineDrainRule; to order them, use spec.drainPlan\n"},
		"--disable-eviction --grace-period=5": {Code: 1, ErrOut: "error: --grace-period is not supported: each pod has the terminationGracePeriodSeconds of its spec. To finish by a given time, use --deadline\n" +
			"--disable-eviction is not supported, as it bypasses PodDisruptionBudgets. To delete the remaining pods at a given time, " +
			"use --deadline with --on-deadline=Delete, which requires the verb bypass-budgets on nodemaintenances\n"},
		"--request-timeout=5s --context=nowhere": {Code: 1, ErrOut: "error: context \"nowhere\" does not exist\n"},
	} {
		got := d.run(append([]string{"drain", "POOL-a", "--name", "POOL-x", "--dry-run=client"}, strings.Fields(flag)...)...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", flag, diff)
		}
	}
}

// What is wrong is said before anything is done, and what helps.
func TestDrainIsRefused(t *testing.T) {
	d := newDesk(t)
	d.create(object(t, maintenance(d.Pool()+"-kernel", "nodeSelector:\n  nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: ["+d.Pool()+"-a]}]}]\nstage: Idle\nreason: New kernel")))
	for args, want := range map[string]string{
		"drain":                 "specify node names or -l",
		"drain POOL-a -l a=b":   "specify node names or -l, not both",
		"drain POOL-A x POOL-c": `node not found: "POOL-A" (did you mean POOL-a?), "x"`,
		"drain -l pool=nothing": "no node matches -l pool=nothing. See the labels with\n  kubectl get nodes --show-labels",
		"cordon -l pool=":       "no node matches -l pool=. See the labels with\n  kubectl get nodes --show-labels",
		"drain POOL-a --name POOL-kernel": "NodeMaintenance POOL-kernel already exists (New kernel): stage Idle, for POOL-a. Choose another --name, or start it with\n" +
			"  kubectl ebbtide drain nodemaintenance/POOL-kernel --kubeconfig CONFIG",
		"drain POOL-a --name Kernel":                      `invalid name "Kernel": a lowercase RFC 1123 subdomain must consist of`,
		"drain POOL-a --depth all":                        `--depth must be Default, DaemonSet or Static, not "all"`,
		"drain POOL-a --depth Static --ignore-daemonsets": "--ignore-daemonsets and --depth=Static contradict each other",
		"drain POOL-a --on-deadline Delete":               "--on-deadline requires --deadline",
		"drain POOL-a --deadline tomorrow":                `--deadline must be a time such as 2026-03-01T22:00:00Z or a duration such as 30m, not "tomorrow"`,
		"drain POOL-a --deadline -5m":                     `--deadline must be a time such as 2026-03-01T22:00:00Z or a duration such as 30m, not "-5m"`,
		"drain POOL-a --in-place 2h":                      "--in-place must be whole seconds from 1s to 1h, not 2h0m0s",
		"drain POOL-a --timeout=1m --wait=false":          "--timeout and --wait=false contradict each other",
		"drain POOL-a --timeout=-1s":                      "--timeout must not be negative: -1s",
		"drain POOL-a -o wide":                            `-o must be json, yaml or name, not "wide"`,
		"drain POOL-a --dry-run=yes":                      `--dry-run must be none, server or client, not "yes"`,
		"drain nm/POOL-kernel POOL-a":                     "specify nodes or one NodeMaintenance, not both",
		"drain nm/POOL-kernel --name x":                   "--name and --selector require a new NodeMaintenance",
		"drain nm/POOL-kernel --reason x": "--reason does not change the existing NodeMaintenance POOL-kernel. Change it with\n" +
			"  kubectl edit nodemaintenance POOL-kernel --kubeconfig CONFIG",
		"drain nm/POOL-kernl": "NodeMaintenance not found: \"POOL-kernl\" (did you mean POOL-kernel?). List them with\n" +
			"  kubectl ebbtide status --kubeconfig CONFIG",
		"cordon --name POOL-nobody": "NodeMaintenance not found: \"POOL-nobody\". List them with\n" +
			"  kubectl ebbtide status --kubeconfig CONFIG",
		"complete": "specify a NodeMaintenance or a node. List them with kubectl ebbtide status",
		"complete POOL-kernl": "NodeMaintenance not found: \"POOL-kernl\" (did you mean POOL-kernel?). List them with\n" +
			"  kubectl ebbtide status --kubeconfig CONFIG",
		"complete pod/x":         `invalid argument "pod/x": use NAME, nodemaintenance/NAME or node/NAME`,
		"uncordon node POOL-d x": `node not found: "POOL-d" (did you mean POOL-a, POOL-b or POOL-c?)`,
		"uncordon POOL-b": "no maintenance holds node \"POOL-b\". If it is cordoned, uncordon it with\n" +
			"  kubectl uncordon POOL-b --kubeconfig CONFIG",
	} {
		got := d.run(strings.Fields(args)...)
		if got.Code != 1 || got.Out != "" || !strings.HasPrefix(got.ErrOut, "error: "+want) || strings.Count(got.ErrOut, "\n") != strings.Count(want, "\n")+1 {
			t.Errorf("%s: %d %q\n%s\nwant\n%s", args, got.Code, got.Out, got.ErrOut, want)
		}
	}
	if got := d.run("drain", "-l", "!nobody-has-this", "--wait=false"); !strings.HasPrefix(got.ErrOut, "error: -l !nobody-has-this matches every node of the cluster (") {
		t.Errorf("labels of all nodes: %+v", got)
	}
	if is := d.maintenances(); len(is) != 1 || is[0].Spec.Stage != v1alpha1.StageIdle {
		t.Errorf("something was done: %v", is)
	}
}

// Who may not do it is told which right is missing.
func TestDrainWithoutRights(t *testing.T) {
	d := newDesk(t)
	reader, _ := d.User(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes", "pods"}, Verbs: []string{"list"}})
	nobody, _ := d.User(t)
	for user, right := range map[string]string{nobody: "list nodes", reader: "create nodemaintenances.ebbtide.dev"} {
		want := printed{Code: 4, ErrOut: "error: you may not " + right + " in the whole cluster (user \"USER\"). " +
			"Ask an administrator for this verb, and check it with\n  kubectl auth can-i " + right + " --as USER --kubeconfig CONFIG\n"}
		got := d.run("drain", "POOL-a", "--as", user)
		got.ErrOut = strings.ReplaceAll(got.ErrOut, strings.ReplaceAll(user, d.Pool(), "POOL"), "USER")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if left := d.maintenances(); len(left) > 0 {
		t.Errorf("something was done: %v", left)
	}
}

// A shell completes what there is.
func TestNamesAreCompleted(t *testing.T) {
	d := newDesk(t)
	d.create(object(t, maintenance(d.Pool()+"-kernel", anyNode)))
	namespace := d.Namespace(t)
	d.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db-0"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	})
	for typed, want := range map[string]string{
		"drain POOL-":                 "POOL-a POOL-b POOL-c",
		"drain POOL-a POOL-":          "POOL-b POOL-c",
		"drain nodemaintenance/POOL-": "nodemaintenance/POOL-kernel",
		"cordon POOL-c":               "POOL-c",
		"complete POOL-":              "POOL-kernel POOL-a POOL-b POOL-c",
		"agents POOL-b":               "POOL-b",
		"watch POOL-":                 "POOL-kernel",
		"drain --depth ":              "Default DaemonSet Static",
		"drain -o ":                   "json yaml name",
		"why -n NS pod/":              "pod/db-0",
		"drain -l a!=b,pool=POOL":     "a!=b,pool=POOL",
		"plan --selector pool=POOL":   "pool=POOL",
	} {
		words := strings.Split(strings.ReplaceAll(typed, "NS", namespace), " ")
		args := append([]string{"__complete", words[0], "--kubeconfig", d.Kubeconfig}, words[1:]...)
		got := d.run(args...)
		want += " :4"
		if shown := strings.Join(strings.Fields(got.Out), " "); shown != want {
			t.Errorf("%q suggests %q, want %q", typed, shown, want)
		}
	}
}

// What somebody should know who ends a maintenance is said before it ends.
func TestCompleteSaysWhatItEnds(t *testing.T) {
	d := newDesk(t)
	for _, m := range []string{"draining", "owned"} {
		o := object(t, maintenance(d.Pool()+"-"+m, "nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: ["+d.Pool()+"-a]}]}]}\nstage: Drain"))
		if m == "owned" {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "upgrade.example.com/v1", Kind: "Upgrade", Name: "pool-a", UID: "uid", Controller: new(true)}})
		}
		d.create(o)
	}
	const cancelled = "NodeMaintenance POOL-NAME is cancelled before its nodes are drained: no status yet\n"
	for name, want := range map[string]string{
		"draining": cancelled,
		"owned":    "NodeMaintenance POOL-NAME is owned by Upgrade pool-a, which may create another one\n" + cancelled,
	} {
		want := printed{Out: "nodemaintenance.ebbtide.dev/POOL-NAME\n", ErrOut: want}
		got := d.run("complete", "nodemaintenance/POOL-"+name, "--wait=false", "-o", "name")
		got.Out, got.ErrOut = strings.ReplaceAll(got.Out, "POOL-"+name, "POOL-NAME"), strings.ReplaceAll(got.ErrOut, "POOL-"+name, "POOL-NAME")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	// Nobody acts on it here, so that it is not over.
	want := printed{Code: 2, ErrOut: "NodeMaintenance POOL-owned is already complete\n" +
		"Timed out after 1s: NodeMaintenance POOL-owned is complete but has not released POOL-a yet. See why with\n" +
		"  kubectl describe nodemaintenance POOL-owned --kubeconfig CONFIG\n"}
	if diff := cmp.Diff(want, d.run("complete", "nm", "POOL-owned", "--timeout=1s")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("Timed out after 1s: POOL-a not cordoned yet. NodeMaintenance cordon-POOL-a-RANDOM continues in the background; see why with\n"+
		"  kubectl describe nodemaintenance cordon-POOL-a-RANDOM --kubeconfig CONFIG\n", d.run("cordon", "POOL-a", "--timeout=1s").ErrOut); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
