package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// peer is a contender that takes its orders on standard input.
type peer struct {
	agent   string
	log     string
	command *exec.Cmd
	orders  io.WriteCloser
	answers chan string
}

func (l *Lab) startPeer(ctx context.Context, agent string, args ...string) (Contender, error) {
	p := &peer{agent: agent, log: filepath.Join(l.logs, agent+".log"), answers: make(chan string)}
	logFile, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("make log: %w", err)
	}
	defer logFile.Close()
	command := exec.CommandContext(ctx, filepath.Join(l.bin, agent), args...)
	command.Stderr = logFile
	command.Env = append(os.Environ(), "KUBECONFIG="+l.cluster.Kubeconfig, "KUBECACHEDIR="+filepath.Join(l.cluster.Dir, "kubectl-cache"))
	p.command = command
	orders, errIn := command.StdinPipe()
	answers, errOut := command.StdoutPipe()
	if err := errors.Join(errIn, errOut, command.Start()); err != nil {
		return nil, fmt.Errorf("start %s: %w", agent, err)
	}
	p.orders = orders
	go p.read(answers)
	if err := p.expect(ctx, "ready"); err != nil {
		return nil, errors.Join(err, p.Stop(ctx))
	}
	return p, nil
}

func (p *peer) read(answers io.Reader) {
	for lines := bufio.NewScanner(answers); lines.Scan(); {
		p.answers <- lines.Text()
	}
	close(p.answers)
}

func (p *peer) expect(ctx context.Context, want string) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("%s did not say %q: %w", p.agent, want, ctx.Err())
	case got := <-p.answers:
		if got != want {
			return fmt.Errorf("%s said %q instead of %q; see %s", p.agent, got, want, p.log)
		}
		return nil
	}
}

func (p *peer) Agent() string { return p.agent }

func (p *peer) Drain(ctx context.Context, nodes []string) error {
	if _, err := fmt.Fprintln(p.orders, strings.Join(nodes, " ")); err != nil {
		return fmt.Errorf("order %s to drain: %w", p.agent, err)
	}
	return p.expect(ctx, "done")
}

// Stop ends the peer, whatever it is doing: it keeps nothing in the cluster.
func (p *peer) Stop(context.Context) error {
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.agent, err)
	}
	for range p.answers {
		// What it still had to say no longer matters.
	}
	// It was killed, so that it says so is no news.
	_ = p.command.Wait()
	return nil
}
