// Package daemonset decides how the pods of DaemonSets leave a node under
// maintenance, what keeps them away until it is complete, and when they may come
// back (KEP-4212, "DaemonSet Controller").
//
// What has to leave is read from the node, where the maintenance has recorded it
// before: a pod whose node does not name it is left alone, whoever asks for its
// evacuation, and so is one that is to be retained. A record that cannot be read
// is never a yes.
//
// A pod that comes all the same is held back by a scheduling gate and not denied:
// it exists, so its DaemonSet controller is content and looks after other nodes.
package daemonset
