package step

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/workload"
	"ebbtide.dev/ebbtide/test/heap"
	"ebbtide.dev/ebbtide/test/step/remote"
)

// mayGrow is by how many bytes the heap may grow while a cluster attacks, in a
// manager that lets it have a quarter of that.
const mayGrow = 128 << 20

// attack answers a request for pods with what is meant to hurt.
type attack func(answer http.ResponseWriter, r *http.Request)

// listsOnly refuses a read by a watch, so that it is read by pages.
func listsOnly(pages attack) attack {
	return func(answer http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			answer.Header().Set("Content-Type", "application/json")
			answer.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(answer, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"no streaming"}`)
			return
		}
		pages(answer, r)
	}
}

func protobuf(answer http.ResponseWriter) {
	answer.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
}

func endlessly(to io.Writer, what []byte) {
	for {
		if _, err := to.Write(what); err != nil {
			return
		}
		if flush, ok := to.(http.Flusher); ok {
			flush.Flush()
		}
	}
}

// threat is an attack and what is said of it.
type threat struct {
	attack attack
	want   string
}

// attacks are what a cluster may do. All begin as a cluster like any other.
var attacks = map[string]threat{
	"a bomb of gzip": {
		listsOnly(func(answer http.ResponseWriter, _ *http.Request) {
			answer.Header().Set("Content-Type", "application/json")
			answer.Header().Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(answer)
			_, _ = io.WriteString(zip, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{}`)
			_, _ = io.WriteString(zip, strings.Repeat(",{}", 600_000)+"]}")
			_ = zip.Close()
		}),
		"the cluster does not send pods in protobuf, in which they were requested",
	},
	"a response that does not end": {
		listsOnly(func(answer http.ResponseWriter, _ *http.Request) {
			protobuf(answer)
			endlessly(answer, make([]byte, 1<<20))
		}),
		"the cluster sends a response that is larger than 8 MiB",
	},
	"a list in another form": {
		listsOnly(func(answer http.ResponseWriter, _ *http.Request) {
			answer.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(answer, `{"kind":"PodList","apiVersion":"v1","items":[{}`+strings.Repeat(",{}", 600_000)+"]}")
		}),
		"the cluster does not send pods in protobuf, in which they were requested",
	},
	"two bytes for each pod": {
		listsOnly(func(answer http.ResponseWriter, _ *http.Request) {
			protobuf(answer)
			_, _ = answer.Write(remote.Encoded("PodList", []byte(strings.Repeat("\x12\x00", 600_000))))
		}),
		"the cluster sends a message of pods that would take more than 32 MiB of memory",
	},
	"two bytes for each container": {
		listsOnly(func(answer http.ResponseWriter, _ *http.Request) {
			protobuf(answer)
			spec := []byte(strings.Repeat("\x12\x00", 600_000))
			pod := append(binary.AppendUvarint([]byte("\x12"), uint64(len(spec))), spec...)
			_, _ = answer.Write(remote.Encoded("PodList", append(binary.AppendUvarint([]byte("\x12"), uint64(len(pod))), pod...)))
		}),
		"the cluster sends a message of pods that would take more than 32 MiB of memory",
	},
	// Decoders keep 32 bits of the number of a field: this one is 2, the pods of the list.
	"pods under a number that overflows": {
		listsOnly(func(answer http.ResponseWriter, _ *http.Request) {
			protobuf(answer)
			pod := append(binary.AppendUvarint(nil, (1<<32+2)<<3|2), 0)
			_, _ = answer.Write(remote.Encoded("PodList", bytes.Repeat(pod, 600_000)))
		}),
		"the cluster sends data that is not a Kubernetes object",
	},
	"pages without end": {
		listsOnly(func(answer http.ResponseWriter, r *http.Request) {
			first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
			list := corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1", Continue: strconv.Itoa(first + 5000)}}
			for n := range 5000 {
				list.Items = append(list.Items, *remote.Pod(first + n))
			}
			protobuf(answer)
			_, _ = answer.Write(remote.Encoded("PodList", remote.Marshalled(&list)))
		}),
		"the cluster has responses and lists of more than 64 MiB under way, twice the bound of one Cluster (--remote-cluster-memory)",
	},
	"empty pages without end": {
		listsOnly(func(answer http.ResponseWriter, _ *http.Request) {
			protobuf(answer)
			_, _ = answer.Write(remote.Encoded("PodList", remote.Marshalled(&corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1", Continue: "more"}})))
		}),
		"the cluster has responses and lists of more than 64 MiB under way, twice the bound of one Cluster (--remote-cluster-memory)",
	},
	"an event that does not end": {
		func(answer http.ResponseWriter, _ *http.Request) {
			protobuf(answer)
			_, _ = answer.Write([]byte{0xff, 0xff, 0xff, 0xff})
			endlessly(answer, make([]byte, 1<<20))
		},
		"the cluster sends an event of pods that is larger than 4 MiB",
	},
	"an event in another form that does not end": {
		func(answer http.ResponseWriter, _ *http.Request) {
			answer.Header().Set("Content-Type", "application/json;stream=watch")
			_, _ = io.WriteString(answer, `{"type":"ADDED","object":"`)
			endlessly(answer, []byte(strings.Repeat("x", 1<<20)))
		},
		"the cluster does not send pods in protobuf, in which they were requested",
	},
	"pods without end": {
		func(answer http.ResponseWriter, _ *http.Request) {
			protobuf(answer)
			for n := 0; ; n++ {
				if _, err := answer.Write(remote.Event("ADDED", remote.Pod(n))); err != nil {
					return
				}
			}
		},
		"the cluster has objects of more than 32 MiB, the bound of one Cluster (--remote-cluster-memory)",
	},
	"large pods without end": {
		func(answer http.ResponseWriter, _ *http.Request) {
			protobuf(answer)
			for n := 0; ; n++ {
				pod := remote.Pod(n)
				pod.Labels = map[string]string{"large": strings.Repeat("x", 1<<20)}
				if _, err := answer.Write(remote.Event("ADDED", pod)); err != nil {
					return
				}
			}
		},
		"the cluster has objects of more than 32 MiB, the bound of one Cluster (--remote-cluster-memory)",
	},
	"a number that takes minutes": {
		func(answer http.ResponseWriter, _ *http.Request) {
			protobuf(answer)
			event := remote.Event("ADDED", remote.Pod(0))
			number := []byte("1e-30000000")
			// spec.containers.resources.limits["cpu"], from the inside to the outside.
			nest := func(tag byte, data []byte) []byte {
				return append(append([]byte{tag}, binary.AppendUvarint(nil, uint64(len(data)))...), data...)
			}
			limits := append(nest(0x0a, []byte("cpu")), nest(0x12, nest(0x0a, number))...)
			pod := append(remote.Marshalled(remote.Pod(0)), nest(0x12, nest(0x12, nest(0x42, nest(0x0a, limits))))...)
			whole := remote.Marshalled(&metav1.WatchEvent{Type: "ADDED", Object: apiruntime.RawExtension{Raw: remote.Encoded("Pod", pod)}})
			event = append(event, append(binary.BigEndian.AppendUint32(nil, uint32(len(whole))), whole...)...)
			_, _ = answer.Write(event)
		},
		"the cluster sends a quantity that is out of bounds: of more than 64 characters or with an exponent of more than 2 digits",
	},
	"headers that are a little too many": {
		func(answer http.ResponseWriter, _ *http.Request) {
			protobuf(answer)
			for n := range 63 {
				answer.Header().Set("X-"+strconv.Itoa(n), strings.Repeat("x", 1<<10))
			}
		},
		"the cluster sends a response whose headers are larger than 64 KiB or none of HTTP",
	},
	"headers without end": {
		func(answer http.ResponseWriter, _ *http.Request) {
			protobuf(answer)
			for n := range 1000 {
				answer.Header().Set("X-"+strconv.Itoa(n), strings.Repeat("x", 1<<10))
			}
		},
		"the cluster sends a response whose headers are larger than 64 KiB or none of HTTP",
	},
	"a name that is none": {
		func(answer http.ResponseWriter, _ *http.Request) {
			protobuf(answer)
			pod := remote.Pod(0)
			pod.Name = "\x1b[2J\x1b[31mPWNED"
			_, _ = answer.Write(remote.Event("ADDED", pod))
		},
		"the cluster sends an object with a name that has more than 1024 bytes or control characters",
	},
	"something else": {
		func(answer http.ResponseWriter, _ *http.Request) {
			protobuf(answer)
			node := remote.Marshalled(&metav1.WatchEvent{Type: "ADDED", Object: apiruntime.RawExtension{Raw: remote.Encoded("Node", nil)}})
			_, _ = answer.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(node))), node...))
		},
		"the cluster sends something else than the requested pods",
	},
	"an event that drips": {
		func(answer http.ResponseWriter, r *http.Request) {
			protobuf(answer)
			drip(answer, r, remote.Event("ADDED", remote.Pod(0)))
		},
		"an event took longer than 3s",
	},
	"a response that drips": {
		listsOnly(func(answer http.ResponseWriter, r *http.Request) {
			protobuf(answer)
			drip(answer, r, remote.Encoded("PodList", nil))
		}),
		"a response took longer than 3s",
	},
}

