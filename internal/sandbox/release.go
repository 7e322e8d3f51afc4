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
	for _, w := range wrappers(b.Version) {
		for _, c := range w.commands {
			if file, ok := b.source.File(b.Version, runtime.GOOS, runtime.GOARCH, c.name); ok {
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
		b.say("%d/%d %s: downloading the official program of Kubernetes %s", i+1, len(missing), c.name, b.Version)
		err := b.source.Fetch(ctx, b.official[c.name], filepath.Join(tmp, c.name))
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
