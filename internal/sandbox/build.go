package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ebbtide.dev/ebbtide/internal/sandbox/download"
)

// Binaries are the executables of one Kubernetes version.
type Binaries struct {
	// Dir holds them: <root>/<version>.
	Dir string
	// Version of Kubernetes, without "v".
	Version string
}

// Path returns the path of an executable, such as "kube-apiserver".
func (b Binaries) Path(name string) string { return filepath.Join(b.Dir, name) }

// BuildSpec says which binaries to build.
type BuildSpec struct {
	// Version of Kubernetes, without "v". Defaults to RequestedVersion.
	Version string
	// Dir is the root under which each version has a folder. Defaults to .bin
	// of the checkout.
	Dir string
	// Kubectl asks for kubectl, too.
	Kubectl bool
	// Nodes asks for what runs on real nodes, too: kubelet, kube-proxy, containerd
	// and its network plugins.
	Nodes bool
	// Manager asks for the manager, too, if something else is missing.
	// StartManager builds it otherwise, and reports no progress.
	Manager bool
	// Origin of the programs of Kubernetes. Defaults to RequestedOrigin.
	Origin Origin

	// source of official programs, if not the Kubernetes project.
	source *download.Source
}

func (s BuildSpec) wants(p part) bool {
	return p == ofControlPlane || p == ofKubectl && s.Kubectl || p == ofNodes && s.Nodes
}

// Build builds what is missing and returns at once when nothing is. It says on
// progress what it is doing. Two builders of one folder wait for each other.
func Build(ctx context.Context, spec BuildSpec, progress io.Writer) (Binaries, error) {
	b, err := spec.builder(progress)
	if err != nil {
		return Binaries{}, err
	}
	if err := os.MkdirAll(b.Dir, 0o755); err != nil {
		return Binaries{}, fmt.Errorf("build control plane: %w", err)
	}
	if err := b.build(ctx); err != nil {
		return Binaries{}, fmt.Errorf("build control plane %s: %w", b.Version, err)
	}
	return b.Binaries, nil
}

// Find returns what Build returns, and builds nothing. Where official programs are asked for,
// it also accepts the ones that were built because they could not be downloaded.
//
// Errors: something is not built, which it names.
func Find(spec BuildSpec) (Binaries, error) {
	b, err := spec.builder(io.Discard)
	if err != nil {
		return Binaries{}, err
	}
	missing, err := b.missing()
	if err != nil {
		return Binaries{}, err
	}
	if len(missing) > 0 && b.origin == FromRelease {
		spec.Origin = FromSource
		return Find(spec)
	}
	var names []string
	for _, t := range missing {
		names = append(names, t.String())
	}
	if len(names) > 0 {
		return Binaries{}, fmt.Errorf("not built for Kubernetes %s: %s", b.Version, strings.Join(names, ", "))
	}
	return b.Binaries, nil
}

func (s BuildSpec) builder(progress io.Writer) (*builder, error) {
	if s.Version == "" {
		s.Version = RequestedVersion()
	}
	if err := CheckVersion(s.Version); err != nil {
		return nil, err
	}
	root, err := checkout()
	if err != nil {
		return nil, err
	}
	if s.Dir == "" {
		s.Dir = filepath.Join(root, ".bin")
	}
	b := &builder{
		root:     root,
		Binaries: Binaries{Dir: filepath.Join(s.Dir, s.Version), Version: s.Version},
		wants:    s.wants,
		manager:  s.Manager,
		origin:   s.Origin,
		progress: progress,
	}
	if b.origin == "" {
		origin, err := RequestedOrigin()
		if err != nil {
			return nil, err
		}
		b.origin = origin
	}
	if b.origin == FromRelease {
		b.source = download.Official()
		if s.source != nil {
			b.source = *s.source
		}
		b.findOfficial()
	}
	return b, nil
}

// scratchDir is the folder for files that are not complete yet.
const scratchDir = ".build"

type builder struct {
	Binaries
	root     string // of the checkout
	wants    func(part) bool
	manager  bool
	origin   Origin
	source   download.Source
	official map[string]download.File // programs that are downloaded, by name
	mu       sync.Mutex               // of progress
	progress io.Writer
}

func (b *builder) build(ctx context.Context) error {
	missing, err := b.missing()
	if err != nil || len(missing) == 0 {
		return err
	}
	unlock, err := waitLock(ctx, b.Path(".lock"), func() {
		b.say("waiting for another build in %s", b.Dir)
	})
	if err != nil {
		return err
	}
	defer unlock()
	// Another builder may have done it all in the meantime.
	if missing, err = b.missing(); err != nil || len(missing) == 0 {
		return err
	}
	start := time.Now()
	removeScratch, err := b.makeScratch()
	if err != nil {
		return err
	}
	defer removeScratch()
	if err := b.download(ctx); err != nil {
		return err
	}
	if missing, err = b.missing(); err != nil {
		return err
	}
	if err := b.buildTargets(ctx, missing); err != nil {
		return err
	}
	b.say("done in %s: %s", time.Since(start).Round(time.Second), b.Dir)
	return nil
}

