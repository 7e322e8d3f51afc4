// Package karpenter has a story with Karpenter as it ships, with its provider of kwok nodes,
// built from its module in folder module.
package karpenter

import (
	"fmt"
	"os"
	"testing"

	"ebbtide.dev/ebbtide/test/cluster"
)

func TestMain(m *testing.M) {
	if os.Getenv("EBBTIDE_KARPENTER") != "1" {
		fmt.Println("stories with Karpenter run if EBBTIDE_KARPENTER=1")
		os.Exit(0)
	}
	os.Exit(cluster.Main(m))
}
