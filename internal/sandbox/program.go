package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
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
	if err := buildProgram(ctx, root, folder, path); err != nil {
		return "", err
	}
	c.built[folder] = true
	return path, nil
}

// BuildPrograms builds main packages of the checkout, such as cmd/kubectl-ebbtide, into a folder.
//
// Errors: this is no checkout, or one of them does not compile.
func BuildPrograms(ctx context.Context, dir string, folders ...string) error {
	root, ok := checkout()
	if !ok {
		return errors.New("build programs: only a checkout of Ebbtide has their source")
	}
	for _, folder := range folders {
		if err := buildProgram(ctx, root, folder, filepath.Join(dir, filepath.Base(folder))); err != nil {
			return fmt.Errorf("build %s: %w", folder, err)
		}
	}
	return nil
}

// linked are the main packages of the checkout that this process has had linked.
var linked = struct {
	mu      sync.Mutex
	folders map[string]bool
}{folders: map[string]bool{}}

// buildProgram has a main package of the checkout at a path. What was linked is kept, so that
// who starts many sandboxes waits once: the go command sees that it is still what it would link,
// and is asked once.
func buildProgram(ctx context.Context, root, folder, path string) error {
	linked.mu.Lock()
	defer linked.mu.Unlock()
	kept := filepath.Join(root, ".bin", "programs")
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return err
	}
	unlock, err := waitLock(ctx, filepath.Join(kept, ".lock"), func() {})
	if err != nil {
		return err
	}
	defer unlock()
	program := filepath.Join(kept, filepath.Base(folder))
	if !linked.folders[folder] {
		if _, err := goTool(ctx, root, "build", "-buildvcs=false", "-ldflags=-w", "-o", program, "./"+folder); err != nil {
			return err
		}
		linked.folders[folder] = true
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// What is linked next replaces the file, and does not change the one that is run here.
	if os.Link(program, path) == nil {
		return nil
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o755)
}

// Kill ends the program at once, as a crash would.
func (p *Program) Kill() { p.kill() }

// Tail returns the last n lines of what the program printed.
func (p *Program) Tail(n int) string { return p.tail(n) }
