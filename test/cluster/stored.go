package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rewrite changes an Eviction where the API server stores it, past everything that it
// would refuse: so a responder can have been silent for 20 minutes by a clock that
// nobody sets. Whoever watches Evictions is told, as of any other change.
func (c *Cluster) Rewrite(t testing.TB, eviction client.ObjectKey, change func(*lifecyclev1alpha1.Eviction)) {
	t.Helper()
	codec := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme)
	key := []byte("/registry/evictions/" + eviction.Namespace + "/" + eviction.Name)
	for range 20 {
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
		stored := &lifecyclev1alpha1.Eviction{}
		if _, _, err := codec.Decode(found.Kvs[0].Value, nil, stored); err != nil {
			t.Fatalf("read %s: %v", key, err)
		}
		change(stored)
		stored.SetGroupVersionKind(lifecyclev1alpha1.SchemeGroupVersion.WithKind("Eviction"))
		var value bytes.Buffer
		if err := codec.Encode(stored, &value); err != nil {
			t.Fatalf("write %s: %v", key, err)
		}
		var put struct {
			Succeeded bool `json:"succeeded"`
		}
		c.etcd(t, "txn", map[string]any{
			"compare": []any{map[string]any{"target": "MOD", "key": key, "mod_revision": found.Kvs[0].Revision, "result": "EQUAL"}},
			"success": []any{map[string]any{"request_put": map[string]any{"key": key, "value": value.Bytes()}}},
		}, &put)
		if put.Succeeded {
			return
		}
	}
	t.Fatalf("somebody else always writes %s", key)
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
