package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const upstreamKubernetes = `// A comment for people who work on Kubernetes.

module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require (
	github.com/other/library v1.2.3
	k8s.io/api v0.0.0
	k8s.io/klog/v2 v2.140.0
)

replace (
	github.com/other/library => github.com/fork/library v1.2.4
	k8s.io/api => ./staging/src/k8s.io/api
)
`

const wantKubernetes = wrapperHeader + `module ebbtide.dev/ebbtide/controlplane/kubernetes

go 1.26.0

godebug default=go1.26

require (
	github.com/other/library v1.2.3
	k8s.io/api v0.0.0
	k8s.io/klog/v2 v2.140.0
	k8s.io/kubernetes v1.34.4
)

replace (
	github.com/other/library => github.com/fork/library v1.2.4
	k8s.io/api => k8s.io/api v0.34.4
)
`

const upstreamEtcd = `module go.etcd.io/etcd/server/v3

go 1.26.0

toolchain go1.26.10

require (
	github.com/other/library v1.2.3
	go.etcd.io/etcd/api/v3 v3.6.16
)

replace (
	go.etcd.io/etcd/api/v3 => ../api
	go.etcd.io/etcd => ./FORBIDDEN_DEPENDENCY
)
`

const wantEtcd = wrapperHeader + `module ebbtide.dev/ebbtide/controlplane/etcd

go 1.26.0

require (
	github.com/other/library v1.2.3
	go.etcd.io/etcd/api/v3 v3.6.16
	go.etcd.io/etcd/server/v3 v3.6.16
)
`

func TestAWrapperTakesSiblingsFromTheirPublishedModules(t *testing.T) {
	for name, tt := range map[string]struct {
		wrapper        string
		upstream, want string
	}{
		"Kubernetes in the version of its staging modules": {"kubernetes", upstreamKubernetes, wantKubernetes},
		"etcd in the version that it requires":             {"etcd", upstreamEtcd, wantEtcd},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := wrapperNamed(t, "1.34.4", tt.wrapper).wrap([]byte(tt.upstream))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("go.mod (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyTheDefaultVersionOfKubernetesIsPinnedInTheRepository(t *testing.T) {
	for _, version := range Versions() {
		if got, want := wrapperNamed(t, version, "kubernetes").pinned(), version == DefaultVersion; got != want {
			t.Errorf("Kubernetes %s: pinned is %v, want %v", version, got, want)
		}
		if !wrapperNamed(t, version, "etcd").pinned() {
			t.Errorf("etcd for Kubernetes %s is not pinned", version)
		}
	}
}

func wrapperNamed(t *testing.T, version, name string) wrapper {
	t.Helper()
	for _, w := range wrappers(version) {
		if w.name == name {
			return w
		}
	}
	t.Fatalf("there is no wrapper named %s", name)
	return wrapper{}
}
