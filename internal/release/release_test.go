package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"ebbtide.dev/ebbtide/test/gocommand"
)

// tiny is a module with the programs of a release, which have one dependency.
const tiny = "testdata/tiny"

// published makes a release of the tiny module, with programs that do not run, into a folder.
func published(t *testing.T) (out, said string) {
	t.Helper()
	gocommand.Play(t)
	out = filepath.Join(t.TempDir(), "out")
	var progress bytes.Buffer
	r, err := newRelease(out, &progress)
	if err != nil {
		t.Fatal(err)
	}
	r.root = tiny
	if err := r.limit([]string{"linux/amd64", "windows/amd64"}); err != nil {
		t.Fatal(err)
	}
	if err := r.all(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out, progress.String()
}

var published010 = []string{
	"SHA256SUMS",
	"ebbtide-0.1.0.tgz",
	"ebbtide-image_0.1.0_linux_amd64.tar",
	"ebbtide.yaml",
	"ebbtide_0.1.0_linux_amd64.cdx.json",
	"ebbtide_0.1.0_linux_amd64.tar.gz",
	"image",
	"image.digest",
	"kubectl-ebbtide_0.1.0_linux_amd64.cdx.json",
	"kubectl-ebbtide_0.1.0_linux_amd64.tar.gz",
	"kubectl-ebbtide_0.1.0_windows_amd64.cdx.json",
	"kubectl-ebbtide_0.1.0_windows_amd64.zip",
}

func TestWhatIsPublished(t *testing.T) {
	out, said := published(t)
	checkPublished(t, out)
	if digest := strings.TrimSpace(string(read(t, out, "image.digest"))); !strings.Contains(said, "ghcr.io/ebbtide/ebbtide:0.1.0@"+digest) {
		t.Errorf("the image is %q, and it was said: %s", digest, said)
	}
}

// checkPublished checks the files of a release of the tiny module, and what is in them.
func checkPublished(t *testing.T, out string) {
	t.Helper()
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(entries))
	for n := range entries {
		names[n] = entries[n].Name()
	}
	if diff := cmp.Diff(published010, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if digest := strings.TrimSpace(string(read(t, out, "image.digest"))); !strings.HasPrefix(digest, "sha256:") || len(digest) != 71 {
		t.Errorf("the digest of the image is %q", digest)
	}
	checkSums(t, out)
	programs := inLayer(t, filepath.Join(out, "image"))
	if diff := cmp.Diff([]string{"ebbtide", "ebbtide-agent"}, programs); diff != "" {
		t.Errorf("programs of the image (-want +got):\n%s", diff)
	}
	unix, windows := untar(t, out, "kubectl-ebbtide_0.1.0_linux_amd64.tar.gz"), unzip(t, out, "kubectl-ebbtide_0.1.0_windows_amd64.zip")
	for file, want := range map[string]string{"LICENSE": "Apache License\n", "THIRD-PARTY-LICENSES": "github.com/go-logr/logr\n\nApache License"} {
		if !strings.Contains(unix[file], want) || !strings.Contains(windows[file], want) {
			t.Errorf("%s is %.300q and %.300q, want %q in it", file, unix[file], windows[file], want)
		}
	}
	if len(unix) != 4 || len(windows) != 3 || unix[completer] != "#!/bin/sh\n" || windows["kubectl-ebbtide.exe"] == "" {
		t.Errorf("%d and %d files, want the program and two texts, and what completes where there is a shell", len(unix), len(windows))
	}
	chart, err := loader.LoadFile(filepath.Join(out, "ebbtide-0.1.0.tgz"))
	if err != nil || chart.Name() != "ebbtide" || chart.AppVersion() != "0.1.0" || len(chart.Templates) < 10 || len(chart.Schema) == 0 {
		t.Errorf("Helm reads chart %v (%v), want that of this version", chart, err)
	}
}

// inLayer are the programs of an image.
func inLayer(t *testing.T, dir string) (programs []string) {
	t.Helper()
	root, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := func(v1.Descriptor) bool { return true }
	indexes, err := partial.FindIndexes(root, all)
	if err != nil || len(indexes) != 1 {
		t.Fatalf("the layout has %d indexes (%v), want 1", len(indexes), err)
	}
	images, err := partial.FindImages(indexes[0], all)
	if err != nil || len(images) != 1 {
		t.Fatalf("the index has %d images (%v), want 1", len(images), err)
	}
	text := mutate.Extract(images[0])
	defer func() { _ = text.Close() }()
	for files := tar.NewReader(text); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return programs
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg && header.Mode&0o111 != 0 {
			programs = append(programs, header.Name)
		}
	}
}

