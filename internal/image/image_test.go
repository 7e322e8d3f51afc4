package image_test

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"ebbtide.dev/ebbtide/internal/image"
	"ebbtide.dev/ebbtide/test/gocommand"
)

const name = "registry.example.com/tides/hello:1.2.3"

// build writes an executable for a platform.
func build(t *testing.T, p image.Platform) string {
	t.Helper()
	return on(t, p, gocommand.Executable(p.Architecture, &debug.BuildInfo{Path: "example.com/hello"}))[p]
}

// whole is an image of everything that one can have.
func whole(t *testing.T) image.Image {
	t.Helper()
	binaries := map[image.Platform]string{image.ARM64: build(t, image.ARM64), image.AMD64: build(t, image.AMD64)}
	return image.Image{
		Name:     name,
		Binaries: binaries,
		Further:  map[string]map[image.Platform]string{"/tide": binaries},
		Files:    map[string][]byte{"/usr/share/doc/hello/LICENSE": []byte("Do what you like.\n"), "/usr/share/doc/hello/NOTICE": nil},
		Labels:   map[string]string{"org.opencontainers.image.licenses": "Apache-2.0"},
	}
}

// tree reads all files of a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		all[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Two people who have the same binaries, each in a folder of their own, get the same bytes.
func TestTheSameBinariesBecomeTheSameBytes(t *testing.T) {
	t.Parallel()
	var trees [2]map[string]string
	var digests [2]string
	for n := range trees {
		dir, i := t.TempDir(), whole(t)
		for _, p := range []image.Platform{image.AMD64, image.ARM64} {
			if err := i.WriteArchive(filepath.Join(dir, p.Architecture+".tar"), p); err != nil {
				t.Fatal(err)
			}
		}
		digest, err := i.WriteLayout(filepath.Join(dir, "layout"))
		if err != nil {
			t.Fatal(err)
		}
		trees[n], digests[n] = tree(t, dir), digest
	}
	if len(trees[0]) != 11 || trees[0]["amd64.tar"] == trees[0]["arm64.tar"] {
		t.Errorf("%d files, want two archives that differ, and an index with two images of a config and a layer", len(trees[0]))
	}
	for name := range trees[0] {
		if trees[0][name] != trees[1][name] {
			t.Errorf("%s has other bytes the second time", name)
		}
	}
	if digests[0] != digests[1] || len(trees[0]) != len(trees[1]) {
		t.Errorf("digests %v, %d and %d files", digests, len(trees[0]), len(trees[1]))
	}
}

func TestAnImageHasTheProgramAndNothingElse(t *testing.T) {
	t.Parallel()
	i, dir := whole(t), t.TempDir()
	digest, err := i.WriteLayout(filepath.Join(dir, "layout"))
	if err != nil {
		t.Fatal(err)
	}
	if err := i.WriteArchive(filepath.Join(dir, "archive"), image.ARM64); err != nil {
		t.Fatal(err)
	}
	images := indexed(t, filepath.Join(dir, "layout"), digest)
	archived, err := tarball.ImageFromPath(filepath.Join(dir, "archive"), nil)
	if err != nil {
		t.Fatal(err)
	}
	images["archive"] = archived
	for platform, want := range map[string]image.Platform{"linux/amd64": image.AMD64, "linux/arm64": image.ARM64, "archive": image.ARM64} {
		config, err := images[platform].ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(config.OS, "/", config.Architecture, " ", config.Config.Entrypoint, " ", config.Config.User, " ", config.Config.Env,
			" ", config.Config.Labels, " ", config.Created.IsZero(), " ", len(config.History))
		if want := want.String() + " [/hello] 65532:65532 [] map[org.opencontainers.image.licenses:Apache-2.0] true 1"; got != want {
			t.Errorf("%s: %s, want %s", platform, got, want)
		}
		data, err := os.ReadFile(i.Binaries[want])
		if err != nil {
			t.Fatal(err)
		}
		listing := []string{
			fmt.Sprintf("hello 0:0 r-x %x", data), fmt.Sprintf("tide 0:0 r-x %x", data), "usr/ 0:0 r-x ", "usr/share/ 0:0 r-x ", "usr/share/doc/ 0:0 r-x ", "usr/share/doc/hello/ 0:0 r-x ",
			fmt.Sprintf("usr/share/doc/hello/LICENSE 0:0 r-- %x", "Do what you like.\n"), "usr/share/doc/hello/NOTICE 0:0 r-- ",
		}
		if diff := cmp.Diff(listing, contents(t, images[platform])); diff != "" {
			t.Errorf("%s (-want +got):\n%.2000s", platform, diff)
		}
	}
}

