// Package terminal plays the way of a person through a maintenance in a real terminal, with
// the plugin as it is built and kubectl, in a sandbox. The session in docs/guide.md is compared
// with what is printed.
//
// It needs tmux, which is the terminal: test/packages.txt.
package terminal