// buildTargets builds two targets at a time: while one is linked, or its modules are downloaded,
// a single go command leaves a processor idle.
func (b *builder) buildTargets(ctx context.Context, targets []target) error {
	if len(targets) == 0 {
		return nil
	}
	b.say("%s", announcement(targets))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for i, t := range targets {
		group.Go(func() error {
			return b.buildTarget(ctx, t, fmt.Sprintf("%d/%d %s", i+1, len(targets), t))
		})
	}
	if b.manager {
		group.Go(func() error { return b.buildManager(ctx) })
	}
	return group.Wait()
}

// missing lists the binaries that are absent or were built from something else.
func (b *builder) missing() ([]target, error) {
	var missing []target
	for _, w := range wrappers(b.Version) {
		stamp, err := b.stamp(w)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		// Without a module there is no stamp, and nothing that was built from it.
		commands := slices.DeleteFunc(slices.Clone(w.commands), func(c command) bool {
			if file, ok := b.official[c.name]; ok && b.wants(c.part) {
				return b.has(c, releaseStamp(file))
			}
			return !b.wants(c.part) || err == nil && b.has(c, stamp)
		})
		if len(commands) > 0 {
			missing = append(missing, target{wrapper: w, commands: commands})
		}
	}
	return missing, nil
}

// has says whether a binary is there and was built from this.
func (b *builder) has(c command, stamp string) bool {
	got, readErr := os.ReadFile(b.Path(c.name + ".stamp"))
	_, statErr := os.Stat(b.Path(c.name))
	return readErr == nil && statErr == nil && string(got) == stamp
}

// stamp identifies what the binaries of a wrapper are built from.
func (b *builder) stamp(w wrapper) (string, error) {
	dir := b.moduleDir(w)
	h := sha256.New()
	for _, file := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return "", err
		}
		h.Write(data)
	}
	fmt.Fprintf(h, "%q %q", b.ldflags(w), stageFiles)
	h.Write([]byte(w.source))
	return hex.EncodeToString(h.Sum(nil)), nil
}

// moduleDir returns the folder of the wrapper module: in controlplane when it is pinned there,
// otherwise next to the binaries.
func (b *builder) moduleDir(w wrapper) string {
	if w.pinned() {
		return filepath.Join(b.root, "controlplane", w.name)
	}
	return b.Path(filepath.Join("module", w.name))
}

func (b *builder) ldflags(w wrapper) string {
	flags := "-s -w"
	if w.name != "kubernetes" {
		return flags
	}
	const pkg = " -X k8s.io/component-base/version."
	parts := strings.SplitN(b.Version, ".", 3)
	return flags + pkg + "gitVersion=v" + b.Version + pkg + "gitMajor=" + parts[0] + pkg + "gitMinor=" + parts[1]
}

func (b *builder) buildTarget(ctx context.Context, t target, label string) error {
	dir := b.moduleDir(t.wrapper)
	if err := b.prepareModule(ctx, t.wrapper, dir, label); err != nil {
		return err
	}
	stamp, err := b.stamp(t.wrapper)
	if err != nil {
		return err
	}
	tmp, err := b.scratch(t.wrapper.name)
	if err != nil {
		return err
	}
	if err := b.compile(ctx, t, tmp, label); err != nil {
		return err
	}
	return b.put(t, stamp, func(name string) error { return os.Rename(filepath.Join(tmp, name), b.Path(name)) })
}

// makeScratch makes an empty folder for files that are not complete yet. The caller holds the
// lock: a folder that exists has been left by a build that was killed.
func (b *builder) makeScratch() (remove func(), err error) {
	if err := os.RemoveAll(b.Path(scratchDir)); err != nil {
		return nil, err
	}
	return func() { _ = os.RemoveAll(b.Path(scratchDir)) }, os.Mkdir(b.Path(scratchDir), 0o755)
}

// scratch makes a folder for the incomplete files of one target.
func (b *builder) scratch(name string) (string, error) {
	dir := filepath.Join(b.Path(scratchDir), name)
	return dir, os.Mkdir(dir, 0o755)
}

// prepareModule makes the module of a wrapper unless it is there.
func (b *builder) prepareModule(ctx context.Context, w wrapper, dir, label string) error {
	if w.source != "" {
		return w.writeSource(dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b.say("%s: resolving the modules of %s %s", label, w.module, w.version)
	return w.generate(ctx, dir)
}

func (b *builder) say(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }

// Write writes to progress, one caller at a time.
func (b *builder) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.progress.Write(p)
}

// writeFile writes a file that is complete or absent.
func writeFile(path string, data []byte) error {
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
