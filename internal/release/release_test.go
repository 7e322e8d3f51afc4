package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
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

	"ebbtide.dev/ebbtide/internal/image"
)

var prove = flag.Bool("prove", false, "build the manager itself twice, the second time without the build cache")

// tiny is a module with the programs of a release that do nothing, and one dependency.
func tiny(t *testing.T) string {
	t.Helper()
	sums, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	program := "package main\n\nimport (\n\t\"github.com/go-logr/logr\"\n\n\t\"ebbtide.dev/ebbtide/internal/version\"\n)\n\n" +
		"func main() {\n\tlogr.Discard().Info(\"\")\n\tprint(version.Number())\n}\n"
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                      "module ebbtide.dev/ebbtide\n\ngo 1.26.0\n\nrequire github.com/go-logr/logr v1.4.4\n",
		"go.sum":                      string(sums),
		"LICENSE":                     "Apache License\n",
		"internal/version/version.go": "package version\n\nvar number string\n\nfunc Number() string { return number }\n",
		"cmd/ebbtide/main.go":         program,
		"cmd/kubectl-ebbtide/main.go": program,
		"cmd/kubectl-ebbtide/kubectl_complete-ebbtide": "#!/bin/sh\n",
		"cmd/ebbtide-agent/main.go":                    program,
	} {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// published makes a release of the tiny module into a folder.
func published(t *testing.T) (out, said string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "out")
	var progress bytes.Buffer
	r, err := newRelease(out, &progress)
	if err != nil {
		t.Fatal(err)
	}
	windows := image.Platform{OS: "windows", Architecture: "amd64"}
	r.root = tiny(t)
	r.programs = map[string][]image.Platform{manager: {image.AMD64}, plugin: {image.AMD64, windows}}
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
	t.Parallel()
	out, said := published(t)
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
	if digest := strings.TrimSpace(string(read(t, out, "image.digest"))); !strings.Contains(said, "ghcr.io/ebbtide/ebbtide:0.1.0@"+digest) || len(digest) != 71 {
		t.Errorf("the image is %q, and it was said: %s", digest, said)
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
	if len(unix) != 4 || len(windows) != 3 || unix[completer] != "#!/bin/sh\n" || !strings.HasPrefix(windows["kubectl-ebbtide.exe"], "MZ") {
		t.Errorf("%d and %d files, want the program and two texts, and what completes where there is a shell", len(unix), len(windows))
	}
	saysItsVersion(t, unix[plugin])
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

// saysItsVersion runs a program.
func saysItsVersion(t *testing.T, binary string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), plugin)
	if err := os.WriteFile(program, []byte(binary), 0o755); err != nil {
		t.Fatal(err)
	}
	if version, err := exec.Command(program).CombinedOutput(); string(version) != "0.1.0" || err != nil {
		t.Errorf("the program says %q (%v), want the version of the chart", version, err)
	}
}

// What a bill says is what scanners look for: each module by its package URL, and what it
// is licensed under.
func TestTheBillOfMaterials(t *testing.T) {
	t.Parallel()
	out, _ := published(t)
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
	t.Parallel()
	first, _ := published(t)
	second, _ := published(t)
	if a, b := read(t, first, sumsFile), read(t, second, sumsFile); !bytes.Equal(a, b) || bytes.Count(a, []byte("\n")) != len(published010)-2 {
		t.Errorf("sums of the first:\n%s\nof the second:\n%s", a, b)
	}
}

// Where there are no signals there is no sandbox: what it is made of would not compile.
func TestThePluginForWindowsHasNoSandbox(t *testing.T) {
	for system, want := range map[string]bool{"windows": false, "darwin": true, "linux": true} {
		t.Setenv("GOOS", system)
		r := &release{root: "../.."}
		packages, err := r.goTool(t.Context(), "list", "-deps", "./cmd/"+plugin)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(packages, "ebbtide.dev/ebbtide/internal/sandbox\n"); got != want {
			t.Errorf("the plugin for %s has the sandbox: %t, want %t", system, got, want)
		}
	}
}

// The second one is built in another folder, and with -prove without anything that was
// compiled before.
func TestTheManagerTwice(t *testing.T) {
	source := tiny(t)
	if *prove {
		source = "../.."
	}
	elsewhere := t.TempDir()
	copySource(t, source, elsewhere)
	var sums []string
	for n, dir := range []string{source, elsewhere} {
		if n == 1 && *prove {
			t.Setenv("GOCACHE", t.TempDir())
		}
		file := filepath.Join(t.TempDir(), manager)
		program := image.Program{Dir: dir, Package: "./cmd/" + manager, Set: map[string]string{versionVariable: "0.1.0"}}
		if err := program.Build(t.Context(), image.AMD64, file); err != nil {
			t.Fatal(err)
		}
		sums = append(sums, fmt.Sprintf("%x", sha256.Sum256(read(t, file))))
	}
	if sums[0] != sums[1] {
		t.Errorf("the manager became %s, and then %s", sums[0], sums[1])
	}
}

// copySource copies what the programs are built from, and not what lies beside it.
func copySource(t *testing.T, from, to string) {
	t.Helper()
	for _, folder := range []string{"api", "charts", "cmd", "internal"} {
		if err := os.CopyFS(filepath.Join(to, folder), os.DirFS(filepath.Join(from, folder))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		if err := os.WriteFile(filepath.Join(to, file), read(t, from, file), 0o600); err != nil {
			t.Fatal(err)
		}
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
