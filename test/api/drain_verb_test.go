package api

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/golden"
)

// printed is what a person sees of a run.
type printed struct {
	Code        int
	Out, ErrOut string
}

// chance is the end of a name that depends on those of the nodes.
var chance = regexp.MustCompile(`-nodes-[0-9a-f]{8}\b`)

// desk runs the plugin on a cluster that has three nodes of its own, POOL-a to POOL-c, and no
// manager.
type desk struct {
	*cluster.Cluster
	t *testing.T
	// words are shown instead of what differs from run to run: the word after each.
	words []string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{Cluster: cluster.Start(t, cluster.Spec{OnlyAPIServer: true}), t: t}
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
	keep(d.t, d.Client, object)
}

// maintain creates a NodeMaintenance POOL-name of some of the nodes.
func (d *desk) maintain(name, rest string, nodes ...string) {
	d.t.Helper()
	terms := ""
	for _, node := range nodes {
		terms += "{matchFields: [{key: metadata.name, operator: In, values: [" + d.Pool() + "-" + node + "]}]}, "
	}
	d.create(object(d.t, selected(d.Pool()+"-"+name, terms)+"\n"+indent(rest, "  ")))
}

// space is a namespace that is shown as NS.
func (d *desk) space() string {
	namespace := d.Namespace(d.t)
	d.words = append([]string{namespace, "NS"}, d.words...)
	return namespace
}

// reader is a user who may list these kinds of the core group, and is shown as READER.
func (d *desk) reader(resources ...string) {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: resources, Verbs: []string{"list"}}}
	if len(resources) == 0 {
		rules = nil
	}
	user, _ := d.User(d.t, rules...)
	d.words = append([]string{user, "READER"}, d.words...)
}

// run runs the plugin. What differs from run to run is shown by words.
func (d *desk) run(args ...string) printed {
	d.t.Helper()
	words := slices.Concat(d.words, []string{d.Kubeconfig, "CONFIG", d.Pool(), "POOL", "go run ./cmd/kubectl-ebbtide", "kubectl ebbtide"})
	var meant []string
	for i := 0; i < len(d.words); i += 2 {
		meant = append(meant, d.words[i+1], d.words[i])
	}
	typed := strings.NewReplacer(append(meant, "POOL", d.Pool())...)
	for i := range args {
		args[i] = typed.Replace(args[i])
	}
	out, told, code := plugin(d.t, d.Cluster, args[0], args[1:]...)
	shown := strings.NewReplacer(words...)
	return printed{code, chance.ReplaceAllString(shown.Replace(out), "-nodes-HASH"), chance.ReplaceAllString(shown.Replace(told), "-nodes-HASH")}
}

