package scenario

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ebbtide.dev/ebbtide/test/cluster"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

// terminal is where people use kubectl and our plugin.
type terminal struct {
	kubectl   string
	env       []string
	namespace string
	cluster   *cluster.Cluster
}

// newTerminal has the plugin in its PATH, and creates budget web.
func newTerminal(t *testing.T, spec cluster.Spec) terminal {
	t.Helper()
	c := cluster.Start(t, spec)
	kubectl := cluster.KubectlPath(t)
	ns := c.Namespace(t)
	if err := c.Client.Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}); err != nil {
		t.Fatal(err)
	}
	return terminal{
		kubectl: kubectl,
		env: append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "KUBECACHEDIR="+t.TempDir(),
			"PATH="+strings.Join([]string{filepath.Dir(prebuilt.Path(t, "kubectl-ebbtide")), filepath.Dir(kubectl), os.Getenv("PATH")}, string(os.PathListSeparator))),
		namespace: ns, cluster: c,
	}
}

// printed is what a person sees of a command, with times and this namespace left out.
type printed struct {
	Code int
	Text string
}

var rfc3339 = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

func (m terminal) run(t *testing.T, args ...string) printed {
	t.Helper()
	return m.exec(t, m.kubectl, append(args, "-n", m.namespace)...)
}

// shell runs a line as somebody pastes it.
func (m terminal) shell(t *testing.T, line string) printed {
	t.Helper()
	return m.exec(t, "sh", "-c", line)
}

func (m terminal) exec(t *testing.T, program string, args ...string) printed {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Env = m.env
	text, err := command.CombinedOutput()
	if err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	shown := strings.ReplaceAll(rfc3339.ReplaceAllString(string(text), "TIME"), m.namespace, "NS")
	return printed{command.ProcessState.ExitCode(), shown}
}

// What docs/in-place.md has an owner type locks a budget and unlocks it.
func TestTheLockOfTheDocuments(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/in-place.md")
	if err != nil {
		t.Fatal(err)
	}
	m := newTerminal(t, cluster.Spec{})
	var said []printed
	for _, line := range regexp.MustCompile(`(?m)^kubectl (ebbtide (?:un)?lock .*)$`).FindAllSubmatch(page, -1) {
		words := regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(string(line[1]), -1)
		for i := range words {
			words[i] = strings.Trim(words[i], `"`)
		}
		said = append(said, m.run(t, words...))
	}
	want := []printed{
		{0, "PodDisruptionBudget NS/web is locked by user/admin until TIME: moving shards\n" +
			"It expires in 120m. Lock again to renew it, or remove it with\n  kubectl ebbtide unlock pdb/web -n NS\n"},
		{0, "PodDisruptionBudget NS/web is unlocked\n"},
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("the commands of docs/in-place.md (-want +got):\n%s", diff)
	}
}
