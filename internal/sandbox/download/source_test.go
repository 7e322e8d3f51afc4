package download

import (
	"encoding/hex"
	"strings"
	"testing"
)

func TestAProgramWithoutAChecksumIsNotAFile(t *testing.T) {
	s := Official()
	for name, tt := range map[string]struct {
		version, system, arch, program string
	}{
		"of an unknown version":  {"1.37.99", "linux", "amd64", "kube-apiserver"},
		"of another system":      {"1.37.1", "darwin", "arm64", "kube-apiserver"},
		"of another name":        {"1.37.1", "linux", "amd64", "etcd"},
		"with a path of its own": {"1.37.1", "linux", "amd64", "../amd64/kube-apiserver"},
	} {
		if file, ok := s.File(tt.version, tt.system, tt.arch, tt.program); ok {
			t.Errorf("a program %s is %+v", name, file)
		}
	}
	file, ok := s.File("1.37.1", "linux", "arm64", "kube-scheduler")
	if want := "v1.37.1/bin/linux/arm64/kube-scheduler"; !ok || file.Path != want {
		t.Errorf("the scheduler for arm64 is %+v, want %s", file, want)
	}
}

func TestEveryPinnedChecksumIsASHA256(t *testing.T) {
	lines := 0
	for line := range strings.Lines(checksums) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		lines++
		hash, path, ok := strings.Cut(line, "  ")
		if bytes, err := hex.DecodeString(hash); !ok || err != nil || len(bytes) != 32 || !strings.HasPrefix(path, "v1.") {
			t.Errorf("not a hash, two spaces and a path: %q", line)
		}
	}
	sums := parse(checksums)
	if len(sums) != lines {
		t.Errorf("%d lines pin %d paths, want one each", lines, len(sums))
	}
	seen := map[string]string{}
	for path, hash := range sums {
		if other, ok := seen[hash]; ok {
			t.Errorf("%s and %s have the same checksum", path, other)
		}
		seen[hash] = path
	}
}
