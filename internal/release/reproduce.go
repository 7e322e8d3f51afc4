package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ebbtide.dev/ebbtide/internal/image"
)

// reproduce builds the manager twice: from the source, and from a copy of the source in another
// folder with an empty build cache.
//
// Errors: one of them does not compile, or they differ.
func (r *release) reproduce(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "ebbtide-reproduce-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	source := filepath.Join(dir, "source")
	if err := copySource(r.root, source); err != nil {
		return fmt.Errorf("copy the source: %w", err)
	}
	first, err := r.sumOfManager(ctx, r.root, filepath.Join(dir, "first"), "")
	if err != nil {
		return err
	}
	second, err := r.sumOfManager(ctx, source, filepath.Join(dir, "second"), filepath.Join(dir, "cache"))
	if err != nil {
		return err
	}
	if first != second {
		return fmt.Errorf("%s for %s has SHA-256 %s, and %s if it is built from a copy of its source", manager, image.AMD64, first, second)
	}
	r.say("%s for %s has SHA-256 %s both times", manager, image.AMD64, first)
	return nil
}

// sumOfManager builds the manager from the source in a folder and returns its checksum.
func (r *release) sumOfManager(ctx context.Context, source, file, cache string) (string, error) {
	r.say("%s for %s from %s", manager, image.AMD64, source)
	program := image.Program{Dir: source, Package: "./cmd/" + manager, Set: map[string]string{versionVariable: r.version}, Cache: cache}
	if err := program.Build(ctx, image.AMD64, file); err != nil {
		return "", err
	}
	data, err := os.ReadFile(file)
	return fmt.Sprintf("%x", sha256.Sum256(data)), err
}

// copySource copies what the programs are built from, and not what lies beside it.
func copySource(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, folder := range []string{"api", "charts", "cmd", "internal"} {
		if err := os.CopyFS(filepath.Join(to, folder), os.DirFS(filepath.Join(from, folder))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(from, file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, file), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