// What a bill says is what scanners look for: each module by its package URL, and what it
// is licensed under.
func TestTheBillOfMaterials(t *testing.T) {
	out, _ := published(t)
	checkBill(t, out)
}

// checkBill checks the bill of materials of the manager in a release of the tiny module.
func checkBill(t *testing.T, out string) {
	t.Helper()
	type component struct {
		Purl, Version string
		Licenses      []struct{ License struct{ ID string } }
		Hashes        []struct{ Alg, Content string }
	}
	var bill struct {
		BomFormat, SpecVersion string
		Metadata               struct{ Component component }
		Components             []component
		Dependencies           []struct{ DependsOn []string }
	}
	if err := json.Unmarshal(read(t, out, "ebbtide_0.1.0_linux_amd64.cdx.json"), &bill); err != nil {
		t.Fatal(err)
	}
	say := func(c component) string {
		under := ""
		for _, l := range c.Licenses {
			under += " " + l.License.ID
		}
		return fmt.Sprintf("%s%s, %d sums", c.Purl, under, len(c.Hashes))
	}
	got := []string{bill.BomFormat + " " + bill.SpecVersion, say(bill.Metadata.Component)}
	for _, c := range bill.Components {
		got = append(got, strings.Replace(say(c), c.Version, "VERSION", 1))
	}
	want := []string{
		"CycloneDX 1.6", "pkg:golang/ebbtide.dev/ebbtide@v0.1.0 Apache-2.0, 1 sums",
		"pkg:golang/std@VERSION BSD-3-Clause, 0 sums", "pkg:golang/github.com/go-logr/logr@VERSION Apache-2.0, 1 sums",
	}
	if diff := cmp.Diff(want, got); diff != "" || len(bill.Dependencies) != 1 || len(bill.Dependencies[0].DependsOn) != 2 {
		t.Errorf("the bill, which depends on %v (-want +got):\n%s", bill.Dependencies, diff)
	}
	program := untar(t, out, "ebbtide_0.1.0_linux_amd64.tar.gz")[manager]
	if sum := bill.Metadata.Component.Hashes[0]; sum.Alg != "SHA-256" || sum.Content != fmt.Sprintf("%x", sha256.Sum256([]byte(program))) {
		t.Errorf("the bill is of another program: %v", sum)
	}
}

// Whoever makes a release of the same source makes the same.
func TestAReleaseTwice(t *testing.T) {
	first, _ := published(t)
	second, _ := published(t)
	checkSame(t, first, second)
}

// checkSame checks that two releases have the same files.
func checkSame(t *testing.T, first, second string) {
	t.Helper()
	if a, b := read(t, first, sumsFile), read(t, second, sumsFile); !bytes.Equal(a, b) || bytes.Count(a, []byte("\n")) != len(published010)-2 {
		t.Errorf("sums of the first:\n%s\nof the second:\n%s", a, b)
	}
}

func read(t *testing.T, elements ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// checkSums does what sha256sum --check does, and wants every file named.
func checkSums(t *testing.T, out string) {
	t.Helper()
	var named []string
	for line := range strings.Lines(string(read(t, out, sumsFile))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got := fmt.Sprintf("%x", sha256.Sum256(read(t, out, name))); got != sum {
			t.Errorf("%s has sum %s, and is %s", name, sum, got)
		}
		named = append(named, name)
	}
	want := slices.DeleteFunc(slices.Clone(published010), func(name string) bool { return name == sumsFile || name == "image" })
	if diff := cmp.Diff(want, named); diff != "" {
		t.Errorf("files with sums (-want +got):\n%s", diff)
	}
}

func untar(t *testing.T, elements ...string) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(read(t, elements...)))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		data, readErr := io.ReadAll(archive)
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		all[header.Name] = string(data)
	}
}

func unzip(t *testing.T, elements ...string) map[string]string {
	t.Helper()
	data := read(t, elements...)
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range archive.File {
		r, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[file.Name] = string(text)
	}
	return all
}
