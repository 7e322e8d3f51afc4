// Command kubectl-ebbtide prints its version.
package main

import (
	"github.com/go-logr/logr"

	"ebbtide.dev/ebbtide/internal/version"
)

func main() {
	logr.Discard().Info("")
	print(version.Number())
}
