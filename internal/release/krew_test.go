package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/test/prebuilt"
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
func TestKrewInstallsThePlugin(t *testing.T) {
	t.Parallel()
	out, _ := published(t)
	root, manifest, archive := t.TempDir(), filepath.Join(out, "ebbtide.yaml"), filepath.Join(out, "kubectl-ebbtide_0.1.0_linux_amd64.tar.gz")

	if said, err := krew(t, root, "validate-krew-manifest", "-manifest", manifest, "-skip-install"); err != nil {
		t.Errorf("Krew takes exception to the manifest: %v\n%s", err, said)
	}
	text := string(read(t, manifest))
	for _, uri := range []string{"linux_amd64.tar.gz", "windows_amd64.zip"} {
		if want := "uri: https://github.com/ebbtide/ebbtide/releases/download/v0.1.0/kubectl-ebbtide_0.1.0_" + uri + "\n"; !strings.Contains(text, want) {
			t.Errorf("the manifest has no %s:\n%s", want, text)
		}
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
func TestKrewRefusesAnotherArchive(t *testing.T) {
	t.Parallel()
	out, _ := published(t)
	archive := filepath.Join(out, "kubectl-ebbtide_0.1.0_linux_amd64.tar.gz")
	if err := os.WriteFile(archive, append(read(t, archive), 0), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := krew(t, t.TempDir(), "krew", "install", "--manifest="+filepath.Join(out, "ebbtide.yaml"), "--archive="+archive)
	if err == nil || !strings.Contains(said, "checksum does not match") {
		t.Errorf("got %v: %s", err, said)
	}
}
