package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// served are the resources of a cluster in memory by their paths.
var served = map[string]metav1.APIResource{
	"/api/v1/nodes": {Name: "nodes", Kind: "Node"}, "/api/v1/pods": {Name: "pods", Kind: "Pod", Namespaced: true},
	"/apis/ebbtide.dev/v1alpha1/noderollouts":     {Name: "noderollouts", Kind: "NodeRollout"},
	"/apis/ebbtide.dev/v1alpha1/nodebudgets":      {Name: "nodebudgets", Kind: "NodeBudget"},
	"/apis/ebbtide.dev/v1alpha1/nodemaintenances": {Name: "nodemaintenances", Kind: "NodeMaintenance"},
}

// memory is a cluster in memory, which the plugin reaches over HTTP. There is no admission, no
// defaulting and no controller.
type memory struct {
	t          *testing.T
	kubeconfig string

	mu      sync.Mutex
	version int
	// objects are by path, such as /api/v1/nodes/node-1.
	objects map[string]*unstructured.Unstructured
	// changes are all, by their version less two; changed is closed at the next one.
	changes []change
	changed chan struct{}
}

// change is a change of an object.
type change struct {
	path  string
	event metav1.WatchEvent
}

func newMemory(t *testing.T, objects ...client.Object) *memory {
	t.Helper()
	m := &memory{t: t, objects: map[string]*unstructured.Unstructured{}, version: 1, changed: make(chan struct{})}
	for _, object := range objects {
		m.put(object)
	}
	server := httptest.NewServer(http.HandlerFunc(m.handle))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	m.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "here", Clusters: map[string]*clientcmdapi.Cluster{"here": {Server: server.URL}},
		Contexts: map[string]*clientcmdapi.Context{"here": {Cluster: "here"}},
	}, m.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return m
}

// run runs the plugin, and shows its name and that of the file as everybody has them.
func (m *memory) run(args ...string) result {
	m.t.Helper()
	got := run(m.t.Context(), append(args, "--kubeconfig", m.kubeconfig)...)
	shown := strings.NewReplacer(" --kubeconfig "+m.kubeconfig, "", commandName().String(), "kubectl ebbtide")
	got.Out, got.ErrOut = shown.Replace(got.Out), shown.Replace(got.ErrOut)
	return got
}

// pathOf returns the path of the resource of an object.
func pathOf(kind string) string {
	for path, resource := range served {
		if resource.Kind == kind {
			return path
		}
	}
	return ""
}

// put stores an object.
func (m *memory) put(object client.Object) {
	m.t.Helper()
	kind := strings.TrimPrefix(fmt.Sprintf("%T", object), "*v1alpha1.")
	kind = strings.TrimPrefix(kind, "*v1.")
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		m.t.Fatal(err)
	}
	stored := &unstructured.Unstructured{Object: content}
	group := schema.GroupVersion{Version: "v1"}
	if strings.HasPrefix(pathOf(kind), "/apis/ebbtide.dev") {
		group = v1alpha1.SchemeGroupVersion
	}
	stored.SetGroupVersionKind(group.WithKind(kind))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store(pathOf(kind)+"/"+object.GetName(), stored)
}

// store stores an object under its path, and wakes the watches.
func (m *memory) store(path string, object *unstructured.Unstructured) {
	m.version++
	event := metav1.WatchEvent{Type: "ADDED"}
	if m.objects[path] != nil {
		event.Type = "MODIFIED"
	}
	object.SetResourceVersion(strconv.Itoa(m.version))
	if object.GetUID() == "" {
		object.SetUID(uuid.NewUUID())
	}
	m.objects[path] = object
	event.Object.Object = object.DeepCopy()
	m.changes = append(m.changes, change{path, event})
	close(m.changed)
	m.changed = make(chan struct{})
}

// get reads an object of a kind of Ebbtide.
func (m *memory) get(name string, into client.Object) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	kind := strings.TrimPrefix(fmt.Sprintf("%T", into), "*v1alpha1.")
	object := m.objects[pathOf(kind)+"/"+name]
	if object == nil {
		m.t.Fatalf("there is no %s %s, only %v", kind, name, slices.Sorted(maps.Keys(m.objects)))
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		m.t.Fatal(err)
	}
}

