package alert

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"ebbtide.dev/ebbtide/internal/core/rollout"
	"ebbtide.dev/ebbtide/internal/gate"
	"ebbtide.dev/ebbtide/test/patience"
	"ebbtide.dev/ebbtide/test/prebuilt"
)

const (
	// noCritical is the query that our messages and pages suggest.
	noCritical = `(count(ALERTS{severity="critical",alertstate="firing"}) or vector(0)) == bool 0`
	critical   = `
groups:
- name: test
  rules:
  - {alert: Broken, expr: vector(1), labels: {severity: critical}}
`
)

// A real Prometheus closes a gate while an alert fires. What else it answers opens none.
func TestLongGateAsksARealPrometheus(t *testing.T) {
	t.Parallel()
	server := startPrometheus(t)
	p, err := gate.NewPrometheus(server.url)
	if err != nil {
		t.Fatal(err)
	}
	await := func(want rollout.Verdict) {
		t.Helper()
		patience.Eventually(t, "the answer of Prometheus", func(ctx context.Context) (string, bool) {
			got, text := p.Ask(ctx, noCritical)
			return text, got == want
		})
	}
	await(rollout.Yes)
	server.setRules(critical)
	await(rollout.No)
	server.setRules("groups: []")
	await(rollout.Yes)
	for query, want := range map[string]rollout.Verdict{
		"vector(1)": rollout.Yes, "1": rollout.Yes, "vector(2) > bool 1": rollout.Yes, "vector(0)": rollout.No, "0": rollout.No,
		"vector(1) or vector(0) unless vector(1)": rollout.Yes,
		"absent_metric": rollout.Unknown, "vector(0) / 0": rollout.Unknown, "1 / 0": rollout.Unknown,
		"absent_metric[5m]": rollout.Unknown, `"text"`: rollout.Unknown, "vector(": rollout.Unknown, "quantile(2, vector(1))": rollout.Unknown,
	} {
		if got, text := p.Ask(t.Context(), query); got != want || (text != "") != (got == rollout.Unknown) {
			t.Errorf("%s: the answer is %d: %s, want %d", query, got, text, want)
		}
	}
}

// server is a Prometheus that evaluates rules every second.
type server struct {
	t       *testing.T
	dir     string
	url     string
	process *os.Process
}

var listens = regexp.MustCompile(`msg="Listening on".* address=(127\.0\.0\.1:[0-9]+)`)

func startPrometheus(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir()}
	s.write("prometheus.yaml", "global: {evaluation_interval: 1s}\nrule_files: [rules.yaml]\n")
	s.write("rules.yaml", "groups: []")
	command := exec.CommandContext(t.Context(), prebuilt.Path(t, "prometheus"),
		"--config.file=prometheus.yaml", "--storage.tsdb.path=data", "--web.listen-address=127.0.0.1:0")
	command.Dir = s.dir
	output, err := command.StderrPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.process = command.Process
	// It ends with the context of the test, as the folder goes.
	ended := make(chan struct{})
	t.Cleanup(func() { <-ended })
	address := make(chan string, 1)
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if found := listens.FindStringSubmatch(lines.Text()); found != nil {
				address <- found[1]
			}
		}
		close(address)
		_ = command.Wait()
	}()
	found, ok := <-address
	if !ok {
		t.Fatal("Prometheus does not start")
	}
	s.url = "http://" + found
	return s
}

func (s *server) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(strings.TrimSpace(text)+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// setRules has Prometheus read other rules.
func (s *server) setRules(text string) {
	s.t.Helper()
	s.write("rules.yaml", text)
	if err := s.process.Signal(syscall.SIGHUP); err != nil {
		s.t.Fatal(err)
	}
}