func drip(answer http.ResponseWriter, r *http.Request, what []byte) {
	for i := range what {
		_, _ = answer.Write(what[i : i+1])
		answer.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// A cluster attacks whoever reads it. The manager's memory stays bounded, the Cluster
// says which bound it has exceeded, and another one in the same namespace is read.
// None of these run beside other tests, whose memory would count.
func TestAHostileCluster(t *testing.T) {
	for name, test := range attacks {
		t.Run(name, func(t *testing.T) { isAttacked(t, name, test) })
	}
}

func isAttacked(t *testing.T, name string, test threat) {
	t.Helper()
	pace := quick
	if strings.HasSuffix(name, "drips") {
		pace.Message = 3 * time.Second
	}
	w := startRemotes(t, workload.Options{Pace: &pace, RemoteMemory: 32 << 20})
	server, kubeconfig := w.front(t, func(answer http.ResponseWriter, r *http.Request) bool {
		pods := r.URL.Path == "/api/v1/pods" && r.URL.Query().Get("limit") != "1"
		if pods {
			test.attack(answer, r)
		}
		return pods
	})
	good := w.remote(t, "good", w.kubeconfig(t, same))
	w.connect(t, good)
	bad := w.remote(t, "bad", kubeconfig)

	var state workload.State
	grown := heap.Grows(t, func() {
		_, _ = w.registry.Use(bad, usingMachine)
		state = w.awaitReason(t, bad, v1alpha1.ReasonLimitExceeded)
	})

	if want := "connect to " + server.URL + ": " + test.want + ". Will connect again at "; !strings.HasPrefix(state.Message, want) {
		t.Errorf("state says %q, want %q", state.Message, want)
	}
	if grown > mayGrow {
		t.Errorf("the heap has grown by %d MiB, want at most %d MiB", grown>>20, mayGrow>>20)
	}
	if err := w.connect(t, good).Live.List(t.Context(), &corev1.NodeList{}, client.Limit(1)); err != nil {
		t.Errorf("another cluster cannot be read: %v", err)
	}
	t.Logf("the heap has grown by %d MiB", grown>>20)
}
