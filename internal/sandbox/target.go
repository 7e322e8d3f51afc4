package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// target groups binaries of one module that one call of the go command builds, so that linking one
// of them does not keep others from being compiled.
type target struct {
	wrapper  wrapper
	commands []command
}

// String names the binaries.
func (t target) String() string {
	var names []string
	for _, c := range t.commands {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

// announcement reports what is built, and how long that takes if nothing of it is in the build cache.
func announcement(targets []target) string {
	var names []string
	var cost time.Duration
	for _, t := range targets {
		names = append(names, t.wrapper.title())
		cost += t.wrapper.cost
	}
	what := names[0]
	if last := len(names) - 1; last > 0 {
		what = strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return fmt.Sprintf("building %s from source; about %d min on two cores the first time, less on more, seconds from the build cache",
		what, int(math.Ceil(cost.Minutes())))
}

// packages are the main packages of a target.
func (t target) packages() (packages []string) {
	for _, c := range t.commands {
		packages = append(packages, c.pkg)
	}
	return packages
}

// files are the names of what is made of a target.
func (t target) files() (files []string) {
	if t.wrapper.name == "kwok" {
		files = append(files, stagesFile)
	}
	for _, c := range t.commands {
		files = append(files, c.name)
	}
	return files
}

// compile builds the binaries of a target, and what belongs to them, into a folder.
func (b *builder) compile(ctx context.Context, t target, into, label string) error {
	dir := b.moduleDir(t.wrapper)
	// A single binary need not have the name that the go command would give it.
	args := []string{"build", "-v", "-mod=readonly", "-ldflags", b.ldflags(t.wrapper), "-o", into + string(filepath.Separator)}
	if len(t.commands) == 1 {
		args[len(args)-1] = filepath.Join(into, t.commands[0].name)
	}
	p := newProgress(t.packages())
	defer b.reportProgress(label+":", p)()
	if err := p.find(ctx, dir, "-mod=readonly"); err != nil {
		return err
	}
	b.say("%s: %s", label, p)
	if _, err := runGo(ctx, dir, p.expects, append(args, p.mains...)...); err != nil {
		return err
	}
	if t.wrapper.name == "kwok" {
		return copyStages(ctx, dir, filepath.Join(into, stagesFile))
	}
	return nil
}

// put has the files of a target come into the folder of the binaries. Stamps come last,
// since they say that the binaries are there.
func (b *builder) put(t target, stamp string, file func(name string) error) error {
	for _, c := range t.commands {
		if err := remove(b.Path(c.name + ".stamp")); err != nil {
			return err
		}
	}
	for _, name := range t.files() {
		if err := file(name); err != nil {
			return err
		}
	}
	for _, c := range t.commands {
		if err := writeFile(b.Path(c.name+".stamp"), []byte(stamp)); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a file if there is one.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
