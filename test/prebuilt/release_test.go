package prebuilt

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// releaseCommand plays the command that makes releases: it fails in a module with a file "broken".
const releaseCommand = `#!/bin/sh
[ ! -e broken ] || { echo "broken is there"; exit 1; }
mkdir -p "$2" && cat go.mod >"$2/SHA256SUMS" && echo "$3 $4" >>"$2/SHA256SUMS"
`

// repository is a folder with that command and a small module, older than an hour.
func repository(t *testing.T) string {
	t.Helper()
	root, early := t.TempDir(), time.Now().Add(-time.Hour)
	write(t, filepath.Join(root, "go.mod"), early)
	for _, folder := range []string{"api", "charts", "cmd", "examples", "internal"} {
		write(t, filepath.Join(root, folder, "a.go"), early)
	}
	write(t, filepath.Join(root, releaseSource, "go.mod"), early)
	command := filepath.Join(root, ".bin", "programs", "release")
	write(t, command, early)
	if err := os.WriteFile(command, []byte(releaseCommand), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(command, 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestReleasesAreMadeOnceFromTwoFolders(t *testing.T) {
	root := repository(t)
	if err := checkReleases(root); err == nil || err.Error() != ".bin/releases/first is not made: run `make programs-all`" {
		t.Errorf("before they are made: %v", err)
	}
	var said bytes.Buffer
	if err := makeReleases(t.Context(), root, &said); err != nil || strings.Count(said.String(), "\n") != 2 {
		t.Fatalf("making releases says %q, %v", &said, err)
	}
	for _, name := range []string{"first", "second"} {
		sums, err := os.ReadFile(filepath.Join(root, releaseDir, name, "SHA256SUMS"))
		if err != nil || string(sums) != "linux/amd64 windows/amd64\n" {
			t.Errorf("the %s release is %q, %v", name, sums, err)
		}
	}
	said.Reset()
	if err := makeReleases(t.Context(), root, &said); err != nil || said.Len() > 0 {
		t.Errorf("making them again says %q, %v; want nothing", &said, err)
	}
}

func TestReleasesMustBeNewerThanTheSource(t *testing.T) {
	root := repository(t)
	write(t, filepath.Join(root, releaseDir, "first", "SHA256SUMS"), time.Now().Add(-2*time.Hour))
	err := checkReleases(root)
	if err == nil || !strings.HasPrefix(err.Error(), ".bin/releases/first is older than ") || !strings.HasSuffix(err.Error(), ": run `make programs-all`") {
		t.Errorf("an old release: %v", err)
	}
}

func TestReleaseThatFailsIsNoRelease(t *testing.T) {
	root := repository(t)
	write(t, filepath.Join(root, releaseSource, "broken"), time.Now())
	if err := makeReleases(t.Context(), root, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "broken is there") {
		t.Errorf("error is %v, want what the command says", err)
	}
	if err := checkReleases(root); err == nil {
		t.Error("there is a release")
	}
}
