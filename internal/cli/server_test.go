package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

// noon is the time of the server's clock. That of this machine differs.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const budgetsPath = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets"

// server answers what lock and unlock ask an API server, over HTTP.
type server struct {
	http       *httptest.Server
	kubeconfig string
	// refuse is asked before every request; its error is the answer.
	refuse func(request *http.Request) error
	// meddle changes the budget just before the nth write, as other clients do; they touch it.
	meddle func(n int, b *policyv1.PodDisruptionBudget)
	// undated leaves out when an answer was given, deaf what a write is about.
	undated, deaf bool

	mu     sync.Mutex
	budget *policyv1.PodDisruptionBudget
	writes int
}

// newServer serves budget shop/web, last changed at 11:55, with this lock unless
// it is empty.
func newServer(t *testing.T, lock string) *server {
	t.Helper()
	s := &server{budget: &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "uid-of-web", ResourceVersion: "1",
		CreationTimestamp: metav1.NewTime(noon.Add(-5 * time.Minute)),
		Annotations:       map[string]string{"team": "web"},
	}}}
	if lock != "" {
		s.budget.Annotations[v1alpha1.LockAnnotation] = lock
	}
	s.http = httptest.NewServer(http.HandlerFunc(s.handle))
	t.Cleanup(s.http.Close)
	s.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.Config{
		CurrentContext: "here",
		Clusters:       map[string]*clientcmdapi.Cluster{"here": {Server: s.http.URL}},
		Contexts: map[string]*clientcmdapi.Context{
			"here": {Cluster: "here", Namespace: "shop"}, "there": {Cluster: "here", Namespace: "bank"},
		},
	}
	if err := clientcmd.WriteToFile(config, s.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs the plugin as anna, and shows paths and names of programs as anybody has them.
func (s *server) run(t *testing.T, args ...string) result {
	t.Helper()
	got := run(t.Context(), append(args, "--kubeconfig", s.kubeconfig)...)
	shown := strings.NewReplacer(s.kubeconfig, "CONFIG", commandName().String(), "kubectl ebbtide", s.http.URL, "SERVER")
	got.Out, got.ErrOut = shown.Replace(got.Out), shown.Replace(got.ErrOut)
	return got
}

// lock is the annotation that the budget bears.
func (s *server) lock() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.budget.Annotations[v1alpha1.LockAnnotation]
}

func (s *server) handle(w http.ResponseWriter, request *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header()["Date"] = []string{noon.Format(http.TimeFormat)}
	if s.undated {
		w.Header()["Date"] = nil
	}
	w.Header().Set("Content-Type", "application/json")
	code := http.StatusOK
	answer, err := s.answer(request)
	if err != nil {
		status := apierrors.APIStatus(apierrors.NewInternalError(err))
		if known, ok := err.(apierrors.APIStatus); ok {
			status = known
		}
		text := status.Status()
		text.Kind, text.APIVersion = "Status", "v1"
		answer, code = text, int(text.Code)
	}
	w.WriteHeader(code)
	// The client says what is wrong if it gets too little.
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *server) answer(request *http.Request) (any, error) {
	if s.refuse != nil {
		if err := s.refuse(request); err != nil {
			return nil, err
		}
	}
	switch request.Method + " " + request.URL.Path {
	case "POST /apis/authentication.k8s.io/v1/selfsubjectreviews":
		user := authenticationv1.UserInfo{Username: "anna"}
		if as := request.Header.Get("Impersonate-User"); as != "" {
			user.Username = as
		}
		return authenticationv1.SelfSubjectReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
			Status:   authenticationv1.SelfSubjectReviewStatus{UserInfo: user},
		}, nil
	case "GET /apis/ebbtide.dev":
		return metav1.APIGroup{Name: "ebbtide.dev"}, nil
	case "GET " + budgetsPath:
		if strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadataList") {
			return metav1.PartialObjectMetadataList{
				TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
				Items:    []metav1.PartialObjectMetadata{{ObjectMeta: s.budget.ObjectMeta}},
			}, nil
		}
		return policyv1.PodDisruptionBudgetList{
			TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudgetList"},
			Items:    []policyv1.PodDisruptionBudget{*s.budget},
		}, nil
	case "GET " + budgetsPath + "/web":
		return s.shown(s.budget), nil
	case "PATCH " + budgetsPath + "/web":
		return s.patch(request)
	}
	name := request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}, name)
}

func (s *server) shown(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	b = b.DeepCopy()
	b.SetGroupVersionKind(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"))
	b.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "test", Time: &b.CreationTimestamp}}
	return b
}

// patch takes a merge patch of annotations, under the conditions that it has.
func (s *server) patch(request *http.Request) (any, error) {
	s.writes++
	if s.meddle != nil {
		s.meddle(s.writes, s.budget)
	}
	var patch struct {
		Metadata struct {
			UID             types.UID          `json:"uid"`
			ResourceVersion string             `json:"resourceVersion"`
			Annotations     map[string]*string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.NewDecoder(request.Body).Decode(&patch); err != nil {
		return nil, err
	}
	if patch.Metadata.UID != s.budget.UID || patch.Metadata.ResourceVersion != s.budget.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}, "web", nil)
	}
	written := s.budget.DeepCopy()
	if s.deaf {
		patch.Metadata.Annotations = nil
	}
	for key, value := range patch.Metadata.Annotations {
		if delete(written.Annotations, key); value != nil {
			written.Annotations[key] = *value
		}
	}
	touch(written)
	if request.URL.Query().Get("dryRun") == "" {
		s.budget = written
	}
	return s.shown(written), nil
}

// touch gives the budget its next version.
func touch(b *policyv1.PodDisruptionBudget) {
	version, _ := strconv.Atoi(b.ResourceVersion)
	b.ResourceVersion = strconv.Itoa(version + 1)
}