func (m *memory) handle(w http.ResponseWriter, request *http.Request) {
	w.Header()["Date"] = []string{noon.Format(http.TimeFormat)}
	w.Header().Set("Content-Type", "application/json")
	query := request.URL.Query()
	if query.Get("watch") != "" && query.Get("sendInitialEvents") == "" {
		m.watch(w, request)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	answer, err := m.answer(request)
	if err != nil {
		status := apierrors.APIStatus(apierrors.NewInternalError(err))
		if known, ok := err.(apierrors.APIStatus); ok {
			status = known
		}
		said := status.Status()
		said.Kind, said.APIVersion = "Status", "v1"
		w.WriteHeader(int(said.Code))
		answer = said
	}
	// The client says what is wrong if it gets too little.
	_ = json.NewEncoder(w).Encode(answer)
}

// watch sends the changes of a resource until the client leaves.
func (m *memory) watch(w http.ResponseWriter, request *http.Request) {
	flusher, _ := w.(http.Flusher)
	since, _ := strconv.Atoi(request.URL.Query().Get("resourceVersion"))
	for {
		m.mu.Lock()
		changes, changed := m.changes[max(0, since-1):], m.changed
		since += len(changes)
		m.mu.Unlock()
		for _, one := range changes {
			if strings.HasPrefix(one.path, request.URL.Path+"/") {
				_ = json.NewEncoder(w).Encode(one.event)
			}
		}
		flusher.Flush()
		select {
		case <-request.Context().Done():
			return
		case <-changed:
		}
	}
}

func (m *memory) answer(request *http.Request) (any, error) {
	path := request.URL.Path
	version := metav1.GroupVersionForDiscovery{GroupVersion: "ebbtide.dev/v1alpha1", Version: "v1alpha1"}
	group := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: "ebbtide.dev", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
	switch path {
	case "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}}, nil
	case "/apis":
		return metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{group}}, nil
	case "/api/v1":
		return resources("v1", "/api/v1/"), nil
	case "/apis/ebbtide.dev":
		return group, nil
	case "/apis/ebbtide.dev/v1alpha1":
		return resources("ebbtide.dev/v1alpha1", "/apis/ebbtide.dev/v1alpha1/"), nil
	}
	_, isList := served[path]
	switch {
	case request.URL.Query().Get("sendInitialEvents") != "":
		return nil, apierrors.NewBadRequest("a watch begins with a list here")
	case request.Method == http.MethodPost && isList:
		return m.create(request)
	case request.Method == http.MethodGet && isList:
		return m.list(request), nil
	}
	object := m.objects[path]
	if object == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "objects"}, path[strings.LastIndex(path, "/")+1:])
	}
	if request.Method == http.MethodPatch {
		return m.patch(request, object)
	}
	return object, nil
}

func resources(version, under string) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version}
	for path, resource := range served {
		if strings.HasPrefix(path, under) {
			resource.Verbs = metav1.Verbs{"get", "list", "watch", "create", "patch"}
			list.APIResources = append(list.APIResources, resource)
		}
	}
	return list
}

func (m *memory) list(request *http.Request) any {
	query := request.URL.Query()
	selector, _ := labels.Parse(query.Get("labelSelector"))
	items := []any{}
	for _, path := range slices.Sorted(maps.Keys(m.objects)) {
		object := m.objects[path]
		unschedulable, _, _ := unstructured.NestedBool(object.Object, "spec", "unschedulable")
		name, hasName := strings.CutPrefix(query.Get("fieldSelector"), "metadata.name=")
		switch {
		case !strings.HasPrefix(path, request.URL.Path+"/"), !selector.Matches(labels.Set(object.GetLabels())):
		case hasName && name != object.GetName():
		case query.Get("fieldSelector") == "spec.unschedulable=true" && !unschedulable:
		default:
			items = append(items, object.Object)
		}
	}
	kind, version := served[request.URL.Path].Kind+"List", "v1"
	if strings.HasPrefix(request.URL.Path, "/apis/") {
		version = "ebbtide.dev/v1alpha1"
	}
	if strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	return map[string]any{"kind": kind, "apiVersion": version, "metadata": map[string]any{"resourceVersion": strconv.Itoa(m.version)}, "items": items}
}

func (m *memory) create(request *http.Request) (any, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	if object.GetName() == "" {
		object.SetName(object.GetGenerateName() + "x")
	}
	path := request.URL.Path + "/" + object.GetName()
	if m.objects[path] != nil {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: served[request.URL.Path].Name}, object.GetName())
	}
	object.SetGeneration(1)
	if request.URL.Query().Get("dryRun") == "" {
		m.store(path, object)
	}
	return object, nil
}

// patch takes a merge patch.
func (m *memory) patch(request *http.Request, object *unstructured.Unstructured) (any, error) {
	patch, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	after := object.DeepCopy()
	changes := map[string]any{}
	if err := json.Unmarshal(patch, &changes); err != nil {
		return nil, err
	}
	merge(after.Object, changes)
	if after.GetResourceVersion() != object.GetResourceVersion() {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, object.GetName(), nil)
	}
	after.SetGeneration(object.GetGeneration() + 1)
	if request.URL.Query().Get("dryRun") == "" {
		m.store(request.URL.Path, after)
	}
	return after, nil
}

func merge(object, changes map[string]any) {
	for key, value := range changes {
		of, isMap := value.(map[string]any)
		into, wasMap := object[key].(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case isMap && wasMap:
			merge(into, of)
		default:
			object[key] = value
		}
	}
}

// nodeNamed is a node with labels, as key=value.
func nodeNamed(name string, having ...string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, label := range having {
		key, value, _ := strings.Cut(label, "=")
		node.Labels[key] = value
	}
	return node
}