// indexed are the images of a layout by platform, after everything in it has the digest
// that it says.
func indexed(t *testing.T, dir, digest string) map[string]v1.Image {
	t.Helper()
	root, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest.String() != digest ||
		manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.2.3" {
		t.Fatalf("the layout has %v, want one index %s with tag 1.2.3", manifest.Manifests, digest)
	}
	index, err := root.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]v1.Image{}
	for _, descriptor := range inner.Manifests {
		if all[descriptor.Platform.String()], err = index.Image(descriptor.Digest); err != nil {
			t.Fatal(err)
		}
	}
	if len(all) != 2 {
		t.Fatalf("images for %v, want two platforms", all)
	}
	return all
}

// contents lists the layers of an image: name, owner, who may do what, and the bytes.
func contents(t *testing.T, i v1.Image) (all []string) {
	t.Helper()
	layers, err := i.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
		r, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, list(t, tar.NewReader(r))...)
	}
	return all
}

func list(t *testing.T, archive *tar.Reader) (all []string) {
	t.Helper()
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		data, readErr := io.ReadAll(archive)
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		mode := header.FileInfo().Mode().String()
		if header.ModTime.Unix() != 0 || mode[1:4] != mode[4:7] || mode[1:4] != mode[7:] {
			t.Errorf("%s of %s is of %s", mode, header.Name, header.ModTime)
		}
		all = append(all, fmt.Sprintf("%s %d:%d %s %x", header.Name, header.Uid, header.Gid, mode[7:], data))
	}
}

func TestWhatWouldNotRunIsRefused(t *testing.T) {
	t.Parallel()
	amd64 := image.AMD64
	binary := read(t, build(t, amd64))
	for want, i := range map[string]image.Image{
		"must have a registry, a path and a tag":     {Name: "hello"},
		"a path and a tag, such as ghcr.io/":         {Name: "registry.example.com/hello"},
		"repository can only contain the characters": {Name: "registry.example.com/Hello World:1"},
		"there are no binaries":                      {Name: name},
		"no such file or directory":                  {Name: name, Binaries: map[image.Platform]string{amd64: filepath.Join(t.TempDir(), "none")}},
		"is no executable of Linux":                  {Name: name, Binaries: on(t, amd64, []byte("#!/bin/sh\n"))},
		"is for EM_X86_64 and not for linux/arm64": {
			Name: name, Binaries: on(t, image.ARM64, binary),
		},
		"no images are made for windows/amd64, only for linux/amd64 and linux/arm64": {
			Name: name, Binaries: on(t, image.Platform{OS: "windows", Architecture: "amd64"}, binary),
		},
		"needs a dynamic linker, which the image has not: build it with CGO_ENABLED=0": {
			Name: name, Binaries: on(t, amd64, linked(binary)),
		},
		"the program and a file are both /hello": {Name: name, Binaries: on(t, amd64, binary), Files: map[string][]byte{"/hello": nil}},
		`"etc/passwd" is no absolute path`:       {Name: name, Binaries: on(t, amd64, binary), Files: map[string][]byte{"etc/passwd": nil}},
		`"/a/../../b" is no absolute path`:       {Name: name, Binaries: on(t, amd64, binary), Files: map[string][]byte{"/a/../../b": nil}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "layout")
			digest, err := i.WriteLayout(dir)
			if err == nil || !strings.Contains(err.Error(), want) || digest != "" {
				t.Errorf("%q and error %v, want one that says %q", digest, err, want)
			}
			if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("something was left: %v", err)
			}
		})
	}
}

// linked is a program that asks for a linker.
func linked(program []byte) []byte {
	program = bytes.Clone(program)
	const interpreter = 3
	binary.LittleEndian.PutUint32(program[binary.LittleEndian.Uint64(program[0x20:]):], interpreter)
	return program
}

func on(t *testing.T, p image.Platform, binary []byte) map[image.Platform]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, binary, 0o600); err != nil {
		t.Fatal(err)
	}
	return map[image.Platform]string{p: file}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// What is there already may be in use: a layout is never written over, an archive is
// replaced as a whole.
func TestExistingProgramsAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	i := image.Image{Name: name, Program: "/bin/other", Binaries: map[image.Platform]string{image.AMD64: build(t, image.AMD64)}}
	if _, err := i.WriteLayout(dir); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("error %v, want one that says that the folder is there already", err)
	}
	file := filepath.Join(dir, "archive")
	for range 2 {
		if err := i.WriteArchive(file, image.AMD64); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.WriteArchive(file, image.ARM64); err == nil || !strings.Contains(err.Error(), "there is no binary for linux/arm64") {
		t.Errorf("error %v, want one that says which binary is missing", err)
	}
	archived, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := archived.ConfigFile()
	if err != nil || config.Architecture != "amd64" || config.Config.Entrypoint[0] != "/bin/other" || len(tree(t, dir)) != 1 {
		t.Errorf("the archive is of %+v (%v), want that of before; files %d", config, err, len(tree(t, dir)))
	}
}
