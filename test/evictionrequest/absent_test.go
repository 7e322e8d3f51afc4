package evictionrequest

import (
	"bufio"
	"os"
	"strings"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/test/cluster"
)

// Where the API server does not serve EvictionRequests, a manager that would answer them
// asks for none and says nothing about them, though it may neither read nor write them.
func TestWhereEvictionRequestsAreNotServed(t *testing.T) {
	t.Parallel()
	w := bareWorld(t, cluster.Spec{OnlyAPIServer: true, NoMachines: true, Audit: true})
	manager := w.cluster.StartManagerWith(t, "--eviction-requests=auto", "--machines=false")
	// By then it has asked: the first time when it starts.
	time.Sleep(3 * time.Second)
	log, err := os.ReadFile(manager.LogFile())
	w.must(err)
	for line := range strings.Lines(string(log)) {
		for _, word := range []string{"lifecycle.k8s.io", "EvictionRequest", "controller=evict"} {
			if strings.Contains(line, word) {
				t.Errorf("it says: %s", line)
			}
		}
	}
	file, err := os.Open(w.cluster.AuditLog)
	w.must(err)
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if text := lines.Text(); strings.Contains(text, cluster.Account.User()) && (strings.Contains(text, "/apis/lifecycle.k8s.io/v1alpha1/") || strings.Contains(text, "ebbtide-eviction-controller")) {
			t.Errorf("it asks for %s", text)
		}
	}
	w.must(lines.Err())
}
