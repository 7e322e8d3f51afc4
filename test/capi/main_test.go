// Package capi has the stories of the bridge to Cluster API: with its own core manager and
// its webhooks, as they ship, built from the module in folder clusterapi, and with a small
// provider to its contract whose machines are kwok nodes.
//
// One of them is told with all tests of Ebbtide, the others if EBBTIDE_CAPI=1.
package capi

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"ebbtide.dev/ebbtide/test/cluster"
)

// always is the story that is told with all tests.
const always = "TestAMachineIsDrainedByEbbtide"

func TestMain(m *testing.M) {
	flag.Parse()
	if run := flag.Lookup("test.run"); os.Getenv("EBBTIDE_CAPI") != "1" && run.Value.String() == "" {
		fmt.Println("only " + always + " is told; the other stories with Cluster API's manager are if EBBTIDE_CAPI=1")
		if err := run.Value.Set("^" + always + "$"); err != nil {
			panic(err)
		}
	}
	code := cluster.Main(m)
	stopAll()
	os.Exit(code)
}
