package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/charts"
	"ebbtide.dev/ebbtide/internal/image"
)

// versionVariable holds the version of a binary.
const versionVariable = "ebbtide.dev/ebbtide/internal/version.number"

// The programs, which are the last elements of their packages.
const (
	manager = "ebbtide"
	plugin  = "kubectl-ebbtide"
	agent   = "ebbtide-agent"
)

// documents is the folder of the licences in an image.
const documents = "/usr/share/doc/ebbtide/"

// release is made of the source in root, which is this module but in tests.
type release struct {
	root, out string
	version   string
	// home is the URL of the source and of its published versions.
	home string
	// imageName is the name of the image without tag.
	imageName string
	// programs maps the released programs to their platforms.
	programs map[string][]image.Platform
	// built marks what was built already, of this source.
	built    map[string]bool
	progress io.Writer
}

// newRelease takes everything that a version is called by from the chart, which users see.
func newRelease(out string, progress io.Writer) (*release, error) {
	var chart struct {
		AppVersion string `json:"appVersion"`
		Home       string `json:"home"`
	}
	var values struct {
		Image struct {
			Repository string `json:"repository"`
		} `json:"image"`
	}
	for file, into := range map[string]any{"ebbtide/Chart.yaml": &chart, "ebbtide/values.yaml": &values} {
		text, err := charts.Files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			return nil, fmt.Errorf("read %s of the chart: %w", file, err)
		}
	}
	nodes := []image.Platform{image.AMD64, image.ARM64}
	var desktops []image.Platform
	for _, system := range []string{"darwin", "windows"} {
		desktops = append(desktops, image.Platform{OS: system, Architecture: "amd64"}, image.Platform{OS: system, Architecture: "arm64"})
	}
	return &release{
		root: ".", out: out, version: chart.AppVersion, home: chart.Home, imageName: values.Image.Repository,
		programs: map[string][]image.Platform{manager: nodes, plugin: slices.Concat(nodes, desktops)},
		built:    map[string]bool{}, progress: progress,
	}, nil
}

