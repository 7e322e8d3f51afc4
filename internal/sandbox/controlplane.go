package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"ebbtide.dev/ebbtide/internal/sandbox/machine"
)

// AuditWrites is an audit policy that records all writes without content, except the states of
// budgets, which show when one has opened.
const AuditWrites = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Request
    verbs: [update]
    resources: [{group: policy, resources: [poddisruptionbudgets/status]}]
  - level: Metadata
    verbs: [create, update, patch, delete, deletecollection]
  - level: None
`

// AuditOf returns an audit policy that records every request of the manager.
func AuditOf(manager Account) string {
	return fmt.Sprintf(`apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    users: [%q]
  - level: None
`, manager.User())
}

func (c *Cluster) etcd() component {
	return component{
		name:  "etcd",
		ready: "http://127.0.0.1:%d/readyz",
		args: func(port int) []string {
			url := fmt.Sprintf("http://127.0.0.1:%d", port)
			return []string{
				"--data-dir=" + filepath.Join(c.Dir, "etcd"),
				"--listen-client-urls=" + url,
				"--advertise-client-urls=" + url,
				"--listen-peer-urls=http://127.0.0.1:0",
				"--log-level=warn",
				// What a sandbox stores need not survive a power cut.
				"--unsafe-no-fsync",
				"--quota-backend-bytes=4294967296",
			}
		},
	}
}

func (c *Cluster) apiserver(etcdPort int) component {
	return component{
		name:  "kube-apiserver",
		port:  c.apiPort,
		ready: "https://127.0.0.1:%d/readyz",
		args: func(port int) []string {
			args := []string{
				fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", etcdPort),
				fmt.Sprintf("--secure-port=%d", port),
				"--service-cluster-ip-range=" + serviceRange,
				"--authorization-mode=Node,RBAC",
				"--tls-cert-file=" + c.credentials.path("server.crt"),
				"--tls-private-key-file=" + c.credentials.path("server.key"),
				"--token-auth-file=" + c.credentials.path("tokens.csv"),
				"--admission-control-config-file=" + c.credentials.path(admissionConfiguration),
				"--service-account-issuer=https://kubernetes.default.svc",
				"--service-account-key-file=" + c.credentials.path("service-account.key"),
				"--service-account-signing-key-file=" + c.credentials.path("service-account.key"),
				"--max-requests-inflight=1600",
				"--max-mutating-requests-inflight=800",
				"--profiling=false",
			}
			args = append(args, c.reachedBy()...)
			if c.spec.OnlyAPIServer {
				// Nobody creates the service accounts that this would wait for.
				args = append(args, "--disable-admission-plugins=ServiceAccount")
			}
			if c.spec.EvictionRequests {
				args = append(args, "--feature-gates=EvictionRequestAPI=true", "--runtime-config=lifecycle.k8s.io/v1alpha1=true")
			}
			if c.AuditLog != "" {
				args = append(args, "--audit-policy-file="+c.path("audit-policy.yaml"), "--audit-log-path="+c.AuditLog)
			}
			return args
		},
	}
}

// reachedBy returns flags for the address of the API server, which only real nodes need to reach,
// and for two plugins. The first lets a namespace keep its pods on nodes of its own. The second
// requires a right to the finalizers of owners, as in OpenShift.
func (c *Cluster) reachedBy() []string {
	const plugins = "--enable-admission-plugins=PodNodeSelector,OwnerReferencesPermissionEnforcement"
	if c.rack == nil {
		return []string{
			plugins, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
			// The kubernetes Service of a cluster without pods' network leads nowhere.
			"--endpoint-reconciler-type=none",
		}
	}
	return []string{
		plugins + ",NodeRestriction", "--bind-address=0.0.0.0", "--advertise-address=" + machine.ControlAddress,
		"--kubelet-client-certificate=" + c.credentials.path(kubeletClientCert),
		"--kubelet-client-key=" + c.credentials.path(kubeletClientKey),
		"--kubelet-preferred-address-types=InternalIP",
		"--allow-privileged",
	}
}

func (c *Cluster) controllerManager() component {
	return c.kubeComponent("kube-controller-manager",
		"--use-service-account-credentials",
		"--service-account-private-key-file="+c.credentials.path("service-account.key"),
		"--root-ca-file="+c.credentials.path("server.crt"),
		// An autoscaler of a sandbox is not waited for.
		"--horizontal-pod-autoscaler-sync-period=1s",
	)
}

func (c *Cluster) scheduler() component { return c.kubeComponent("kube-scheduler") }

// kubeComponent has the arguments that controller manager and scheduler share.
func (c *Cluster) kubeComponent(name string, extra ...string) component {
	kubeconfig := c.credentials.kubeconfig(name)
	return component{
		name:  name,
		ready: "https://127.0.0.1:%d/healthz",
		args: func(port int) []string {
			return append([]string{
				"--kubeconfig=" + kubeconfig,
				"--authentication-kubeconfig=" + kubeconfig,
				"--authorization-kubeconfig=" + kubeconfig,
				"--bind-address=127.0.0.1",
				fmt.Sprintf("--secure-port=%d", port),
				"--leader-elect=false",
				"--kube-api-qps=" + strconv.Itoa(c.spec.QPS),
				"--kube-api-burst=" + strconv.Itoa(2*c.spec.QPS),
				"--profiling=false",
			}, extra...)
		},
	}
}

func (c *Cluster) kwok() (component, error) {
	config := c.path("kwok.yaml")
	if err := writeKwokConfig(c.binaries, config); err != nil {
		return component{}, fmt.Errorf("configure kwok: %w", err)
	}
	return component{
		name:  "kwok",
		ready: "http://127.0.0.1:%d/healthz",
		args: func(port int) []string {
			return []string{
				"--kubeconfig=" + c.credentials.kubeconfig("kwok"),
				"--config=" + config,
				fmt.Sprintf("--server-address=127.0.0.1:%d", port),
				"--manage-nodes-with-annotation-selector=" + NodeAnnotation + "=fake",
				"--node-lease-duration-seconds=40",
				"--cidr=10.64.0.0/10",
			}
		},
	}, nil
}

func (c *Cluster) writeAuditPolicy() error {
	if c.spec.Audit == "" {
		return nil
	}
	c.AuditLog = c.path("audit.log")
	return os.WriteFile(c.path("audit-policy.yaml"), []byte(c.spec.Audit), 0o600)
}