// transcript wants commands to print what is in a file of testdata.
func (d *desk) transcript(file string, commands ...string) {
	d.t.Helper()
	var text strings.Builder
	for _, command := range commands {
		got := d.run(strings.Fields(command)...)
		fmt.Fprintf(&text, "$ kubectl ebbtide %s\n%s%s[exit code %d]\n\n", command, got.Out, got.ErrOut, got.Code)
	}
	golden.Equal(d.t, file, text.String())
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

// wantPlanned wants so many maintenances, none of which has begun.
func (d *desk) wantPlanned(count int) {
	d.t.Helper()
	is := d.maintenances()
	if len(is) != count {
		d.t.Errorf("there are %d NodeMaintenances, want %d", len(is), count)
	}
	for _, m := range is {
		if m.Spec.Stage != v1alpha1.StageIdle {
			d.t.Errorf("%s is in stage %s", m.Name, m.Spec.Stage)
		}
	}
}

// What is asked for is what is typed, and is shown before it is done. The flags of kubectl drain
// are translated, or refused before anything is asked for.
func TestDrainDryRunShowsTheNodeMaintenance(t *testing.T) {
	d := newDesk(t)
	const ofX, dry = " --name POOL-x", " --dry-run=client"
	commands := []string{"drain POOL-a --dry-run=server" + ofX}
	for _, command := range []string{
		"drain POOL-b node/POOL-a --all-at-once",
		"drain -l pool=POOL,node!=c,!gpu --all-at-once --reason kernel --depth daemonset",
		"drain POOL-c --in-place 10m --deadline 2036-03-01T22:00:00+01:00 --on-deadline delete --ignore-daemonsets",
		"cordon POOL-c",
	} {
		commands = append(commands, command+ofX+dry+" -o yaml")
	}
	d.transcript("drain-asks.txt", commands...)
	commands = nil
	for _, flags := range []string{
		"--ignore-daemonsets", "--ignore-daemonsets=false", "--delete-emptydir-data", "--force", "--skip-wait-for-delete-timeout=30", "--chunk-size=100",
		"--timeout=5m", "--grace-period=-1", "--grace-period=0", "--disable-eviction", "--pod-selector=app=web", "--disable-eviction --grace-period=5",
		"--request-timeout=5s --context=nowhere", "--skip-wait-for-delete-timeout",
	} {
		commands = append(commands, "drain POOL-a"+ofX+dry+" "+flags)
	}
	d.transcript("drain-flags.txt", commands...)
	d.wantPlanned(0)
}

// A command that is repeated continues the drain until it is complete.
func TestDrainIsRepeated(t *testing.T) {
	d := newDesk(t)
	const again = "drain POOL-a --wait=false"
	d.transcript("drain-again.txt", again, again, again+" --deadline 5m", again+" --depth Default", "drain -l pool=POOL,node=a --all-at-once --wait=false --dry-run=client",
		"complete nodemaintenance/drain-POOL-a --wait=false", again, again, "cordon POOL-a --wait=false", "cordon POOL-a --wait=false")
	if all := d.maintenances(); len(all) != 3 {
		t.Errorf("there are %d NodeMaintenances, want 3", len(all))
	}
}

// What is wrong is said before anything is done, and what helps.
func TestDrainIsRefused(t *testing.T) {
	d := newDesk(t)
	d.maintain("kernel", "stage: Idle\nreason: New kernel", "a")
	d.transcript("drain-refused.txt",
		"drain", "drain POOL-a -l a=b", "drain POOL-A x POOL-c", "drain -l pool=nothing", "cordon -l pool=",
		"drain POOL-a --name POOL-kernel", "drain POOL-a --name Kernel", "drain POOL-a --depth all", "drain POOL-a --depth Static --ignore-daemonsets",
		"drain POOL-a --on-deadline Delete", "drain POOL-a --deadline tomorrow", "drain POOL-a --deadline -5m", "drain POOL-a --in-place 2h",
		"drain POOL-a --timeout=1m --wait=false", "drain POOL-a --timeout=-1s", "drain POOL-a -o wide", "drain POOL-a --dry-run=yes",
		"drain nm/POOL-kernel POOL-a", "drain nm/POOL-kernel --name x", "drain nm/POOL-kernel --reason x", "drain nm/POOL-kernl",
		"cordon --name POOL-nobody", "complete", "complete POOL-kernl", "complete pod/x", "uncordon node POOL-d x", "uncordon POOL-b")
	if got := d.run("drain", "-l", "!nobody-has-this", "--wait=false"); !strings.HasPrefix(got.ErrOut, "error: -l !nobody-has-this matches every node of the cluster (") {
		t.Errorf("labels of all nodes: %+v", got)
	}
	d.wantPlanned(1)
}

// The missing right is named.
func TestDrainWithoutRightsIsRefused(t *testing.T) {
	d := newDesk(t)
	d.reader()
	d.transcript("drain-no-rights.txt", "drain POOL-a --as READER")
	d.reader("nodes", "pods")
	d.transcript("drain-few-rights.txt", "drain POOL-a --as READER")
	d.wantPlanned(0)
}

// What matters to the person who ends a maintenance is printed before it ends. Nothing acts on it
// here, so that it is not over in time.
func TestCompleteListsTheMaintenancesThatEnd(t *testing.T) {
	d := newDesk(t)
	d.maintain("draining", "stage: Drain", "a")
	owned := object(t, selected(d.Pool()+"-owned", "{matchFields: [{key: metadata.name, operator: In, values: ["+d.Pool()+"-a]}]}")+"\n  stage: Drain")
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "upgrade.example.com/v1", Kind: "Upgrade", Name: "pool-a", UID: "uid", Controller: new(true)}})
	d.create(owned)
	d.transcript("complete.txt", "complete nodemaintenance/POOL-draining --wait=false -o name", "complete nodemaintenance/POOL-owned --wait=false -o name",
		"complete nm POOL-owned --timeout=1s", "cordon POOL-a --name POOL-x --timeout=1s")
}
