// Package remote has what remote clusters send, and kubeconfigs that lead to them, for tests
// with and without an API server.
package remote

import (
	"encoding/binary"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Token is in every kubeconfig of these tests and must be in no message.
const Token = "very-secret-token"

// Kubeconfig returns a kubeconfig with the token, changed.
func Kubeconfig(t *testing.T, change func(*clientcmdapi.Config)) []byte {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["east"] = &clientcmdapi.Cluster{Server: "https://east.example:6443"}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: Token}
	config.Contexts["admin@east"] = &clientcmdapi.Context{Cluster: "east", AuthInfo: "admin"}
	config.CurrentContext = "admin@east"
	change(config)
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Encoded returns an object as clusters send it.
func Encoded(kind string, raw []byte) []byte {
	unknown := apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}
	data, err := unknown.Marshal()
	if err != nil {
		panic(err)
	}
	return append([]byte("k8s\x00"), data...)
}

// Marshalled returns the protobuf of an object.
func Marshalled(object interface{ Marshal() ([]byte, error) }) []byte {
	raw, err := object.Marshal()
	if err != nil {
		panic(err)
	}
	return raw
}

// Pod returns a pod that is as small as possible.
func Pod(number int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p" + strconv.Itoa(number), UID: "u", ResourceVersion: "1"}}
}

// Event returns an event of a watch.
func Event(kind string, pod *corev1.Pod) []byte {
	event := Marshalled(&metav1.WatchEvent{Type: kind, Object: apiruntime.RawExtension{Raw: Encoded("Pod", Marshalled(pod))}})
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
}
