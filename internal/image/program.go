package image

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Program is a main package to be built.
type Program struct {
	// Dir is a folder of the module.
	Dir string
	// Package is its main package, such as ./cmd/ebbtide.
	Package string
	// Set gives string variables other values, by import path and name.
	Set map[string]string
	// Cache is the folder of the build cache. Defaults to that of the go command.
	Cache string
}

// Build builds a static binary that does not depend on where and when it was built: not on
// the folder of the source, the commit around it, or a C compiler.
//
// Errors: what the go command says.
func (p Program) Build(ctx context.Context, platform Platform, file string) error {
	flags := []string{"-s", "-w", "-buildid="}
	for _, variable := range slices.Sorted(maps.Keys(p.Set)) {
		flags = append(flags, "-X", "'"+variable+"="+p.Set[variable]+"'")
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-mod=readonly",
		"-ldflags", strings.Join(flags, " "), "-o", file, p.Package)
	cmd.Dir = p.Dir
	// What a developer has set for themselves must not get into a binary.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0",
		"GOOS="+platform.OS, "GOARCH="+platform.Architecture)
	if p.Cache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+p.Cache)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s for %s: %w\n%s", p.Package, platform, err, out)
	}
	return nil
}