// limit has the release made for these platforms only, if there are any.
//
// Errors: a platform of no program.
func (r *release) limit(platforms []string) error {
	if len(platforms) == 0 {
		return nil
	}
	known := map[string]bool{}
	for program, all := range r.programs {
		var kept []image.Platform
		for _, p := range all {
			known[p.String()] = true
			if slices.Contains(platforms, p.String()) {
				kept = append(kept, p)
			}
		}
		r.programs[program] = kept
	}
	for _, p := range platforms {
		if !known[p] {
			return fmt.Errorf("there is no release for %q, only for %s", p, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	return nil
}

// image makes the image of the manager and nothing else.
func (r *release) image(ctx context.Context) error {
	binaries := map[string]map[image.Platform]string{}
	var all licences
	for _, program := range r.inImage() {
		binaries["/"+program] = map[image.Platform]string{}
		for _, p := range r.programs[manager] {
			binary, err := r.build(ctx, program, p)
			if err != nil {
				return err
			}
			binaries["/"+program][p] = binary
			found, err := r.licences(ctx, binary)
			if err != nil {
				return err
			}
			all = all.with(found)
		}
	}
	own, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	i := image.Image{
		Name: r.imageName + ":" + r.version, Program: "/" + manager, Binaries: binaries["/"+manager],
		Files: map[string][]byte{documents + "LICENSE": own, documents + "THIRD-PARTY-LICENSES": all.text()},
		Labels: map[string]string{
			"org.opencontainers.image.title":    manager,
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	delete(binaries, "/"+manager)
	i.Further = binaries
	return r.writeImage(i)
}

// inImage are the programs of the image: the manager and, where the source has it, the
// agent of nodes, which the chart runs from the same image.
func (r *release) inImage() []string {
	if _, err := os.Stat(filepath.Join(r.root, "cmd", agent)); err != nil {
		return []string{manager}
	}
	return []string{manager, agent}
}

// writeImage writes the layout and an archive for each platform, and says by which digest
// the image is known.
func (r *release) writeImage(i image.Image) error {
	layout := r.path("image")
	if err := os.RemoveAll(layout); err != nil {
		return err
	}
	digest, err := i.WriteLayout(layout)
	if err != nil {
		return err
	}
	for p := range i.Binaries {
		if err := i.WriteArchive(r.path(r.name("ebbtide-image", p)+".tar"), p); err != nil {
			return err
		}
	}
	r.say("%s@%s", i.Name, digest)
	return os.WriteFile(r.path("image.digest"), []byte(digest+"\n"), 0o644)
}

// all makes everything.
func (r *release) all(ctx context.Context) error {
	if err := r.clear(); err != nil {
		return err
	}
	if err := r.image(ctx); err != nil {
		return err
	}
	own, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	for program, platforms := range r.programs {
		for _, p := range platforms {
			if err := r.publish(ctx, program, p, own); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(r.packageChart(), r.krew()); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(r.path(".build")), r.sums())
}

// clear removes an earlier release, also half of one.
//
// Errors: the folder has something else in it.
func (r *release) clear() error {
	entries, err := os.ReadDir(r.out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	ours := []string{".build", "image", "image.digest", krewFile, sumsFile}
	for _, entry := range entries {
		name := entry.Name()
		if !slices.Contains(ours, name) && !strings.HasPrefix(name, manager+"-") && !strings.HasPrefix(name, manager+"_") && !strings.HasPrefix(name, plugin+"_") {
			return fmt.Errorf("%s is of no release, and all in the folder would be removed: name one that is not there", r.path(name))
		}
	}
	return os.RemoveAll(r.out)
}

// publish makes the archive of one program and its bill of materials.
func (r *release) publish(ctx context.Context, program string, p image.Platform, own []byte) error {
	binary, err := r.build(ctx, program, p)
	if err != nil {
		return err
	}
	found, err := r.licences(ctx, binary)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	bill, err := r.bill(program, binary, data, found)
	if err != nil {
		return err
	}
	name := r.name(program, p)
	if err := os.WriteFile(r.path(name+".cdx.json"), bill, 0o644); err != nil {
		return err
	}
	files := []entry{
		{name: filepath.Base(binary), data: data, program: true},
		{name: "LICENSE", data: own},
		{name: "THIRD-PARTY-LICENSES", data: found.text()},
	}
	more, err := r.completion(program, p)
	if err != nil {
		return err
	}
	pack := writeTar
	if p.OS == "windows" {
		pack = writeZip
	}
	return r.write(r.archive(program, p), append(files, more...), pack)
}

// archive returns the file name of a program's archive.
func (r *release) archive(program string, p image.Platform) string {
	if p.OS == "windows" {
		return r.name(program, p) + ".zip"
	}
	return r.name(program, p) + ".tar.gz"
}

// executable returns the file name of a program on its platform.
func executable(program string, p image.Platform) string {
	if p.OS == "windows" {
		return program + ".exe"
	}
	return program
}

// build builds a program for a platform, once.
func (r *release) build(ctx context.Context, program string, p image.Platform) (string, error) {
	file := r.path(filepath.Join(".build", r.name(program, p), executable(program, p)))
	if r.built[file] {
		return file, nil
	}
	r.say("%s for %s", program, p)
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	build := image.Program{Dir: r.root, Package: "./cmd/" + program, Set: map[string]string{versionVariable: r.version}}
	r.built[file] = true
	return file, build.Build(ctx, p, abs)
}

// name returns the file name of a program for a platform, without ending.
func (r *release) name(program string, p image.Platform) string {
	return fmt.Sprintf("%s_%s_%s_%s", program, r.version, p.OS, p.Architecture)
}

func (r *release) path(name string) string { return filepath.Join(r.out, name) }

func (r *release) say(format string, args ...any) { fmt.Fprintf(r.progress, format+"\n", args...) }
