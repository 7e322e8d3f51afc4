package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ebbtide.dev/ebbtide/internal/sandbox/download"
)

// The official programs of the default version.
var officialPrograms = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}

// A mirror is a server on loopback that has official programs, each a text.
type mirror struct {
	source download.Source

	mu       sync.Mutex
	tampered string // the program that has another text
	broken   bool   // no program arrives
	served   []string
}

func newMirror(t *testing.T) *mirror {
	t.Helper()
	m := &mirror{source: download.Official()}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	m.source.Base, m.source.Client = server.URL+"/", server.Client()
	m.source.Sums = map[string]string{}
	for _, program := range officialPrograms {
		hash := sha256.Sum256([]byte("official " + program))
		m.source.Sums[officialPath(program)] = hex.EncodeToString(hash[:])
	}
	return m
}

func officialPath(program string) string {
	return "v" + DefaultVersion + "/bin/" + runtime.GOOS + "/" + runtime.GOARCH + "/" + program
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	program := filepath.Base(r.URL.Path)
	if m.broken {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte("offi"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	m.served = append(m.served, program)
	text := "official " + program
	if program == m.tampered {
		text = "tampered " + program
	}
	_, _ = w.Write([]byte(text))
}

func (m *mirror) change(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// takeServed returns which programs were downloaded since it was last called.
func (m *mirror) takeServed() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	served := m.served
	m.served = nil
	return served
}

// wantPrograms compares what the binaries of the control plane are.
func wantPrograms(t *testing.T, b Binaries, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for name := range want {
		data, err := os.ReadFile(b.Path(name))
		if err != nil {
			t.Error(err)
		}
		got[name] = string(data)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}
}

func official() map[string]string {
	return map[string]string{
		"etcd":                    "binary of go.etcd.io/etcd/server/v3\n",
		"kwok":                    "binary of sigs.k8s.io/kwok/cmd/kwok\n",
		"kube-apiserver":          "official kube-apiserver",
		"kube-controller-manager": "official kube-controller-manager",
		"kube-scheduler":          "official kube-scheduler",
	}
}

func fromSource() map[string]string {
	programs := official()
	for _, name := range officialPrograms[:3] {
		programs[name] = "binary of k8s.io/kubernetes/cmd/" + name + "\n"
	}
	return programs
}

func mustBuild(t *testing.T, spec BuildSpec) (Binaries, string) {
	t.Helper()
	var progress bytes.Buffer
	binaries, err := Build(t.Context(), spec, &progress)
	if err != nil {
		t.Fatal(err)
	}
	return binaries, progress.String()
}

func TestAReleaseIsDownloadedOnceAndTheRestIsBuilt(t *testing.T) {
	builtNow := useFakeGo(t)
	m := newMirror(t)
	spec := BuildSpec{Version: DefaultVersion, Dir: t.TempDir(), Origin: FromRelease, source: &m.source}
	binaries, progress := mustBuild(t, spec)
	wantPrograms(t, binaries, official())
	if diff := cmp.Diff([]string{allPackages[0], allPackages[4]}, builtNow()); diff != "" {
		t.Errorf("built (-want +got):\n%s", diff)
	}
	want := `1/3 kube-apiserver: downloading the official program of Kubernetes 1.37.1
2/3 kube-controller-manager: downloading the official program of Kubernetes 1.37.1
3/3 kube-scheduler: downloading the official program of Kubernetes 1.37.1
building etcd and kwok from source; about `
	if !strings.HasPrefix(progress, want) {
		t.Errorf("progress is\n%swant first\n%s", progress, want)
	}
	m.takeServed()

	if _, progress := mustBuild(t, spec); progress != "" || len(m.takeServed()) > 0 {
		t.Errorf("a second build reports %q, want that it does nothing", progress)
	}
	spec.Kubectl = true
	mustBuild(t, spec)
	if diff := cmp.Diff([]string{"kubectl"}, m.takeServed()); diff != "" {
		t.Errorf("downloaded when kubectl is wanted, too (-want +got):\n%s", diff)
	}
}

func TestSwitchingBetweenReleaseAndSourceReplacesThePrograms(t *testing.T) {
	builtNow := useFakeGo(t)
	m := newMirror(t)
	spec := BuildSpec{Version: DefaultVersion, Dir: t.TempDir(), source: &m.source}
	for _, step := range []struct {
		origin   Origin
		want     map[string]string
		packages []string
		served   []string
	}{
		{FromSource, fromSource(), allPackages, nil},
		{FromRelease, official(), nil, officialPrograms[:3]},
		{FromSource, fromSource(), allPackages[1:4], nil},
	} {
		spec.Origin = step.origin
		binaries, _ := mustBuild(t, spec)
		wantPrograms(t, binaries, step.want)
		if diff := cmp.Diff(step.packages, builtNow()); diff != "" {
			t.Errorf("built from %s (-want +got):\n%s", step.origin, diff)
		}
		if diff := cmp.Diff(step.served, m.takeServed()); diff != "" {
			t.Errorf("downloaded for %s (-want +got):\n%s", step.origin, diff)
		}
	}
}

func TestATamperedProgramStopsTheBuildAndIsNotKept(t *testing.T) {
	builtNow := useFakeGo(t)
	m := newMirror(t)
	m.tampered = "kube-scheduler"
	spec := BuildSpec{Version: DefaultVersion, Dir: t.TempDir(), Origin: FromRelease, source: &m.source}
	_, err := Build(t.Context(), spec, &bytes.Buffer{})
	hash := sha256.Sum256([]byte("tampered kube-scheduler"))
	for _, want := range []string{
		officialPath("kube-scheduler"), "has SHA-256 " + hex.EncodeToString(hash[:]),
		"expected " + m.source.Sums[officialPath("kube-scheduler")],
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want in it %q", err, want)
		}
	}
	entries, err := os.ReadDir(filepath.Join(spec.Dir, DefaultVersion))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != ".lock" {
			t.Errorf("%s is left", entry.Name())
		}
	}
	if packages := builtNow(); len(packages) > 0 {
		t.Errorf("built %s, want nothing: a tampered program is no reason to go on", packages)
	}

	m.change(func() { m.tampered = "" })
	binaries, _ := mustBuild(t, spec)
	wantPrograms(t, binaries, official())
}

