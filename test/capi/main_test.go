// Package capi has the stories of the bridge to Cluster API: with its own core manager and
// its webhooks, as they ship, built from the module in folder clusterapi, and with a small
// provider to its contract whose machines are kwok nodes.
package capi

import (
	"os"
	"testing"

	"ebbtide.dev/ebbtide/test/cluster"
)

func TestMain(m *testing.M) {
	code := cluster.Main(m)
	stopAll()
	os.Exit(code)
}
