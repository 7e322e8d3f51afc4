// Package version says which version a program is.
package version

var number string

// Number returns what the linker has set.
func Number() string { return number }
