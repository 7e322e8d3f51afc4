package prebuilt

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"ebbtide.dev/ebbtide/internal/sandbox"
)

const (
	// releaseSource is the module that releases are made of.
	releaseSource = "internal/release/testdata/tiny"
	// releaseDir is where they are: first, and second, which is made of a copy of the source.
	releaseDir = ".bin/releases"
)

// Releases returns the folders of two releases, which `make programs-all` makes of one small
// module in two folders. Neither may be changed.
func Releases(t testing.TB) (first, second string) {
	t.Helper()
	dir, err := sandbox.ProgramDir()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(filepath.Dir(dir))
	if err := checkReleases(root); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, releaseDir, "first"), filepath.Join(root, releaseDir, "second")
}

// checkReleases returns an error unless both releases are there and newer than our source, which
// includes that of the small module.
func checkReleases(root string) error {
	file, changed, err := newest(root)
	if err != nil {
		return err
	}
	for _, name := range []string{"first", "second"} {
		path := filepath.Join(releaseDir, name)
		info, err := os.Stat(filepath.Join(root, path, "SHA256SUMS"))
		if err != nil {
			return fmt.Errorf("%s is not made: run `make %s`", path, Long)
		}
		if changed.After(info.ModTime()) {
			return fmt.Errorf("%s is older than %s: run `make %s`", path, file, Long)
		}
	}
	return nil
}

// makeReleases makes both releases, for the platforms that the tests look at, unless they are up
// to date.
func makeReleases(ctx context.Context, root string, progress io.Writer) error {
	if checkReleases(root) == nil {
		return nil
	}
	begin := time.Now()
	dir := filepath.Join(root, releaseDir)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	copied := filepath.Join(dir, "source")
	if err := os.CopyFS(copied, os.DirFS(filepath.Join(root, releaseSource))); err != nil {
		return err
	}
	for name, source := range map[string]string{"first": filepath.Join(root, releaseSource), "second": copied} {
		fmt.Fprintf(progress, "making a release of a small module into %s\n", filepath.Join(releaseDir, name))
		out := filepath.Join(dir, name)
		release := exec.CommandContext(ctx, filepath.Join(root, ".bin", "programs", "release"), "all", out, "linux/amd64", "windows/amd64")
		release.Dir = source
		if said, err := release.CombinedOutput(); err != nil {
			return fmt.Errorf("make a release: %w\n%s", err, said)
		}
		if err := os.Chtimes(filepath.Join(out, "SHA256SUMS"), begin, begin); err != nil {
			return err
		}
	}
	return nil
}
