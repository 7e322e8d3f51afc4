// Package daemonset decides how DaemonSet pods leave a node under maintenance, what keeps them
// away, and when they return (KEP-4212, "DaemonSet Controller"). The Node lists which pods have
// to leave; no other pod is touched, and a list that cannot be read is never a yes. A new pod
// gets a scheduling gate instead of a denial, so that its controller continues on other nodes.
package daemonset
