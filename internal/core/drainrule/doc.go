// Package drainrule decides how a drain treats a pod: by its label, by the first
// MachineDrainRule that matches it, or by default (machine-drain-rules). It fails closed, pod by
// pod: where an answer depends on what could not be read, the pod gets a Cause and waits in the
// lowest order that it might have. Rules are compiled once. The order of the input makes no
// difference.
package drainrule
