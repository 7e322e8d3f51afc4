// Package karpenter has a story with Karpenter as it ships, with its provider of kwok nodes,
// built from its module in folder module.
package karpenter

import (
	"os"
	"testing"

	"ebbtide.dev/ebbtide/test/cluster"
)

func TestMain(m *testing.M) {
	os.Exit(cluster.Main(m))
}