func TestAReleaseThatDoesNotArriveIsBuiltFromSource(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*mirror)
		says   string
	}{
		"the connection breaks": {
			func(m *mirror) { m.broken = true },
			"/" + officialPath("kube-apiserver") + ": unexpected EOF; building it from source\n",
		},
		"there is no network": {
			func(m *mirror) {
				closed := httptest.NewServer(http.NotFoundHandler())
				m.source.Base = closed.URL + "/"
				closed.Close()
			},
			"connect: connection refused; building it from source\n",
		},
		"no checksum is pinned": {
			func(m *mirror) { m.source.Sums = nil },
			"no checksum is pinned for Kubernetes 1.37.1 on " + runtime.GOOS + "/" + runtime.GOARCH + "; building it from source\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			builtNow := useFakeGo(t)
			m := newMirror(t)
			tt.change(m)
			spec := BuildSpec{Version: DefaultVersion, Dir: t.TempDir(), Origin: FromRelease, source: &m.source}
			binaries, progress := mustBuild(t, spec)
			wantPrograms(t, binaries, fromSource())
			if strings.Count(progress, tt.says) != 1 {
				t.Errorf("progress is\n%swant once\n%s", progress, tt.says)
			}
			builtNow()
			mustBuild(t, spec)
			if packages := builtNow(); len(packages) > 0 {
				t.Errorf("built again: %s", packages)
			}
		})
	}
}

func TestOfficialProgramsStayWhenAnotherOneDoesNotArrive(t *testing.T) {
	builtNow := useFakeGo(t)
	m := newMirror(t)
	spec := BuildSpec{Version: DefaultVersion, Dir: t.TempDir(), Origin: FromRelease, source: &m.source}
	mustBuild(t, spec)
	builtNow()
	m.change(func() { m.broken = true })
	spec.Kubectl = true
	binaries, _ := mustBuild(t, spec)
	wantPrograms(t, binaries, official())
	if diff := cmp.Diff([]string{"k8s.io/kubernetes/cmd/kubectl"}, builtNow()); diff != "" {
		t.Errorf("built (-want +got):\n%s", diff)
	}
}

func TestTheEnvironmentChoosesTheOrigin(t *testing.T) {
	for value, want := range map[string]Origin{"": FromSource, "source": FromSource, "release": FromRelease} {
		t.Setenv(originVariable, value)
		if got, err := RequestedOrigin(); err != nil || got != want {
			t.Errorf("KUBERNETES=%s is %q, %v, want %q", value, got, err, want)
		}
	}
	t.Setenv(originVariable, "Release")
	_, err := Build(t.Context(), BuildSpec{Version: DefaultVersion, Dir: t.TempDir()}, &bytes.Buffer{})
	if want := `KUBERNETES is "Release"; set it to source or release`; err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}

func TestReleasesOfTestedVersionsArePinned(t *testing.T) {
	source := download.Official()
	for _, version := range TestedVersions() {
		for _, arch := range []string{"amd64", "arm64"} {
			for _, program := range officialPrograms {
				if _, ok := source.File(version, "linux", arch, program); !ok {
					t.Errorf("%s %s for linux/%s has no checksum", program, version, arch)
				}
			}
		}
	}
}
