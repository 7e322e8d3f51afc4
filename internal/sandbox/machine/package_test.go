package machine

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Each package that a host without programs is advised to install is in the list of packages
// that contributors install.
func TestAdvisedPackagesAreListed(t *testing.T) {
	list, err := os.ReadFile("../../../test/packages.txt")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	missing := Host{OS: "linux"}.Check()
	if missing == nil {
		t.Fatal("a host without programs can run real nodes")
	}
	advice := regexp.MustCompile(`(?m)^- (\S+): install the package (\S+)$`).FindAllStringSubmatch(missing.Error(), -1)
	if len(advice) == 0 {
		t.Fatalf("no package is advised: %v", missing)
	}
	for _, a := range advice {
		program, pkg := a[1], a[2]
		listed := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(pkg) + `\s+(\S+)`).FindSubmatch(list)
		if listed == nil || !strings.Contains(","+string(listed[1])+",", ","+program+",") {
			t.Errorf("test/packages.txt does not list package %s with program %s", pkg, program)
		}
	}
}
