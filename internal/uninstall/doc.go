// Package uninstall leaves nothing of Ebbtide behind, in two ways. Hook is for a chart that
// is about to be deleted while managers still run: it refuses, or has everything completed,
// waits until the managers have given it back, and removes what is left. Releaser is for
// managers that are gone: it removes every trace itself, with the rights of who calls it.
//
// Which traces there are and what is done about them is decided by core/trace; this package
// lists, in pages, and writes, so many at a time. An object that may not be read or written
// holds up no other one; it is told of, and makes the whole fail.
//
// The markers below are the rights of the account that Hook runs under. It deletes no node,
// pod, Lease or Secret: our webhooks ask for the right to delete of who ends what drains
// nodes and pods, and API servers may ask for it of who gives an object an owner.
package uninstall

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances/status,verbs=update
// +kubebuilder:rbac:groups=ebbtide.dev,resources=evacuations;drainrecords,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=ebbtide.dev,resources=machines;clusters,verbs=list
// +kubebuilder:rbac:groups=lifecycle.k8s.io,resources=evictionrequests,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodeagents,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes;pods,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes/status,verbs=patch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get,namespace=release
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=ebbtide-webhook-tls;ebbtide-webhook-certificate,verbs=get;patch;delete,namespace=release
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=create,namespace=release
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=ebbtide-uninstall,verbs=get;patch;delete,namespace=release
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=ebbtide.dev;drain-lock-mutex,verbs=get;patch;delete,namespace=release
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=ebbtide-eviction-controller,verbs=get;patch;delete,namespace=kube-system
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles,resourceNames=ebbtide-eviction-requests,verbs=get,namespace=kube-system
