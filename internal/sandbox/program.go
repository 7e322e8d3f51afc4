package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Program is a running main package of the checkout.
type Program struct{ *process }

// StartProgram starts the main package in a folder of the checkout. It is built before, unless
// Spec.Programs has it. It ends with the cluster; several may run at once.
func (c *Cluster) StartProgram(ctx context.Context, folder string, args ...string) (*Program, error) {
	path, err := c.program(ctx, folder)
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

// program returns the path of the binary of a main package of the checkout.
func (c *Cluster) program(ctx context.Context, folder string) (string, error) {
	if c.spec.Programs != "" {
		return filepath.Join(c.spec.Programs, filepath.Base(folder)), nil
	}
	root, err := checkout()
	if err != nil {
		return "", err
	}
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

// Compilation is one call of the go command. It builds main packages of one module.
type Compilation struct {
	// Label begins each line of progress.
	Label string
	// Dir is the folder of the module.
	Dir string
	// Packages are the main packages.
	Packages []string
	// Tags are build tags.
	Tags string
	// Into is the file of a single program, or the folder of several and ends in a separator.
	Into string
}

// Compile builds programs, and prints the number of packages to compile and the progress. It prints
// nothing if they are up to date.
//
// Errors: a module cannot be downloaded, or something does not compile.
func Compile(ctx context.Context, c Compilation, progress io.Writer) error {
	dir, err := ProgramDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	b := &builder{progress: progress}
	unlock, err := waitLock(ctx, filepath.Join(dir, ".lock"), func() { b.say("%s: waiting for another build", c.Label) })
	if err != nil {
		return err
	}
	defer unlock()
	p := newProgress(c.Packages)
	defer b.reportProgress(c.Label+":", p)()
	if err := p.find(ctx, c.Dir, "-tags="+c.Tags); err != nil {
		return fmt.Errorf("build %s: %w", c.Label, err)
	}
	if len(p.missing) > 0 {
		b.say("%s: %s", c.Label, p)
	}
	args := append([]string{"build", "-v", "-buildvcs=false", "-ldflags=-w", "-tags=" + c.Tags, "-o", c.Into}, c.Packages...)
	if _, err := runGo(ctx, c.Dir, p.expects, args...); err != nil {
		return fmt.Errorf("build %s: %w", c.Label, err)
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
	kept, err := ProgramDir()
	if err != nil {
		return err
	}
	program := filepath.Join(kept, filepath.Base(folder))
	if !linked.folders[folder] {
		// A command that has printed what it compiles need not say it again.
		compilation := Compilation{Label: filepath.Base(folder), Dir: root, Packages: []string{"./" + folder}, Into: program}
		if err := Compile(ctx, compilation, io.Discard); err != nil {
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

// LogFile is the path of what the program printed.
func (p *Program) LogFile() string { return p.log }

// Tail returns the last n lines of what the program printed.
func (p *Program) Tail(n int) string { return p.tail(n) }
