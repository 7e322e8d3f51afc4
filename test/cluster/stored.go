package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rewrite changes an Eviction or a pod where the API server stores it, past everything that
// it would refuse or leave out: so a responder can have been silent for 20 minutes by a
// clock that nobody sets. Whoever watches is told, as of any other change.
func Rewrite[T client.Object](t testing.TB, c *Cluster, object T, change func(T)) {
	t.Helper()
	kinds, _, err := clientgoscheme.Scheme.ObjectKinds(object)
	if err != nil {
		t.Fatal(err)
	}
	codec := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme)
	key := fmt.Appendf(nil, "/registry/%ss/%s/%s", strings.ToLower(kinds[0].Kind), object.GetNamespace(), object.GetName())
	for range 20 {
		value, revision := c.stored(t, key)
		found, _, err := codec.Decode(value, nil, nil)
		if err != nil {
			t.Fatalf("read %s: %v", key, err)
		}
		change(found.(T))
		found.GetObjectKind().SetGroupVersionKind(kinds[0])
		var changed bytes.Buffer
		if err := codec.Encode(found, &changed); err != nil {
			t.Fatalf("write %s: %v", key, err)
		}
		if c.store(t, key, changed.Bytes(), revision) {
			return
		}
	}
	t.Fatalf("somebody else always writes %s", key)
}

func (c *Cluster) stored(t testing.TB, key []byte) (value []byte, revision string) {
	t.Helper()
	var found struct {
		Kvs []struct {
			Revision string `json:"mod_revision"`
			Value    []byte `json:"value"`
		} `json:"kvs"`
	}
	c.etcd(t, "range", map[string]any{"key": key}, &found)
	if len(found.Kvs) != 1 {
		t.Fatalf("etcd has %d objects under %s", len(found.Kvs), key)
	}
	return found.Kvs[0].Value, found.Kvs[0].Revision
}

// store reports whether nobody has written since the revision.
func (c *Cluster) store(t testing.TB, key, value []byte, revision string) bool {
	t.Helper()
	var put struct {
		Succeeded bool `json:"succeeded"`
	}
	c.etcd(t, "txn", map[string]any{
		"compare": []any{map[string]any{"target": "MOD", "key": key, "mod_revision": revision, "result": "EQUAL"}},
		"success": []any{map[string]any{"request_put": map[string]any{"key": key, "value": value}}},
	}, &put)
	return put.Succeeded
}

// etcd asks etcd by its gateway for JSON.
func (c *Cluster) etcd(t testing.TB, verb string, question, answer any) {
	t.Helper()
	body, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.EtcdURL+"/v3/kv/"+verb, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Fatal(fmt.Errorf("etcd answers %s", response.Status))
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		t.Fatal(err)
	}
}
