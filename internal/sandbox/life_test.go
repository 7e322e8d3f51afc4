package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProgramLeavesItsFilesInTheFolder(t *testing.T) {
	c := &Cluster{Dir: t.TempDir()}
	sloppy, err := c.startProcess(c.Dir, "sloppy", "/bin/sh", []string{"-c", "mktemp"})
	if err != nil {
		t.Fatal(err)
	}
	<-sloppy.done
	if left := sloppy.tail(1); !strings.HasPrefix(left, c.Dir) {
		t.Errorf("a program leaves %q, which is not in %s", left, c.Dir)
	}
}

func TestAComponentThatFailsIsShownWithTheEndOfItsLog(t *testing.T) {
	dir := t.TempDir()
	binaries := Binaries{Dir: dir, Version: DefaultVersion}
	script := "#!/bin/sh\necho 'there is no room'\nexit 3\n"
	if err := os.WriteFile(binaries.Path("etcd"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), binaries, Spec{Dir: filepath.Join(dir, "cluster")})
	want := fmt.Sprintf("start control plane: etcd ended (exit status 3); the end of %s:\nthere is no room",
		filepath.Join(dir, "cluster", "etcd.log"))
	if err == nil || err.Error() != want {
		t.Errorf("error is\n%v, want\n%s", err, want)
	}
}

func TestAPortThatIsTakenIsNotTheEnd(t *testing.T) {
	dir := t.TempDir()
	binaries := Binaries{Dir: dir, Version: DefaultVersion}
	script := "#!/bin/sh\necho 'listen tcp: bind: address already in use'\nexit 1\n"
	if err := os.WriteFile(binaries.Path("etcd"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), binaries, Spec{Dir: filepath.Join(dir, "cluster")})
	if err == nil || !strings.HasPrefix(err.Error(), "start control plane: etcd found its port taken five times: ") {
		t.Errorf("error is %v, want that the port was taken five times", err)
	}
}
