// Package terminal plays the way of a person through a maintenance in a real terminal, with
// the plugin as it is built and kubectl, on the sandbox that the plugin itself starts. What
// the README shows of that is held to what was printed.
//
// It needs tmux, which is the terminal.
package terminal
