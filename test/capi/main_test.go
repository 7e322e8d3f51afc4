// Package capi has the stories of the bridge to Cluster API: with its own core manager and
// its webhooks, as they ship, built from the module in folder clusterapi, and with a small
// provider to its contract whose machines are kwok nodes.
package capi

import (
	"fmt"
	"os"
	"testing"

	"ebbtide.dev/ebbtide/test/cluster"
)

func TestMain(m *testing.M) {
	if os.Getenv("EBBTIDE_CAPI") != "1" {
		fmt.Println("stories with Cluster API's manager run if EBBTIDE_CAPI=1")
		os.Exit(0)
	}
	code := cluster.Main(m)
	stopAll()
	os.Exit(code)
}
