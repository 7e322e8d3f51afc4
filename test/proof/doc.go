// Package proof shows on a real control plane, over many random drains, what
// Ebbtide promises: that the Services of applications that surge have a ready
// endpoint at all times, and that nothing is left behind.
//
// Drains are drawn from a seed, which is printed. The same watcher is held
// against kubectl without Ebbtide, where it must find what it looks for.
package proof
