// Command helm is Helm as it is, of the version in go.mod: the stories install Ebbtide by
// the commands that people type, on machines that have no helm.
package main

import (
	"errors"
	"fmt"
	"os"

	"helm.sh/helm/v4/pkg/cmd"
)

func main() {
	root, err := cmd.NewRootCmd(os.Stdout, os.Args[1:], cmd.SetupLogging)
	if err == nil {
		err = root.Execute()
	}
	if err == nil {
		return
	}
	if failed, ok := errors.AsType[cmd.CommandError](err); ok {
		os.Exit(failed.ExitCode)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
