package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ebbtide.dev/ebbtide/test/prebuilt"
	"ebbtide.dev/ebbtide/test/tier"
)

// A release that the real go command has built has the same files as one of the tests, and its
// programs run.
func TestLongBuiltReleaseHasProgramsThatRun(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	out, _ := prebuilt.Releases(t)
	checkPublished(t, out)
	checkBill(t, out)
	saysItsVersion(t, untar(t, out, "kubectl-ebbtide_0.1.0_linux_amd64.tar.gz")[plugin])
	saysItsVersion(t, untar(t, out, "ebbtide_0.1.0_linux_amd64.tar.gz")[manager])
	if windows := unzip(t, out, "kubectl-ebbtide_0.1.0_windows_amd64.zip"); !strings.HasPrefix(windows["kubectl-ebbtide.exe"], "MZ") {
		t.Error("the program for Windows is not one of Windows")
	}
}

// The same source in another folder becomes the same release.
func TestLongBuiltReleaseIsReproducible(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	first, second := prebuilt.Releases(t)
	checkSame(t, first, second)
}

// saysItsVersion runs a program.
func saysItsVersion(t *testing.T, binary string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte(binary), 0o755); err != nil {
		t.Fatal(err)
	}
	if version, err := exec.Command(program).CombinedOutput(); string(version) != "0.1.0" || err != nil {
		t.Errorf("the program says %q (%v), want the version of the chart", version, err)
	}
}
