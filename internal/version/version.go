// Package version says which version of Ebbtide a binary is: that of the chart which it
// was released with, or that of the module for who has installed it with go install.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// number is set by the linker in releases.
var number string

// Number is a version without v, such as 0.1.0, or devel for what was built of a checkout.
func Number() string {
	module := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		module = info.Main.Version
	}
	return choose(number, module)
}

// choose prefers what the linker has set to what the go command has.
func choose(linked, module string) string {
	if module == "(devel)" {
		module = ""
	}
	return cmp.Or(linked, strings.TrimPrefix(module, "v"), "devel")
}

// Line returns a program's answer to --version.
func Line(program string) string {
	return fmt.Sprintf("%s %s %s/%s %s", program, Number(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}
