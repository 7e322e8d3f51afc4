package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Program is a running main package of the checkout.
type Program struct{ *process }

// StartProgram builds the main package in a folder of the checkout, once per
// cluster, and starts it. It ends with the cluster; several may run at once.
func (c *Cluster) StartProgram(ctx context.Context, folder string, args ...string) (*Program, error) {
	root, ok := checkout()
	if !ok {
		return nil, fmt.Errorf("start %s: only a checkout of Ebbtide has it", folder)
	}
	path, err := c.buildOnce(ctx, root, folder)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", folder, err)
	}
	name := filepath.Base(folder)
	dir, err := os.MkdirTemp(c.Dir, name+"-")
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", folder, err)
	}
	p, err := c.startProcess(dir, name, path, args)
	if err != nil {
		return nil, err
	}
	c.add(p)
	return &Program{p}, nil
}

// buildOnce builds a main package of the checkout unless this cluster has done
// so, and returns the path of the binary.
func (c *Cluster) buildOnce(ctx context.Context, root, folder string) (string, error) {
	c.buildMu.Lock()
	defer c.buildMu.Unlock()
	path := c.path(filepath.Base(folder))
	if c.built[folder] {
		return path, nil
	}
	if _, err := goTool(ctx, root, "build", "-buildvcs=false", "-ldflags=-w", "-o", path, "./"+folder); err != nil {
		return "", err
	}
	c.built[folder] = true
	return path, nil
}

// Kill ends the program at once, as a crash would.
func (p *Program) Kill() { p.kill() }

// Tail returns the last n lines of what the program printed.
func (p *Program) Tail(n int) string { return p.tail(n) }
