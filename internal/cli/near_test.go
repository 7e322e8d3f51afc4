package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNear(t *testing.T) {
	pool := []string{"node-1", "node-10", "node-11", "node-2", "node-21", "worker-eu-west-1a", "worker-eu-west-1b", "gpu"}
	for name, tt := range map[string]struct {
		written string
		want    []string
	}{
		"a character too many":      {"node--21", []string{"node-21"}},
		"two in the wrong order":    {"ndoe-21", []string{"node-21"}},
		"one that is missing":       {"worker-eu-west-1", []string{"worker-eu-west-1a", "worker-eu-west-1b"}},
		"only the nearest":          {"worker-eu-wst-1b", []string{"worker-eu-west-1b"}},
		"all that are as near":      {"node-3", []string{"node-1", "node-2"}},
		"upper case":                {"GPU", []string{"gpu"}},
		"something else":            {"database", nil},
		"a short name, not at all":  {"abc", nil},
		"nothing":                   {"", nil},
		"more than names may have":  {strings.Repeat("n", 254), nil},
		"what is there under a dot": {"node.2", []string{"node-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, near(tt.written, pool)); diff != "" {
				t.Errorf("near %q (-want +got):\n%s", tt.written, diff)
			}
		})
	}
}

// Whoever mistypes in a large cluster does not wait for it.
func TestNearAmongMany(t *testing.T) {
	names := make([]string, 5000)
	for i := range names {
		names[i] = fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i/256, i%256)
	}
	for written, want := range map[string][]string{
		"ip-10-0-7-19.eu-central-1.compute.internl":  {"ip-10-0-7-19.eu-central-1.compute.internal"},
		"ip-10-0-7-1x.eu-central-1.compute.internal": {"ip-10-0-7-1.eu-central-1.compute.internal", "ip-10-0-7-10.eu-central-1.compute.internal", "ip-10-0-7-11.eu-central-1.compute.internal"},
	} {
		if diff := cmp.Diff(want, near(written, names)); diff != "" {
			t.Errorf("near %s (-want +got):\n%s", written, diff)
		}
	}
}
