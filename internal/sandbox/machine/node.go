package machine

import (
	"fmt"
	"strings"
)

// Credentials identify a node and the authorities that it trusts.
type Credentials struct {
	// Kubelet and Proxy are kubeconfigs with credentials in them.
	Kubelet, Proxy string
	// ClientCA is a PEM file: the authority of the API server's certificate for kubelets.
	ClientCA string
}

// ControlAddress belongs to the control machine. Only machines reach it, as all addresses.
const (
	ControlAddress = "10.89.0.1"
	podRange       = "10.244.0.0/16"
)

// nodeAddress and podSubnet return the addresses of the node with a number, from 1.
func nodeAddress(number int) string { return fmt.Sprintf("10.89.0.%d", 10+number) }
func podSubnet(number int) string   { return fmt.Sprintf("10.244.%d.0/24", number) }

// PauseImage is the image of the first container of each pod.
const PauseImage = "sandbox.ebbtide.dev/pause:1"

// Files of a node.
const (
	containerdConfig  = "/etc/containerd/config.toml"
	containerSpec     = "/etc/containerd/container.json"
	containerdSocket  = "/run/containerd/containerd.sock"
	cniConfig         = "/etc/cni/net.d/10-ebbtide.conflist"
	kubernetesDir     = "/etc/kubernetes"
	kubeletConfig     = kubernetesDir + "/kubelet.yaml"
	kubeletKubeconfig = kubernetesDir + "/kubelet.kubeconfig"
	proxyConfig       = kubernetesDir + "/kube-proxy.yaml"
	proxyKubeconfig   = kubernetesDir + "/kube-proxy.kubeconfig"
	clientCA          = kubernetesDir + "/client-ca.crt"
	manifestDir       = kubernetesDir + "/manifests"
)

// disk are the folders of a node that survive a power cut, by their place. The overlay of
// containerd's snapshots cannot lie on another one, as the root is.
var disk = map[string]string{
	kubernetesDir:         "kubernetes",
	"/var/lib/containerd": "containerd",
	"/var/lib/ebbtide":    "ebbtide", // what an agent of ours writes down
	"/var/lib/kubelet":    "kubelet",
	logDir:                "log",
}

func nodeFiles(name string, number int, c Credentials) map[string]string {
	return map[string]string{
		containerdConfig:  containerdText,
		cniConfig:         fmt.Sprintf(cniText, podSubnet(number)),
		kubeletConfig:     kubeletText,
		kubeletKubeconfig: c.Kubelet,
		proxyConfig:       ProxyConfig(name, proxyKubeconfig),
		proxyKubeconfig:   c.Proxy,
		clientCA:          c.ClientCA,
	}
}

// nodePrograms begin in this order. The kubelet gives up where no runtime answers.
func nodePrograms(name string, number int) []program {
	return []program{
		{Name: "containerd", Args: []string{"/bin/sh", "-ec", containerdStart}},
		{Name: "kubelet", After: containerdSocket, Args: []string{
			programDir + "/kubelet", "--config=" + kubeletConfig, "--kubeconfig=" + kubeletKubeconfig,
			"--hostname-override=" + name, "--node-ip=" + nodeAddress(number),
		}},
		{Name: "kube-proxy", Args: []string{programDir + "/kube-proxy", "--config=" + proxyConfig}},
	}
}

// ProxyConfig is the configuration of a kube-proxy for the node of a name. What it would
// change of the host's kernel is left as it is.
func ProxyConfig(node, kubeconfig string) string {
	return fmt.Sprintf(proxyText, kubeconfig, podRange, node)
}

// containerdStart has containers see the boot of their node, which only covers that of the host:
// each has a /proc of its own. The hook runs in the folder of the root of a container.
const containerdStart = programDir + `/ctr oci spec | sed '1a "hooks": {"createContainer": [{"path": "/bin/mount", ` +
	`"args": ["mount", "-o", "bind", "/proc/sys/kernel/random/boot_id", "proc/sys/kernel/random/boot_id"]}]},' >` + containerSpec + `
exec ` + programDir + `/containerd --config=` + containerdConfig

const containerdText = `version = 3

[plugins.'io.containerd.cri.v1.runtime']
  # Less than our own is refused to who is no root of the host.
  restrict_oom_score_adj = true

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
  base_runtime_spec = '` + containerSpec + `'

[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['` + programDir + `']

[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '` + PauseImage + `'
`

const cniText = `{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "cni0",
      "isGateway": true,
      "hairpinMode": true,
      "ipam": {
        "type": "host-local",
        "dataDir": "/run/cni",
        "ranges": [[{"subnet": %q}]],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

var kubeletText = strings.TrimLeft(`
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: `+clientCA+`}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix://`+containerdSocket+`
enforceNodeAllocatable: []
# The nodes share one disk and one memory, which the host looks after. A percentage of a large disk is
# much, and a node whose disk is full takes no pods.
evictionHard: {memory.available: 50Mi, nodefs.available: 200Mi, nodefs.inodesFree: 1%, imagefs.available: 200Mi}
imageGCHighThresholdPercent: 100
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
staticPodPath: `+manifestDir+`
`, "\n")

const proxyText = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: %q}
clusterCIDR: %s
hostnameOverride: %s
oomScoreAdj: 0
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`
