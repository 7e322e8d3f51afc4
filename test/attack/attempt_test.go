package attack

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// attempt is what an account tries, and who refuses it: rbac, or an admission policy or
// webhook by its name.
type attempt struct {
	act       string
	try       func(*stage, client.Client) error
	refusedBy string
}

const rbac = "RBAC"

// creates makes the object.
func creates(document string) func(*stage, client.Client) error {
	return func(s *stage, c client.Client) error {
		return c.Create(s.t.Context(), s.object(document), client.DryRunAll)
	}
}

// patches merges the change into the object, which is there.
func patches(object, change string) func(*stage, client.Client) error {
	return func(s *stage, c client.Client) error {
		return c.Patch(s.t.Context(), s.object(object), s.merge(change), client.DryRunAll)
	}
}

// reports merges the change into the status of the object.
func reports(object, change string) func(*stage, client.Client) error {
	return func(s *stage, c client.Client) error {
		return client.NewDryRunClient(c).Status().Patch(s.t.Context(), s.object(object), s.merge(change))
	}
}

func deletes(object string, options ...client.DeleteOption) func(*stage, client.Client) error {
	return func(s *stage, c client.Client) error {
		return c.Delete(s.t.Context(), s.object(object), append(options, client.DryRunAll)...)
	}
}

func deletesAll(object string) func(*stage, client.Client) error {
	return func(s *stage, c client.Client) error {
		o := s.object(object)
		return c.DeleteAllOf(s.t.Context(), o, client.InNamespace(o.GetNamespace()), client.DryRunAll)
	}
}

func gets(object string) func(*stage, client.Client) error {
	return func(s *stage, c client.Client) error {
		o := s.object(object)
		return c.Get(s.t.Context(), client.ObjectKeyFromObject(o), o)
	}
}

func lists(object string) func(*stage, client.Client) error {
	return func(s *stage, c client.Client) error {
		o, list := s.object(object), &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(o.GroupVersionKind())
		return c.List(s.t.Context(), list, client.InNamespace(o.GetNamespace()))
	}
}

// asks makes a subresource, such as a token.
func asks(subresource, object, document string) func(*stage, client.Client) error {
	return func(s *stage, c client.Client) error {
		return client.NewDryRunClient(c).SubResource(subresource).Create(s.t.Context(), s.object(object), s.object(document))
	}
}

func (s *stage) merge(change string) client.Patch {
	s.t.Helper()
	data, err := yaml.YAMLToJSON([]byte(s.names.Replace(change)))
	if err != nil {
		s.t.Fatalf("decode %s: %v", change, err)
	}
	return client.RawPatch(types.MergePatchType, data)
}

// refuses says whether the error is the refusal of whoever is to refuse.
func (a attempt) refuses(err error) bool {
	if err == nil {
		return false
	}
	for _, one := range strings.Split(a.refusedBy, " or ") {
		if strings.Contains(err.Error(), "'"+one+"'") || strings.Contains(err.Error(), `"`+one+`"`) {
			return true
		}
	}
	return a.refusedBy == rbac && strings.Contains(err.Error(), "cannot ")
}
