package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"ebbtide.dev/ebbtide/internal/sandbox/download"
)

// Origin selects where the programs of Kubernetes come from.
type Origin string

const (
	// FromSource builds them.
	FromSource Origin = "source"
	// FromRelease downloads those whose checksum is pinned, and builds the others.
	FromRelease Origin = "release"
)

// originVariable is the environment variable that chooses an Origin.
const originVariable = "KUBERNETES"

// RequestedOrigin returns the origin in the environment variable KUBERNETES, or FromSource.
//
// Errors: the variable has another value.
func RequestedOrigin() (Origin, error) {
	switch origin := cmp.Or(Origin(os.Getenv(originVariable)), FromSource); origin {
	case FromSource, FromRelease:
		return origin, nil
	default:
		return "", fmt.Errorf("%s is %q; set it to %s or %s", originVariable, origin, FromSource, FromRelease)
	}
}

// findOfficial finds the programs of this version that a release has for this platform.
func (b *builder) findOfficial() {
	b.official = map[string]download.File{}
	on := download.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}
	for _, w := range wrappers(b.Version) {
		for _, c := range w.commands {
			if file, ok := b.source.File(b.Version, on, c.name); ok {
				b.official[c.name] = file
			}
		}
	}
}

// releaseStamp identifies an official program. It never equals the stamp of a build.
func releaseStamp(f download.File) string { return "release " + f.SHA256 }

// missingOfficial returns the official programs that are absent or come from somewhere else.
func (b *builder) missingOfficial() (missing []command) {
	for _, w := range wrappers(b.Version) {
		for _, c := range w.commands {
			if file, ok := b.official[c.name]; ok && b.wants(c.part) && !b.has(c, releaseStamp(file)) {
				missing = append(missing, c)
			}
		}
	}
	return missing
}

// download downloads the official programs that are missing. If it cannot, it says so, and they
// will be built. A program with another checksum than the pinned one is an error, and none of
// those that were downloaded with it is kept.
func (b *builder) download(ctx context.Context) error {
	if b.origin != FromRelease {
		return nil
	}
	if len(b.official) == 0 {
		b.say("no checksum is pinned for Kubernetes %s on %s/%s; building it from source", b.Version, runtime.GOOS, runtime.GOARCH)
		return nil
	}
	missing := b.missingOfficial()
	if len(missing) == 0 {
		return nil
	}
	tmp, err := b.scratch("official")
	if err != nil {
		return err
	}
	for i, c := range missing {
		label := fmt.Sprintf("%d/%d %s", i+1, len(missing), c.name)
		err := b.fetch(ctx, b.official[c.name], filepath.Join(tmp, c.name), label)
		if errors.Is(err, download.ErrUnavailable) {
			b.say("%s; building it from source", err)
			for _, c := range missing {
				delete(b.official, c.name)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
	for _, c := range missing {
		err := b.put(target{commands: []command{c}}, releaseStamp(b.official[c.name]), func(name string) error {
			return os.Rename(filepath.Join(tmp, name), b.Path(name))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fetch downloads a program and says from time to time how much of it has arrived.
func (b *builder) fetch(ctx context.Context, f download.File, path, label string) error {
	b.say("%s: downloading the official program of Kubernetes %s", label, b.Version)
	progress := &download.Progress{}
	stop := b.sayStill(label+": downloading", progress)
	defer stop()
	return b.source.Fetch(ctx, f, path, progress)
}
