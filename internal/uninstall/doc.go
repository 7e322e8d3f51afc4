// Package uninstall removes every trace of Ebbtide, as core/trace finds them. Hook runs before
// the chart is deleted, while managers still run. Releaser removes the traces itself when they
// are gone. An object that cannot be read or written is reported and blocks no other one. The
// markers below are the rights of the hook's account, which cannot delete nodes, pods, Leases or
// Secrets.
package uninstall

// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=ebbtide.dev,resources=nodemaintenances/status,verbs=update
// +kubebuilder:rbac:groups=ebbtide.dev,resources=noderollouts;evacuations;drainrecords,verbs=get;list;watch;patch;delete
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
