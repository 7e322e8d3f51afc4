// Package proof checks two promises over many random drains on a real control plane: Services of
// applications that surge always have a ready endpoint, and nothing is left behind. The seed is
// printed. The same watcher also observes kubectl without Ebbtide, where it must find an outage.
package proof
