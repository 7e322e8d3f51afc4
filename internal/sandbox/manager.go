package sandbox

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// managerName is the name of the controller manager's binary.
const managerName = "ebbtide"

// webhookAddress is the argument with the address at which a manager answers the API server.
const webhookAddress = "--webhook-bind-address="

// Manager is a running controller manager.
type Manager struct{ *process }

// StartManager installs what the manager needs, starts it as a process under
// its own identity and waits until it is ready. Further arguments override those
// that the sandbox gives; who gives webhookAddress has led the API server's webhooks
// there. It ends with the cluster; until then, several may run at once.
func (c *Cluster) StartManager(ctx context.Context, args ...string) (*Manager, error) {
	if err := c.InstallCRDs(ctx); err != nil {
		return nil, fmt.Errorf("start manager: %w", err)
	}
	path, err := c.program(ctx, "cmd/"+managerName)
	if err != nil {
		return nil, fmt.Errorf("start manager: %w", err)
	}
	lead := c.leadWebhooks
	if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, webhookAddress) }) {
		lead = nil
	}
	p, _, err := c.run(ctx, component{
		name:   c.managerInstance(),
		path:   path,
		ready:  "http://127.0.0.1:%d/readyz",
		before: lead,
		args: func(port int) []string {
			return append([]string{
				"--kubeconfig=" + c.ManagerKubeconfig,
				"--namespace=" + c.account.Namespace,
				fmt.Sprintf("--machines=%t", !c.spec.NoMachines),
				"--eviction-requests=" + c.evictionRequests(),
				"--webhook-client-ca=" + c.CallerCA(),
				"--webhook-client-names=" + CallerName,
				fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", port),
				"--metrics-bind-address=0",
				// A manager that is started again need not wait for a lease to expire.
				"--leader-elect=false",
			}, args...)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("start manager: %w", err)
	}
	if err := c.waitAdmission(ctx); err != nil {
		p.kill()
		return nil, fmt.Errorf("start manager: %w", err)
	}
	return &Manager{p}, nil
}

// evictionRequests is the mode of managers, as the chart has it.
func (c *Cluster) evictionRequests() string {
	if c.spec.EvictionRequests {
		return "auto"
	}
	return "off"
}

// leadWebhooks leads the webhooks of the API server to a free port, and returns
// the argument that has a manager listen there. When that manager is killed the
// port leads nowhere until the next one starts, as in life.
func (c *Cluster) leadWebhooks(ctx context.Context) (arg string, err error) {
	port, err := FreePort()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(webhookAddress+"127.0.0.1:%d", port), c.InstallChart(ctx, port)
}

// managerInstance names one manager's log file.
func (c *Cluster) managerInstance() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.managers++
	return fmt.Sprintf("manager-%d", c.managers)
}

// buildManager builds the manager where StartManager will find it.
func (b *builder) buildManager(ctx context.Context) error {
	dir, err := ProgramDir()
	if err != nil {
		return err
	}
	err = Compile(ctx, Compilation{
		Label: "manager", Dir: b.root, Packages: []string{"./cmd/" + managerName}, Into: filepath.Join(dir, managerName),
	}, b)
	if err != nil {
		return err
	}
	linked.mu.Lock()
	defer linked.mu.Unlock()
	linked.folders["cmd/"+managerName] = true
	return nil
}

// Kill ends the manager at once, as a crash would.
func (m *Manager) Kill() { m.kill() }

// Stop asks the manager to end and waits for it.
func (m *Manager) Stop() { m.stop(10 * time.Second) }

// Pause stops the manager where it is, as a machine that is starved or suspended does,
// until Resume.
func (m *Manager) Pause() error { return signalGroup(m.cmd.Process.Pid, syscall.SIGSTOP) }

// Resume lets the manager go on after Pause.
func (m *Manager) Resume() error { return signalGroup(m.cmd.Process.Pid, syscall.SIGCONT) }

// Done is closed when the manager has ended, for whatever reason.
func (m *Manager) Done() <-chan struct{} { return m.done }

// Tail returns the last n lines of the manager's log.
func (m *Manager) Tail(n int) string { return m.tail(n) }

// LogFile is the path of the manager's log.
func (m *Manager) LogFile() string { return m.log }

// Namespace is the manager's.
func (c *Cluster) Namespace() string { return c.account.Namespace }

// CallerCA is a PEM file with the authority of the certificate that the API server
// shows to webhooks.
func (c *Cluster) CallerCA() string { return c.credentials.path(callerCA) }
