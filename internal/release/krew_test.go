package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/test/prebuilt"
	"ebbtide.dev/ebbtide/test/tier"
)

// krew runs a program of Krew's own, which has a folder for what it installs.
func krew(t *testing.T, root, name string, args ...string) (said string, err error) {
	t.Helper()
	run := exec.CommandContext(t.Context(), prebuilt.Path(t, name), args...)
	run.Env = append(os.Environ(), "KREW_ROOT="+root, "KREW_NO_UPGRADE_CHECK=1", "KREW_OS=linux", "KREW_ARCH=amd64")
	output, err := run.CombinedOutput()
	return string(output), err
}

// Krew reads the manifest of a release, installs the plugin by it, and the plugin runs.
func TestLongKrewInstallsThePlugin(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	out, _ := prebuilt.Releases(t)
	root, manifest, archive := t.TempDir(), filepath.Join(out, "ebbtide.yaml"), filepath.Join(out, "kubectl-ebbtide_0.1.0_linux_amd64.tar.gz")

	if said, err := krew(t, root, "validate-krew-manifest", "-manifest", manifest, "-skip-install"); err != nil {
		t.Errorf("Krew takes exception to the manifest: %v\n%s", err, said)
	}
	said, err := krew(t, root, "krew", "install", "--manifest="+manifest, "--archive="+archive)
	if err != nil {
		t.Fatalf("krew install: %v\n%s", err, said)
	}
	if version, err := exec.Command(filepath.Join(root, "bin", plugin)).CombinedOutput(); err != nil || string(version) != "0.1.0" {
		t.Errorf("the installed plugin says %q (%v), want its version", version, err)
	}
	// What it tells its user to type.
	_, link, found := strings.Cut(said, "ln -s ")
	link, _, _ = strings.Cut(link, "\n")
	typed := exec.Command("sh", "-c", "ln -s "+link)
	typed.Env = append(os.Environ(), "KREW_ROOT="+root)
	if output, err := typed.CombinedOutput(); !found || err != nil {
		t.Fatalf("Krew does not say how to complete arguments, or it fails: %v\n%s\n%s", err, output, said)
	}
	if info, err := os.Stat(filepath.Join(root, "bin", completer)); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("kubectl finds no completer: %v", err)
	}
}

// An archive that is not the one that was published is not installed.
func TestLongKrewRefusesAnotherArchive(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	out, _ := prebuilt.Releases(t)
	const name = "kubectl-ebbtide_0.1.0_linux_amd64.tar.gz"
	archive := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(archive, append(read(t, out, name), 0), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := krew(t, t.TempDir(), "krew", "install", "--manifest="+filepath.Join(out, "ebbtide.yaml"), "--archive="+archive)
	if err == nil || !strings.Contains(said, "checksum does not match") {
		t.Errorf("got %v: %s", err, said)
	}
}

// The manifest names each archive by its address and checksum, and the files that are in it.
func TestKrewManifestDescribesTheArchives(t *testing.T) {
	out, _ := published(t)
	var manifest krewPlugin
	if err := yaml.UnmarshalStrict(read(t, out, "ebbtide.yaml"), &manifest); err != nil {
		t.Fatal(err)
	}
	const address = "https://github.com/ebbtide/ebbtide/releases/download/v0.1.0/"
	archives := map[string]map[string]string{
		"kubectl-ebbtide_0.1.0_linux_amd64.tar.gz": untar(t, out, "kubectl-ebbtide_0.1.0_linux_amd64.tar.gz"),
		"kubectl-ebbtide_0.1.0_windows_amd64.zip":  unzip(t, out, "kubectl-ebbtide_0.1.0_windows_amd64.zip"),
	}
	if manifest.Metadata["name"] != "ebbtide" || manifest.Spec.Version != "v0.1.0" || len(manifest.Spec.Platforms) != len(archives) {
		t.Errorf("the manifest is %+v, want two platforms of version v0.1.0", manifest)
	}
	for _, p := range manifest.Spec.Platforms {
		name := strings.TrimPrefix(p.URI, address)
		if archives[name] == nil {
			t.Errorf("%s is not published", p.URI)
			continue
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(read(t, out, name))); p.SHA256 != sum {
			t.Errorf("%s has SHA-256 %s, the manifest says %s", name, sum, p.SHA256)
		}
		if want := "_" + p.Selector.MatchLabels["os"] + "_" + p.Selector.MatchLabels["arch"] + "."; !strings.Contains(name, want) {
			t.Errorf("%s is selected by %v", name, p.Selector.MatchLabels)
		}
		checkFiles(t, p, archives[name])
	}
}

// checkFiles checks that the manifest takes all files of an archive and runs one of them.
func checkFiles(t *testing.T, p krewPlatform, files map[string]string) {
	t.Helper()
	if _, there := files[p.Bin]; !there || len(p.Files) != len(files) {
		t.Errorf("the manifest takes %v of %s and runs %s; the archive has %d files", p.Files, p.URI, p.Bin, len(files))
	}
	for _, file := range p.Files {
		if _, there := files[file.From]; !there {
			t.Errorf("%s has no %s", p.URI, file.From)
		}
	}
}
