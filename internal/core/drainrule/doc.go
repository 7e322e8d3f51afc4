// Package drainrule decides how a drain treats a pod: by its label, by the first
// MachineDrainRule that is meant for it, or as any other (machine-drain-rules).
//
// It fails closed, pod by pod. Where the answer depends on what could not be
// read or understood, the pod gets a Cause and waits, in the lowest order that it
// might have; all other pods get their treatment. Only what may make a difference
// counts: a rule that cannot be understood holds up no pod that its other parts
// exclude, that an earlier rule decides about, or that has a label.
//
// Rules are compiled once; what they say of a pod costs no memory. The order of
// what is given makes no difference, and nothing that is given is changed.
package drainrule
