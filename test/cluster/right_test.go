package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestRightsAreComparedWithTheReviews(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "audit.log")
	lines := []string{
		`{"verb":"watch","objectRef":{"resource":"nodes"}}`,
		`{"verb":"create","objectRef":{"resource":"pods","subresource":"eviction","namespace":"shop","name":"web"}}`,
		`{"verb":"update","objectRef":{"resource":"leases","apiGroup":"coordination.k8s.io","namespace":"other","name":"a"}}`,
		`{"verb":"delete","objectRef":{"resource":"secrets","namespace":"shop","name":"key"},"annotations":{"authorization.k8s.io/decision":"forbid"}}`,
		`{"verb":"delete","objectRef":{"resource":"secrets","namespace":"shop","name":"another"},"annotations":{"authorization.k8s.io/decision":"forbid"}}`,
		`{"verb":"patch","objectRef":{"resource":"nodes","subresource":"status","name":"one"},"annotations":{"authorization.k8s.io/decision":"forbid"}}`,
	}
	if err := os.WriteFile(log, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	rights := append(
		ofRule("", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes", "pods/eviction"}, Verbs: []string{"list", "watch", "create"}}),
		ofRule("ebbtide-system", rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"update"}})...)
	var forbidden, unused []string
	left, err := compare(log, rights, func(text string) { forbidden = append(forbidden, text) })
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range left {
		unused = append(unused, one.String())
	}
	if diff := cmp.Diff([]string{
		`delete secrets., such as key in namespace "shop"`, `patch nodes./status, such as one in namespace ""`,
	}, forbidden); diff != "" {
		t.Errorf("forbidden (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"create nodes", "list pods/eviction", "watch pods/eviction", "update leases.coordination.k8s.io in namespace ebbtide-system",
	}, unused); diff != "" {
		t.Errorf("unused (-want +got):\n%s", diff)
	}
	if left, err := compare(filepath.Join(t.TempDir(), "none"), rights, nil); err != nil || len(left) != len(rights) {
		t.Errorf("without a log %d rights are unused, error %v; want all %d", len(left), err, len(rights))
	}
}

// A right that one tier of tests uses is used, and only what neither needs is left.
func TestTiersAreComparedTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, manager := filepath.Join(dir, "unused.json"), filepath.Join(dir, "ebbtide")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(manager, "")
	second := leftover{Unused: []string{"get nodes", "list pods"}, Needless: []string{"get secrets."}}
	if complete, err := second.without(file, manager); complete || err != nil {
		t.Errorf("without a first tier: %t, %v", complete, err)
	}
	write(file, `{"Unused":["list pods","watch jobs"],"Needless":[]}`)
	if complete, err := second.without(file, manager); !complete || err != nil {
		t.Errorf("after a first tier: %t, %v", complete, err)
	}
	if diff := cmp.Diff(leftover{Unused: []string{"list pods"}, Needless: []string{}}, second); diff != "" {
		t.Errorf("left of both tiers (-want +got):\n%s", diff)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(manager, later, later); err != nil {
		t.Fatal(err)
	}
	if complete, err := second.without(file, manager); complete || err != nil {
		t.Errorf("after the first tier of another manager: %t, %v", complete, err)
	}
}
