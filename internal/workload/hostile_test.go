package workload

import (
	"encoding/binary"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// encoded is an object as clusters send it.
func encoded(kind string, raw []byte) []byte {
	unknown := apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}
	data, err := unknown.Marshal()
	if err != nil {
		panic(err)
	}
	return append([]byte("k8s\x00"), data...)
}

func marshalled(object interface{ Marshal() ([]byte, error) }) []byte {
	raw, err := object.Marshal()
	if err != nil {
		panic(err)
	}
	return raw
}

// bare is a pod as small as it can be.
func bare(number int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p" + strconv.Itoa(number), UID: "u", ResourceVersion: "1"}}
}

// frame is an event of a watch.
func frame(kind string, pod *corev1.Pod) []byte {
	event := marshalled(&metav1.WatchEvent{Type: kind, Object: apiruntime.RawExtension{Raw: encoded("Pod", marshalled(pod))}})
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
}
