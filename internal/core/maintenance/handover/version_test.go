package handover

import (
	"strings"
	"testing"
)

// TestRangesOfVersions: what is in a range, of versions as kubelets report them. What is no
// version is in none.
func TestRangesOfVersions(t *testing.T) {
	t.Parallel()
	for wanted, versions := range map[string]struct{ in, out string }{
		">=1.37.0":              {"v1.37.0 v1.37.1 v1.38.0-alpha.1 v2.0.0 v1.37.0+k3s1", "v1.36.9 v1.37.0-rc.1 v1.37.0-gke.100 v1.37 latest kwok-v1 v"},
		">=1.37.0-0":            {"v1.37.0 v1.37.0-rc.1 v1.37.0-gke.100", "v1.36.9"},
		">1.37.0":               {"v1.37.1", "v1.37.0 v1.36.9"},
		"<1.37.0":               {"v1.36.9 v1.37.0-rc.1", "v1.37.0 v1.37.1"},
		"<=1.37.0":              {"v1.36.9 v1.37.0", "v1.37.1"},
		"=1.37.0":               {"v1.37.0", "v1.37.1"},
		"==1.37.0":              {"v1.37.0", "v1.36.1"},
		"!=1.37.0":              {"v1.37.1 v1.36.1", "v1.37.0"},
		"!1.37.0-x":             {"v1.37.0", "v1.37.0-x"},
		">=1.36.2 <1.38.0":      {"v1.36.2 v1.37.9", "v1.36.1 v1.38.0"},
		"<1.36.0 || >=1.37.0":   {"v1.35.9 v1.37.0", "v1.36.0 v1.36.9"},
		"<1.1.0 >1.0.0||=3.0.0": {"v1.0.1 v3.0.0", "v1.0.0 v1.1.0 v2.0.0"},
	} {
		parsed, err := parseRange(wanted)
		if err != nil || !isRange(wanted) {
			t.Errorf("%s: %v, is a range: %t", wanted, err, isRange(wanted))
		}
		assertHolds(t, parsed, wanted, versions.in, true)
		assertHolds(t, parsed, wanted, versions.out, false)
	}
}

func assertHolds(t *testing.T, parsed versionRange, wanted, versions string, want bool) {
	t.Helper()
	for version := range strings.FieldsSeq(versions) {
		if parsed.contains(version) != want {
			t.Errorf("%s is in %s: %t", version, wanted, !want)
		}
	}
}

// TestInvalidRangesAreRefused: what cannot be read is named, and a version is none.
func TestInvalidRangesAreRefused(t *testing.T) {
	t.Parallel()
	for wanted, want := range map[string]string{
		">=1.37":       "No Major.Minor.Patch elements found",
		">=v1.37.0":    "Invalid character(s) found in major number",
		">= 1.37.0":    "Version string empty",
		">=1.37.0 ||":  "an alternative says nothing",
		"":             "an alternative says nothing",
		"~1.37.0":      `"~1.37.0" has none of the operators`,
		">=1.37.0 1.0": `"1.0" has none of the operators`,
	} {
		if _, err := parseRange(wanted); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", wanted, err, want)
		}
	}
	for _, exact := range []string{"", "v1.37.1", "1.37.1", "v1.37.1-gke.100"} {
		if isRange(exact) {
			t.Errorf("%q is taken for a range", exact)
		}
	}
}
