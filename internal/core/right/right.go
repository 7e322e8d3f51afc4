// Package right decides which parts of the manager run under the rights that its account has.
//
// The rights of a part are those of its role in the chart, one by one. A part that lacks one
// does not start, and no other part stops for it. Core is what cannot be left out.
package right

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Part is a part of the manager that has a role of its own. It is part of the API: the label
// MissingRightsLabel and a metric have its name.
type Part string

const (
	// Core drains nodes and answers the API server.
	Core Part = "core"
	// Machines acts on Machines and Clusters of ebbtide.dev.
	Machines Part = "machines"
	// EvictionRequests answers EvictionRequests, and has pods leave by them.
	EvictionRequests Part = "eviction-requests"
	// ClusterAPI drains for the Machines of Cluster API.
	ClusterAPI Part = "cluster-api"
	// OpenShift drains for the Machines of OpenShift.
	OpenShift Part = "openshift"
)

// parts are all, in the order in which they are told of.
var parts = []Part{Core, Machines, EvictionRequests, ClusterAPI, OpenShift}

// Right is one verb on one resource.
type Right struct {
	// Namespace is empty for a right on all namespaces, Name for one on all objects.
	Namespace, Name, Verb, Group, Resource, Subresource string
}

// String is the right in the words of kubectl auth can-i.
func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Name != "" {
		text += "/" + r.Name
	}
	if r.Subresource != "" {
		text += " --subresource=" + r.Subresource
	}
	if r.Namespace != "" {
		text += " --namespace=" + r.Namespace
	}
	return text
}

// Attributes are the right as the API server is asked for it.
func (r Right) Attributes() *authorizationv1.ResourceAttributes {
	return &authorizationv1.ResourceAttributes{
		Namespace: r.Namespace, Name: r.Name, Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource,
	}
}

// Of are the rights that the rules of a role give, in a namespace or, if that is empty, in all.
func Of(namespace string, rules ...rbacv1.PolicyRule) (rights []Right) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, path := range rule.Resources {
				resource, subresource, _ := strings.Cut(path, "/")
				on := Right{Namespace: namespace, Group: group, Resource: resource, Subresource: subresource}
				rights = append(rights, on.each(rule.ResourceNames, rule.Verbs)...)
			}
		}
	}
	return rights
}

// each are rights on the same resource; no names are one on all objects.
func (r Right) each(names, verbs []string) (rights []Right) {
	if len(names) == 0 {
		names = []string{""}
	}
	for _, r.Name = range names {
		for _, r.Verb = range verbs {
			rights = append(rights, r)
		}
	}
	return rights
}

// Rights are some of each part.
type Rights map[Part][]Right

// Each calls do once for each right, in an order that is always the same.
//
// Errors: that of the first call that returns one, which is the last.
func (r Rights) Each(do func(Right) error) error {
	done := map[Right]bool{}
	for _, part := range r.Parts() {
		for _, one := range r[part] {
			if done[one] {
				continue
			}
			done[one] = true
			if err := do(one); err != nil {
				return err
			}
		}
	}
	return nil
}

// Served are the rights of those parts of which all API groups are served: another part waits for
// them and needs no rights until then. Core waits for none.
func (r Rights) Served(is func(group string) bool) Rights {
	served := maps.Clone(r)
	maps.DeleteFunc(served, func(part Part, rights []Right) bool {
		return part != Core && slices.ContainsFunc(rights, func(one Right) bool { return !is(one.Group) })
	})
	return served
}

// Lacking are the rights that an account has not, of those parts that lack any.
func (r Rights) Lacking(has func(Right) bool) Rights {
	lacking := Rights{}
	for part, rights := range r {
		if left := slices.DeleteFunc(slices.Clone(rights), has); len(left) > 0 {
			lacking[part] = left
		}
	}
	return lacking
}

// Lists reports whether a part lists the objects of a resource.
func (r Rights) Lists(part Part, group, resource string) bool {
	return slices.ContainsFunc(r[part], func(one Right) bool {
		return one.Verb == "list" && one.Group == group && one.Resource == resource && one.Subresource == ""
	})
}

// Parts are those that there are rights of.
func (r Rights) Parts() []Part {
	return slices.SortedFunc(maps.Keys(r), func(a, b Part) int { return cmp.Compare(slices.Index(parts, a), slices.Index(parts, b)) })
}

// Optional are the parts that can be left out.
func (r Rights) Optional() []Part {
	return slices.DeleteFunc(r.Parts(), func(p Part) bool { return p == Core })
}

// mostShown is how many rights are named.
const mostShown = 5

// Message lists the rights of a part for people.
func (r Rights) Message(part Part) string {
	var words []string
	for _, one := range r[part] {
		words = append(words, one.String())
	}
	if len(words) > mostShown {
		words = append(words[:mostShown], "…")
	}
	return strings.Join(words, ", ")
}

// Label is the value of MissingRightsLabel for parts.
func Label(missing []Part) string { return strings.Join(Names(missing), separator) }

// Names are the names of parts.
func Names(parts []Part) (names []string) {
	for _, part := range parts {
		names = append(names, string(part))
	}
	return names
}

// separator may be in the value of a label, and in no name of a part.
const separator = "."

// ParseLabel reads what Label has written. What is no part is left out: the label is not ours
// alone to write.
func ParseLabel(value string) (missing []Part) {
	for name := range strings.SplitSeq(value, separator) {
		if slices.Contains(parts, Part(name)) {
			missing = append(missing, Part(name))
		}
	}
	return missing
}
