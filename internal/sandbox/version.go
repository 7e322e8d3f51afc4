package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// DefaultVersion is the Kubernetes version that the committed wrapper module
// pins.
const DefaultVersion = "1.37.1"

// versions are the Kubernetes versions that a sandbox may run: the last patch
// that is published as a Go module of each minor release we support.
var versions = []string{DefaultVersion, "1.36.4", "1.35.4", "1.34.4", "1.33.13", "1.32.13", "1.31.14"}

// Versions returns the Kubernetes versions that a sandbox may run, newest first.
func Versions() []string { return slices.Clone(versions) }

// TestedVersions returns those of them that `make test-versions` runs, newest first. The
// modules of older ones cannot be had everywhere.
func TestedVersions() []string { return slices.Clone(versions[:5]) }

// RequestedVersion returns what the environment variable K8S_VERSION asks for,
// which the Makefile sets, or DefaultVersion.
func RequestedVersion() string {
	return cmp.Or(os.Getenv("K8S_VERSION"), DefaultVersion)
}

// CheckVersion returns an error that names the choices when there is no
// sandbox of this Kubernetes version.
func CheckVersion(version string) error {
	if slices.Contains(versions, version) {
		return nil
	}
	return fmt.Errorf("there is no sandbox of Kubernetes %q; choose one of %s", version, strings.Join(versions, ", "))
}

// CheckEvictionRequests returns an error that says so when this Kubernetes version is from
// before 1.37, which was the first with EvictionRequests.
func CheckEvictionRequests(version string) error {
	if minor(version) < 37 {
		return fmt.Errorf("kubernetes %s has no EvictionRequests, which came with 1.37", version)
	}
	return nil
}

// ServesMutatingPolicies returns true if this Kubernetes version has MutatingAdmissionPolicies
// by default, as since 1.36.
func ServesMutatingPolicies(version string) bool { return minor(version) >= 36 }

// minor is 37 of 1.37.1; there are no sandboxes of other major versions. It is 0 if it cannot be
// read.
func minor(version string) int {
	n, _ := strconv.Atoi(strings.Split(version+".", ".")[1])
	return n
}

// stagingVersion is the version of the k8s.io/* modules that a Kubernetes
// version is made of: v0.37.1 for 1.37.1.
func stagingVersion(version string) string {
	return "v0" + strings.TrimPrefix(version, "1")
}
