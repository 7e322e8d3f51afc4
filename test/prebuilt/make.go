package prebuilt

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

// Make builds the programs of sets into .bin/programs, one module after the other, and makes the
// releases of the long set.
//
// Errors: this is no checkout, or one of them does not compile.
func Make(ctx context.Context, progress io.Writer, sets ...Set) error {
	dir, err := sandbox.ProgramDir()
	if err != nil {
		return err
	}
	root := filepath.Dir(filepath.Dir(dir))
	if slices.Contains(sets, Node) {
		if err := checkOutEarlier(ctx, root); err != nil {
			return fmt.Errorf("check out release %s: %w", Earlier, err)
		}
	}
	for _, call := range calls(root, dir, sets) {
		// A source that is changed from now on makes the programs stale.
		begin := time.Now()
		if err := sandbox.Compile(ctx, call.Compilation, progress); err != nil {
			return err
		}
		for _, name := range call.names {
			if err := os.Chtimes(filepath.Join(dir, name), begin, begin); err != nil {
				return fmt.Errorf("build %s: %w", name, err)
			}
		}
	}
	if slices.Contains(sets, Long) {
		return makeReleases(ctx, root, progress)
	}
	return nil
}

// checkOutEarlier has the source of the earlier release in its folder.
func checkOutEarlier(ctx context.Context, root string) error {
	folder := filepath.Join(root, earlierDir)
	if _, err := os.Stat(filepath.Join(folder, Earlier)); err == nil {
		return nil
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	script := exec.CommandContext(ctx, "sh", "-ec", "git archive -o $0/.tar "+Earlier+" && tar -xf $0/.tar -C $0 && rm $0/.tar && touch $0/"+Earlier, folder)
	script.Dir = root
	if said, err := script.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, said)
	}
	return nil
}

// call is one call of the go command.
type call struct {
	sandbox.Compilation
	names []string
}

// calls are the calls that build sets: one for all programs of our module that have the names
// of their packages, and one for each other program.
func calls(root, dir string, sets []Set) (all []call) {
	for _, p := range programs {
		if !slices.Contains(sets, p.set) {
			continue
		}
		if n := len(all) - 1; p.dir == "." && n >= 0 && all[n].Dir == root {
			all[n].Packages, all[n].names = append(all[n].Packages, p.pkg), append(all[n].names, p.name)
			all[n].Label, all[n].Into = all[n].Label+", "+p.name, dir+string(filepath.Separator)
			continue
		}
		all = append(all, call{names: []string{p.name}, Compilation: sandbox.Compilation{
			Label: p.name, Dir: filepath.Join(root, p.dir), Packages: []string{p.pkg}, Tags: p.tags, Into: filepath.Join(dir, p.name),
		}})
	}
	for n := range all {
		all[n].Label = fmt.Sprintf("%d/%d %s", n+1, len(all), all[n].Label)
	}
	return all
}
